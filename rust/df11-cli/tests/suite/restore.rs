//! `df11 restore`: exit codes, JSON, and the original again.

use std::fs;

use crate::common::{World, code, errors, json};

#[test]
fn the_original_again() {
    let world = World::new(100_000);
    assert_eq!(code(&world.compress(&[])), 0);
    let source = fs::read(world.source()).unwrap();
    fs::remove_file(world.source()).unwrap();

    let first = world.run(&["--json", "restore", "model-DF11.safetensors"]);
    assert_eq!(code(&first), 0, "{}", errors(&first));
    let report = json(&first);
    assert_eq!(report["schema"], "df11.restore/1");
    assert_eq!(report["status"], "done");
    assert_eq!(report["exact"], true);
    assert_eq!(report["target_bytes"], source.len() as u64);
    assert!(fs::read(world.source()).unwrap() == source);

    let second = world.run(&["--json", "restore", "model-DF11.safetensors"]);
    assert_eq!(code(&second), 0);
    assert_eq!(json(&second)["status"], "already-done");

    let text = world.run(&[
        "restore",
        "model-DF11.safetensors",
        "-o",
        "other.safetensors",
        "--threads",
        "1",
    ]);
    let said = String::from_utf8(text.stdout.clone()).unwrap();
    assert_eq!(code(&text), 0);
    assert!(
        said.contains("other.safetensors") && said.contains("byte for byte"),
        "{said}"
    );
    assert!(fs::read(world.path("other.safetensors")).unwrap() == source);
}

/// What the command says of a checkpoint that is not the original.
#[test]
fn a_usable_checkpoint() {
    let world = World::new(10_000);
    world.compress(&[]);
    let options = ["restore", "model-DF11.safetensors", "--usable"];
    let said = |more: &[&str]| {
        let output = world.run(&[&options, more].concat());
        assert_eq!(code(&output), 0, "{}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let is_told = |text: &str| {
        let names = text.contains("model-restored.safetensors");
        let what = "a usable checkpoint, not the original file byte for byte";
        assert!(names && text.contains(what), "{text}");
    };
    is_told(&said(&["--dry-run"]));
    let plan: serde_json::Value = serde_json::from_str(&said(&["--dry-run", "--json"])).unwrap();
    assert_eq!(
        (&plan["schema"], &plan["exact"]),
        (&"df11.restore-plan/1".into(), &false.into())
    );
    assert_eq!(plan["tensors"][0]["name"], "one.0.weight");
    assert!(!world.path("model-restored.safetensors").exists());
    let first = said(&[]);
    is_told(&first);
    assert!(
        first.contains("note: names are those that the model's loader knows"),
        "{first}"
    );
    is_told(&said(&[]));
    assert_eq!(
        world.files(),
        [
            "architectures",
            "model-DF11.safetensors",
            "model-restored.safetensors",
            "model.safetensors"
        ]
    );
}

#[test]
fn failures() {
    let world = World::new(10_000);
    let failure = |args: &[&str]| {
        let output = world.run(&[&["--json", "restore", "model-DF11.safetensors"], args].concat());
        let error = json(&output)["error"]["code"].as_str().unwrap().to_owned();
        (code(&output), error)
    };
    assert_eq!(failure(&[]), (1, "E_READ".to_owned()));
    world.compress(&["--header", "official"]);
    // No shape rule.
    assert_eq!(failure(&[]), (3, "E_NOT_RESTORABLE".to_owned()));
    assert_eq!(
        failure(&["--arch", "Flux"]),
        (3, "E_ARCH_CONTRADICTION".to_owned())
    );
    world.compress(&["--if-exists", "replace"]);
    assert_eq!(
        failure(&["-o", "model-DF11.safetensors"]),
        (2, "E_TARGET_IS_SOURCE".to_owned())
    );
    fs::write(world.source(), b"somebody's").unwrap();
    assert_eq!(failure(&[]), (6, "E_TARGET_EXISTS".to_owned()));

    let mut damaged = fs::read(world.target()).unwrap();
    let last = damaged.len() - 9;
    damaged[last] ^= 4;
    fs::write(world.target(), damaged).unwrap();
    assert_eq!(
        failure(&["--if-exists", "replace"]),
        (4, "E_VERIFY".to_owned())
    );
    assert_eq!(fs::read(world.source()).unwrap(), b"somebody's");
}
