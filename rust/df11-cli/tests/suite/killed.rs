//! A run that is killed leaves only its marked partial file, and the next run replaces it and says so.

use std::fs;

use crate::common::{World, code, json};

#[test]
fn killed_in_the_middle() {
    let world = World::new(3_000_000);
    let mut child = world.start_braked();
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        world.files(),
        [
            "architectures",
            "model-DF11.safetensors.partial",
            "model.safetensors"
        ]
    );
    assert!(
        fs::read(world.partial())
            .unwrap()
            .starts_with(b"DF11-PARTIAL/1\r\n")
    );

    let next = world.compress(&["--json"]);
    assert_eq!(code(&next), 0);
    let notes = json(&next)["notes"].to_string();
    assert!(
        notes.contains("a partial file left by an interrupted run was replaced"),
        "{notes}"
    );
    let replaced = fs::read(world.target()).unwrap();
    fs::remove_file(world.target()).unwrap();
    assert_eq!(code(&world.compress(&[])), 0);
    assert!(fs::read(world.target()).unwrap() == replaced);
}
