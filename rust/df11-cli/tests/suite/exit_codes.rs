//! Every exit code, and the code of the error that gives it.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::common::{World, code, errors, json};

/// The exit code and `E_` code of a failing run with `--json`; the message on standard error must name the same.
fn failure(world: &World, args: &[&str]) -> (i32, String) {
    let output = world.run(&[&["--json"], args].concat());
    let error = json(&output)["error"]["code"].as_str().unwrap().to_owned();
    let message = errors(&output);
    assert!(
        message.starts_with("df11: ") && message.contains(&format!("[{error}]")),
        "{message}"
    );
    (code(&output), error)
}

fn compress<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["compress", "model.safetensors"], options].concat()
}

#[test]
fn done_and_already_done() {
    let world = World::new(1000);
    let first = world.compress(&["--json"]);
    assert_eq!(
        (code(&first), json(&first)["status"].as_str()),
        (0, Some("done"))
    );
    let second = world.compress(&["--json"]);
    assert_eq!(
        (code(&second), json(&second)["status"].as_str()),
        (0, Some("already-done"))
    );
    assert_eq!(code(&world.run(&["--help"])), 0);
    assert_eq!(code(&world.run(&["--version"])), 0);
    assert_eq!(code(&world.run(&["inspect", "model.safetensors"])), 0);
    assert_eq!(code(&world.run(&["architectures", "--check"])), 0);
}

#[test]
fn wrong_command_lines() {
    let world = World::new(1000);
    let wrong: [&[&str]; 9] = [
        &[],
        &["decompress"],
        &["compress"],
        &["compress", "model.safetensors", "--header", "short"],
        &["compress", "model.safetensors", "--verify", "maybe"],
        &["compress", "model.safetensors", "--if-exists", "ask"],
        &["compress", "model.safetensors", "--cast", "to-f16"],
        &["compress", "model.safetensors", "--threads", "two"],
        &["compress", "model.safetensors", "--max-rate", "0"],
    ];
    for args in wrong {
        let output = world.run(args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{args:?}"
        );
        assert_eq!(
            failure(&world, args),
            (2, "E_OPTION".to_owned()),
            "{args:?}"
        );
    }
    let error = &json(&world.run(&["compress", "--json", "--header", "short"]))["error"];
    let words = |field: &str| error[field].as_str().unwrap().to_owned();
    assert!(
        words("message").starts_with("invalid value 'short'"),
        "{error}"
    );
    assert!(
        words("hint").contains("possible values: self-describing"),
        "{error}"
    );
    for (options, expected) in [
        (["--threads", "0"], "E_OPTION"),
        (["--max-memory", "63MiB"], "E_OPTION"),
        (["--arch", "Unheard"], "E_OPTION"),
        (["-o", "model.safetensors"], "E_TARGET_IS_SOURCE"),
    ] {
        assert_eq!(
            failure(&world, &compress(&options)),
            (2, expected.to_owned())
        );
    }
    fs::write(world.path("architectures/bad.toml"), "schema = 2").unwrap();
    assert_eq!(
        failure(&world, &["architectures"]),
        (2, "E_DEFINITION".to_owned())
    );
    fs::remove_file(world.path("architectures/bad.toml")).unwrap();
    world.assert_clean();
}

#[test]
fn refused_inputs() {
    let fp8 = World::of(&[("one.0.weight", "F8_E4M3", vec![0; 8])]);
    assert_eq!(failure(&fp8, &compress(&[])), (3, "E_QUANTIZED".to_owned()));
    let infinite = World::of(&[("one.0.weight", "BF16", vec![0x80, 0x7F])]);
    assert_eq!(
        failure(&infinite, &compress(&[])),
        (3, "E_EXPONENT".to_owned())
    );
    infinite.assert_clean();
    let cut = World::new(1000);
    fs::write(cut.source(), &fs::read(cut.source()).unwrap()[..1000]).unwrap();
    assert_eq!(
        failure(&cut, &["inspect", "model.safetensors"]),
        (3, "E_TRUNCATED".to_owned())
    );
    assert_eq!(
        failure(&cut, &["inspect", "missing.safetensors"]),
        (1, "E_READ".to_owned())
    );
}

#[test]
fn verification_mismatch() {
    // A thread damages what is written, over and over: it does not win every time.
    let world = World::new(2_000_000);
    world.compress(&[]);
    let length = fs::metadata(world.target()).unwrap().len();
    fs::remove_file(world.target()).unwrap();
    for _ in 0..40 {
        let mut command = world.command(&compress(&[]));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let status = loop {
            if let Ok(mut file) = fs::OpenOptions::new().write(true).open(world.partial()) {
                use std::io::Seek;
                // Somewhere in sign_mantissa, which stands last.
                file.seek(std::io::SeekFrom::Start(length - 1_000_000))
                    .unwrap();
                let _ = file.write_all(b"damaged!");
            }
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
        };
        if status.code() != Some(0) {
            assert_eq!(status.code(), Some(4));
            world.assert_clean();
            return;
        }
        fs::remove_file(world.target()).unwrap();
    }
    panic!("the damage was never found");
}

#[test]
fn no_space() {
    let world = World::new(1_000_000);
    let disk = world.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&disk)
        .output();
    if !mounted.as_ref().is_ok_and(|done| done.status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP no file system of our own can be mounted: {mounted:?}"
        );
        return;
    }
    let failed = failure(&world, &compress(&["-o", "disk/result.safetensors"]));
    assert!(
        Command::new("umount")
            .arg(&disk)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(failed, (5, "E_NO_SPACE".to_owned()));
}

/// The limit sends a signal that would end the program in the middle.
#[cfg(unix)]
#[test]
fn a_limit_on_file_sizes() {
    let world = World::new(1_000_000);
    let limited = |args: &str| {
        let program = env!("CARGO_BIN_EXE_df11");
        let script = format!("ulimit -f 600 && exec '{program}' --json {args}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(world.path(""));
        shell.env("DF11_ARCHITECTURES", world.path("architectures"));
        let output = shell.output().unwrap();
        let error = json(&output)["error"].clone();
        assert!(
            error["hint"].as_str().unwrap().contains("ulimit -f"),
            "{error}"
        );
        (code(&output), error["code"].as_str().unwrap().to_owned())
    };
    let expected = (5, "E_NO_SPACE".to_owned());
    assert_eq!(limited("compress model.safetensors"), expected);
    world.assert_clean();
    assert_eq!(code(&world.compress(&[])), 0);
    fs::remove_file(world.source()).unwrap();
    assert_eq!(limited("restore model-DF11.safetensors"), expected);
    assert_eq!(world.files(), ["architectures", "model-DF11.safetensors"]);
}

#[test]
fn targets_that_exist() {
    let world = World::new(1000);
    fs::write(world.target(), "somebody's file").unwrap();
    assert_eq!(
        failure(&world, &compress(&[])),
        (6, "E_TARGET_EXISTS".to_owned())
    );
    assert_eq!(
        failure(&world, &compress(&["--if-exists", "error"])),
        (6, "E_TARGET_EXISTS".to_owned())
    );
    assert_eq!(fs::read(world.target()).unwrap(), b"somebody's file");
    assert_eq!(code(&world.compress(&["--if-exists", "number"])), 0);
    assert_eq!(code(&world.compress(&["--if-exists", "replace"])), 0);
    fs::remove_file(world.target()).unwrap();
    fs::write(world.partial(), "somebody's file").unwrap();
    assert_eq!(
        failure(&world, &compress(&[])),
        (6, "E_PARTIAL_FOREIGN".to_owned())
    );
}

#[test]
fn another_run_has_the_target() {
    let world = World::new(3_000_000);
    let mut first = world.start_braked();
    assert_eq!(
        failure(&world, &compress(&[])),
        (6, "E_TARGET_BUSY".to_owned())
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn signals() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let world = World::new(3_000_000);
        let mut child = world.start_braked();
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        let kill = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let status = child.wait().unwrap();
        assert!(
            asked.elapsed() < Duration::from_secs(1),
            "{signal}: {:?}",
            asked.elapsed()
        );
        assert_eq!(status.code(), Some(130), "{signal}");
        world.assert_clean();
    }
}

/// The second request ends the program at once. What it leaves, the next run replaces.
#[cfg(unix)]
#[test]
fn two_signals() {
    let world = World::new(3_000_000);
    // The first one may have ended it before the second comes.
    for _ in 0..20 {
        let child = world.start_braked();
        for _ in 0..2 {
            let mut kill = Command::new("kill");
            assert!(
                kill.args(["-INT", &child.id().to_string()])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 130);
        let (left, said) = (world.partial().exists(), errors(&output));
        assert!(!left || said.contains("NAME.partial"), "{said}");
        if left {
            let report = json(&world.compress(&["--json"]));
            assert_eq!(report["status"], "done");
            assert!(report["notes"].to_string().contains("went on from"));
            return;
        }
        world.assert_clean();
    }
    panic!("the first signal was always faster");
}

#[test]
fn a_kernel_by_name() {
    let world = World::new(300_000);
    let run = |kernel: &str| {
        let options = ["--kernel", kernel, "--if-exists", "replace", "--json"];
        world.compress(&options)
    };
    assert_eq!(code(&run("none-such")), 2);
    let mut results = Vec::new();
    for kernel in ["reference", "scalar"] {
        let done = run(kernel);
        assert_eq!(json(&done)["kernel"].as_str(), Some(kernel));
        results.push(fs::read(world.path("model-DF11.safetensors")).unwrap());
    }
    let best = world.compress(&["--if-exists", "replace"]);
    assert_eq!(code(&best), 0);
    results.push(fs::read(world.path("model-DF11.safetensors")).unwrap());
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}
