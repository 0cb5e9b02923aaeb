//! A run that is killed leaves only its marked partial file and its journal, and the next run goes on from them and says so.

use std::fs;

use crate::common::{World, code, errors, json};

#[test]
fn killed_in_the_middle() {
    let world = World::new(3_000_000);
    let mut child = world.start_braked();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let second = world.compress(&[]);
    assert_eq!(code(&second), 6);
    let holder = format!(
        "another run is writing this file: process {} on ",
        child.id()
    );
    assert!(errors(&second).contains(&holder), "{}", errors(&second));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        world.files(),
        [
            "architectures",
            "model-DF11.safetensors.journal",
            "model-DF11.safetensors.partial",
            "model.safetensors"
        ]
    );
    assert!(
        fs::read(world.partial())
            .unwrap()
            .starts_with(b"DF11-PARTIAL/1\r\n")
    );

    let left = [
        world.partial(),
        world.path("model-DF11.safetensors.journal"),
    ];
    let left = left.map(|path| (fs::read(&path).unwrap(), path));
    let mut results = Vec::new();
    for (options, said) in [
        (
            &["--json"][..],
            "went on from an interrupted run: 0 units and 1 copied tensors",
        ),
        (
            &["--json", "--no-resume"],
            "replaced: a start from the beginning was asked for",
        ),
    ] {
        for (bytes, path) in &left {
            fs::write(path, bytes).unwrap();
        }
        let next = world.compress(options);
        assert_eq!(code(&next), 0, "{}", errors(&next));
        let notes = json(&next)["notes"].to_string();
        assert!(notes.contains(said), "{notes}");
        results.push(fs::read(world.target()).unwrap());
        fs::remove_file(world.target()).unwrap();
        world.assert_clean();
    }
    assert_eq!(code(&world.compress(&[])), 0);
    results.push(fs::read(world.target()).unwrap());
    assert!(results.iter().all(|result| *result == results[0]));
}
