//! `df11 bench`: what it prints and refuses, and that its scratch file is gone whatever ends it. No speed is judged.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::common::{World, code, errors, json};

fn bench<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["bench", "--quick"], options].concat()
}

/// A number above zero.
fn positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

fn assert_rates(report: &Value) {
    assert_eq!(report["schema"], "df11.bench/1");
    assert!(!report["memory"].as_array().unwrap().is_empty());
    for rates in report["memory"].as_array().unwrap() {
        for rate in [
            "threads",
            "compress_weights_per_second",
            "verify_weights_per_second",
        ] {
            assert!(positive(&rates[rate]), "{rate}");
        }
    }
    for transfer in [&report["write"], &report["read"]] {
        for figure in ["bytes", "seconds", "bytes_per_second"] {
            assert!(positive(&transfer[figure]), "{figure}");
        }
    }
}

#[test]
fn rates_without_a_model() {
    let world = World::new(10);
    let output = world.run(&bench(&["--json", "--threads", "3"]));
    assert_eq!((code(&output), errors(&output).as_str()), (0, ""));
    let report = json(&output);
    assert_rates(&report);
    let threads = report["memory"].as_array().unwrap().iter();
    let threads: Vec<_> = threads.map(|rates| rates["threads"].as_u64()).collect();
    assert_eq!(threads, [Some(1), Some(3)]);
    assert!(report["estimate"].is_null());
    assert_eq!(report["write"]["bytes"], report["read"]["bytes"]);
    world.assert_clean();
}

#[test]
fn one_thread_is_measured_once() {
    let world = World::new(10);
    let options = ["--json", "--threads", "1", "--kernel", "reference"];
    let report = json(&world.run(&bench(&options)));
    assert_eq!(report["memory"].as_array().unwrap().len(), 1);
    assert_eq!(report["kernel"], "reference");
}

#[test]
fn an_estimate_for_a_model() {
    let world = World::new(300_000);
    let report = json(&world.run(&bench(&["model.safetensors", "--json"])));
    assert_rates(&report);
    let plan = json(&world.run(&["inspect", "model.safetensors", "--json"]));
    let estimate = &report["estimate"];
    for same in ["source", "source_bytes", "architecture", "predicted_bytes"] {
        assert_eq!(estimate[same], plan[same], "{same}");
    }
    assert_eq!(report["read"]["bytes"].as_u64(), Some(600_001));
    let seconds = |range: &str, end: &str| estimate[range][end].as_f64().unwrap();
    for range in ["without_verification", "with_verification"] {
        assert!(seconds(range, "least_seconds") > 0.0);
        assert!(seconds(range, "least_seconds") <= seconds(range, "most_seconds"));
        let limit = estimate[range]["limit"].as_str().unwrap();
        assert!(["reading", "computing", "writing"].contains(&limit));
    }
    let most =
        ["without_verification", "with_verification"].map(|range| seconds(range, "most_seconds"));
    assert!(most[0] < most[1]);
    world.assert_clean();
}

#[test]
fn a_run_reads_what_was_estimated() {
    for header in ["self-describing", "official"] {
        let world = World::new(300_000);
        let options = ["model.safetensors", "--header", header, "--json"];
        let estimate = &json(&world.run(&bench(&options)))["estimate"];
        let report = json(&world.compress(&["--header", header, "--json"]));
        assert!(positive(&report["bytes_read"]));
        assert_eq!(estimate["bytes_to_read"], report["bytes_read"], "{header}");
    }
}

#[test]
fn text_for_people() {
    let world = World::new(300_000);
    fs::create_dir(world.path("elsewhere")).unwrap();
    let output = world.run(&bench(&["model.safetensors", "--folder", "elsewhere"]));
    assert_eq!((code(&output), errors(&output).as_str()), (0, ""));
    let text = String::from_utf8(output.stdout).unwrap();
    for word in [
        "million weights/s",
        "disk of elsewhere",
        "MB/s, 0.60 MB of model.safetensors",
        "Toy (a toy)",
        "--verify off",
        "limits",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(!text.contains('\x1B'));
    assert_eq!(fs::read_dir(world.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn refusals() {
    let world = World::new(1000);
    let failed = |world: &World, options: &[&str]| {
        let output = world.run(&[&bench(options), ["--json"].as_slice()].concat());
        let error = json(&output)["error"]["code"].as_str().unwrap().to_owned();
        (code(&output), error)
    };
    for (options, expected) in [
        (["--threads", "0"], (2, "E_OPTION")),
        (["--kernel", "none-such"], (2, "E_OPTION")),
        (["--folder", "missing"], (1, "E_WRITE")),
        (["--folder", "model.safetensors"], (1, "E_WRITE")),
        (["missing.safetensors", "--threads=1"], (1, "E_READ")),
    ] {
        let found = failed(&world, &options);
        assert_eq!((found.0, found.1.as_str()), expected);
    }
    world.assert_clean();
    let fp8 = World::of(&[("one.0.weight", "F8_E4M3", vec![0; 8])]);
    let found = failed(&fp8, &["model.safetensors"]);
    assert_eq!(found, (3, "E_QUANTIZED".to_owned()));
    fp8.assert_clean();
}

/// Starts a bench of its own speed and waits until its scratch file is open.
#[cfg(target_os = "linux")]
fn start(world: &World) -> Child {
    let mut command = world.command(&["bench"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let opened = |folder: fs::ReadDir| {
        let mut links = folder
            .flatten()
            .filter_map(|fd| fs::read_link(fd.path()).ok());
        links.any(|link| link.to_string_lossy().contains("df11-bench-"))
    };
    while !fs::read_dir(format!("/proc/{}/fd", child.id())).is_ok_and(opened) {
        assert!(Instant::now() < deadline, "no scratch file was opened");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

#[cfg(target_os = "linux")]
#[test]
fn ended_in_the_middle() {
    for (signal, expected) in [("-INT", Some(130)), ("-TERM", Some(130)), ("-KILL", None)] {
        let world = World::new(10);
        let mut child = start(&world);
        let asked = Instant::now();
        let mut kill = Command::new("kill");
        kill.args([signal, &child.id().to_string()]);
        assert!(kill.status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), expected, "{signal}");
        assert!(asked.elapsed() < Duration::from_secs(5), "{signal}");
        world.assert_clean();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_disk_is_left_alone() {
    let world = World::new(10);
    fs::create_dir(world.path("disk")).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=100m", "tmpfs", "disk"];
    let folder = world.path("");
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program)
            .args(args)
            .current_dir(&folder)
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    if !run("mount", &mount) {
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr(),
            "SKIP no file system of our own can be mounted"
        );
        return;
    }
    let output = world.run(&bench(&["--folder", "disk", "--json"]));
    assert!(run("umount", &["disk"]));
    assert_eq!(code(&output), 5);
    assert_eq!(json(&output)["error"]["code"], "E_NO_SPACE");
}
