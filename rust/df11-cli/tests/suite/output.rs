//! Data on standard output, everything else on standard error.

use std::{fs, io::Read, process::Stdio};

use serde_json::Value;

use crate::common::{World, code, errors, json};

#[test]
fn json_has_a_schema() {
    let world = World::new(1000);
    let mut plan = json(&world.run(&["inspect", "model.safetensors", "--json"]));
    assert_eq!(plan["schema"], "df11.plan/1");
    assert_eq!(
        (&plan["architecture"], plan["units"][0]["weights"].as_u64()),
        (&"Toy".into(), Some(1000))
    );
    let mut dry = json(&world.compress(&["--dry-run", "--json"]));
    // Other programs write to the disk meanwhile.
    (plan["free_bytes"], dry["free_bytes"]) = (0.into(), 0.into());
    assert_eq!(dry, plan);
    let report = world.compress(&["--json"]);
    assert_eq!(json(&report)["schema"], "df11.report/1");
    assert_eq!(json(&report)["target"], "model-DF11.safetensors");
    assert_eq!(errors(&report), "");
    fs::write(world.target(), "somebody's file").unwrap();
    let error = json(&world.compress(&["--json"]));
    assert_eq!(error["schema"], "df11.error/1");
    for field in ["code", "message", "hint", "path"] {
        assert!(
            !error["error"][field].as_str().unwrap().is_empty(),
            "{field}"
        );
    }
    assert!(
        json(&world.run(&["architectures", "--json"]))
            .as_array()
            .unwrap()
            .len()
            > 19
    );
}

#[test]
fn a_line_for_every_second_and_the_result() {
    let world = World::new(600_000);
    let lines = |options: &[&str]| -> Vec<Value> {
        let run = world.compress(&[&["--json-lines"], options].concat());
        assert!(run.stdout.ends_with(b"\n"));
        let text = String::from_utf8(run.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let told = lines(&["--max-rate", "0.5"]);
    let (report, states) = told.split_last().unwrap();
    assert_eq!(report["schema"], "df11.report/1");
    assert!(states.len() >= 2, "{states:?}");
    for state in states {
        assert_eq!(state["schema"], "df11.progress/1");
        assert_eq!(state["units"], 1);
        assert!(state["bytes_in"].as_u64() <= state["bytes_total"].as_u64());
    }
    assert_eq!(lines(&[])[0]["status"], "already-done");
    let refused = lines(&["--if-exists", "error"]);
    assert_eq!(
        (refused.len(), &refused[0]["schema"]),
        (1, &"df11.error/1".into())
    );
    let both = world.compress(&["--json", "--json-lines"]);
    assert_eq!(code(&both), 2);
}

#[test]
fn an_error_names_its_place() {
    let mut weights = [0x80, 0x3F].repeat(50);
    weights[21] = 0x7F;
    let world = World::of(&[("one.0.weight", "BF16", weights)]);
    let error = &json(&world.compress(&["--json"]))["error"];
    assert_eq!(
        (&error["unit"], &error["tensor"], &error["index"]),
        (&"one.0".into(), &"one.0.weight".into(), &10.into())
    );
    assert_eq!(error["path"], "model.safetensors");
}

#[test]
fn units_that_are_left_are_named() {
    let world = World::of(&[
        ("one.0.weight", "BF16", vec![0x80, 0x7F]),
        ("one.1.weight", "BF16", [0x80, 0x3F].repeat(50_000)),
    ]);
    let report = json(&world.compress(&["--keep-uncompressed", "--json"]));
    assert_eq!(
        (&report["left"][0]["name"], &report["left"][0]["bytes"]),
        (&"one.0".into(), &2.into())
    );
    assert!(report["cast"].is_null());
    let options = ["--keep-uncompressed", "--if-exists", "replace"];
    let text = String::from_utf8(world.compress(&options).stdout).unwrap();
    assert!(
        text.contains(
            "note: unit one.0 was left uncompressed: tensor one.0.weight, index 0: the weight inf"
        ),
        "{text}"
    );
}

#[test]
fn no_escape_codes_off_a_terminal() {
    let world = World::new(300_000);
    let runs: [&[&str]; 7] = [
        &["compress", "model.safetensors", "--max-rate", "0.5"],
        &["compress", "model.safetensors"],
        &["inspect", "model.safetensors"],
        &["architectures", "--check"],
        &["inspect", "missing.safetensors"],
        &["inspect", "--wrong"],
        &["--help"],
    ];
    for args in runs {
        let output = world.run(args);
        assert!(!output.stdout.contains(&0x1B), "{args:?}");
        assert!(
            !output.stderr.contains(&0x1B) && !output.stderr.contains(&b'\r'),
            "{args:?}: {}",
            errors(&output)
        );
        assert!(!output.stdout.is_empty() || code(&output) != 0, "{args:?}");
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = World::new(1000);
    let before = fs::metadata(world.source()).unwrap().modified().unwrap();
    let output = world.compress(&["--dry-run"]);
    assert_eq!(code(&output), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("model-DF11.safetensors"));
    world.assert_clean();
    assert_eq!(
        fs::metadata(world.source()).unwrap().modified().unwrap(),
        before
    );
}

/// A result that nobody gets to see is no success. Linux has a device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written() {
    let world = World::new(1000);
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let runs: [&[&str]; 6] = [
        &["compress", "model.safetensors", "--json"],
        &["verify", "model-DF11.safetensors"],
        &["inspect", "model.safetensors"],
        &["architectures", "--check"],
        &["--version"],
        &["--help"],
    ];
    for args in runs {
        let output = world.command(args).stdout(full()).output().unwrap();
        assert_eq!(code(&output), 1, "{args:?}");
        let said = errors(&output);
        assert!(
            said.contains("[E_WRITE]") && said.contains("standard output"),
            "{said}"
        );
    }
    let refused = world
        .command(&["inspect", "no.safetensors", "--json"])
        .stdout(full())
        .output();
    assert_eq!(code(&refused.unwrap()), 1);
    let wrong = world
        .command(&["inspect", "--json"])
        .stdout(full())
        .output();
    assert_eq!(code(&wrong.unwrap()), 2);
}

#[test]
fn a_closed_pipe_is_no_fault() {
    let world = World::new(1000);
    let mut child = world
        .command(&["architectures"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), text.as_str()), (Some(0), ""));
}
