//! `df11 verify --level kernel`: where the kernel's file is looked for, what is said, exit codes. The driver is a stand-in.

use std::{fs, path::Path, process::Command};

use fake_cuda::{FakeDriver, PTX};

use crate::common::{World, code, errors, json};

/// A compressed file, and a driver beside it.
fn world() -> (World, FakeDriver) {
    let world = World::new(60_000);
    assert_eq!(code(&world.compress(&[])), 0);
    let driver = FakeDriver::new(&world.path("")).unwrap();
    (world, driver)
}

/// The check, where no Python is.
fn verify(world: &World, args: &[&str]) -> Command {
    let file = [
        "--json",
        "verify",
        "model-DF11.safetensors",
        "--level",
        "kernel",
    ];
    let mut command = world.command(&[&file, args].concat());
    command
        .env_remove("VIRTUAL_ENV")
        .env_remove("CONDA_PREFIX")
        .env("PATH", "")
        .env("HOME", world.path("nobody"));
    command
}

/// Puts the kernel into the Python that has a prefix.
fn install(prefix: &Path) {
    let package = prefix.join("lib/python3.11/site-packages/dfloat11");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("decode.ptx"), PTX).unwrap();
    fs::create_dir_all(prefix.join("bin")).unwrap();
    fs::write(prefix.join("bin/python3"), "").unwrap();
}

#[test]
fn without_a_driver_it_is_one_sentence_and_exit_code_2() {
    let (world, _) = world();
    let output = verify(&world, &["--cuda-driver", "no-such-driver.so"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 2);
    assert_eq!(json(&output)["error"]["code"], "E_NO_GPU");
    let said = errors(&output);
    assert!(
        said.starts_with("df11: there is no NVIDIA driver here"),
        "{said}"
    );
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
}

#[test]
fn the_kernel_is_found_where_python_keeps_it() {
    let (world, driver) = world();
    let driver = driver.path().to_str().unwrap();
    let run = |variable: &str, value: &Path| {
        verify(&world, &["--cuda-driver", driver])
            .env(variable, value)
            .output()
            .unwrap()
    };
    for (variable, folder, below) in [
        ("VIRTUAL_ENV", "venv", ""),
        ("CONDA_PREFIX", "conda", ""),
        ("PATH", "python", "bin"),
        ("HOME", "home", ""),
    ] {
        let prefix = world.path(folder);
        let place = if variable == "HOME" {
            prefix.join(".local")
        } else {
            prefix.clone()
        };
        let value = prefix.join(below);
        let before = run(variable, &value);
        assert_eq!(json(&before)["error"]["code"], "E_NO_KERNEL", "{variable}");
        assert_eq!(code(&before), 2);
        install(&place);
        let after = run(variable, &value);
        assert_eq!(code(&after), 0, "{variable}: {}", errors(&after));
        let report = json(&after);
        assert_eq!(
            (&report["schema"], &report["level"]),
            (&"df11.verify/1".into(), &"kernel".into())
        );
        let found = report["kernel_file"].as_str().unwrap();
        assert!(Path::new(found).starts_with(&place), "{found}");
    }
}

#[test]
fn what_was_done_is_said() {
    let (world, driver) = world();
    fs::write(world.path("some.ptx"), PTX).unwrap();
    let args = [
        "verify",
        "model-DF11.safetensors",
        "--level",
        "kernel",
        "--kernel-ptx",
        "some.ptx",
        "--cuda-driver",
    ];
    let output = world.run(&[&args[..], &[driver.path().to_str().unwrap()]].concat());
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(said.contains("sound, level kernel"), "{said}");
    assert!(
        said.contains("decoded on Fake GPU, CUDA 12.4, with some.ptx"),
        "{said}"
    );
}
