//! One case for each code: it is met, and the error names the file, the place in it, and what to do.

use std::{fs, io::Write, path::PathBuf};

use df11_file::{
    Code, Error, Options,
    architectures::Choice,
    check::{self, CheckOptions},
    options::IfExists,
    plan,
    restore::{self, RestoreOptions},
};

use crate::common::{
    checkpoint::{Tensor, with_length},
    folder,
    result::ResultFile,
    weights,
    world::{World, wait_for_half},
};

/// Codes without a case here, and why.
const ELSEWHERE: [(Code, &str); 5] = [
    (
        Code::Internal,
        "a fault of the program, which nobody can make from outside",
    ),
    (
        Code::NoMemory,
        "the system refuses memory only to a process of its own: tests/native/test_errors.py",
    ),
    (Code::NoGpu, "a machine without a driver: gpu_failures.rs"),
    (
        Code::NoKernel,
        "a driver, or its stand-in, is needed: gpu_failures.rs",
    ),
    (Code::Gpu, "a driver that fails: gpu_failures.rs"),
];

/// A case: the error, and the file that it must name.
type Case = (Code, fn(&World) -> (Error, PathBuf));

const CASES: [Case; 36] = [
    (Code::Option, |world| {
        let options = Options {
            architecture: Choice::from("Unheard"),
            ..world.options()
        };
        (planned(world, options), world.source())
    }),
    (Code::NotSafetensors, |world| {
        instead(world, b"GGUF\x03\0\0\0\0\0\0\0")
    }),
    (Code::Header, |world| {
        let tensor = r#""a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#;
        let json = format!("{{{tensor},{tensor}}}");
        let seen = instead(world, &with_length(json.as_bytes(), &[0]));
        assert_eq!(seen.0.tensor.as_deref(), Some("a"));
        seen
    }),
    (Code::Truncated, |world| {
        let bytes = fs::read(world.source()).unwrap();
        instead(world, &bytes[..bytes.len() - 1])
    }),
    (Code::TrailingBytes, |world| {
        let bytes = fs::read(world.source()).unwrap();
        instead(world, &[&bytes, [7].as_slice()].concat())
    }),
    (Code::Index, |world| {
        let index = world.path("model.safetensors.index.json");
        fs::write(&index, "{}").unwrap();
        (unplanned(&index, world), index)
    }),
    (Code::Config, |world| {
        let config = world.path("config.json");
        fs::write(&config, "[]").unwrap();
        (unplanned(world.folder(), world), config)
    }),
    (Code::AlreadyDf11, |world| {
        instead(world, &world.result(world.options()))
    }),
    (Code::NotDf11, |world| {
        (checked(&world.source()), world.source())
    }),
    (Code::Structure, |world| {
        let error = damaged(world, "luts", |_| 250);
        assert_eq!(error.unit.as_deref(), Some("one.0"));
        (error, world.target())
    }),
    (Code::Verify, |world| {
        let error = damaged(world, "sign_mantissa", |byte| byte ^ 1);
        let tensor = error.tensor.as_deref();
        assert_eq!(tensor, Some("one.0.sign_mantissa"));
        (error, world.target())
    }),
    (Code::NotRestorable, |world| {
        let world_path = add(world, Tensor::bf16("junk.large", vec![0; 70_000]));
        world.run(world.options()).unwrap();
        fs::remove_file(world_path).unwrap();
        let outcome = restore::start(&world.target(), None, RestoreOptions::default());
        let error = outcome.err().unwrap();
        assert_eq!(error.tensor.as_deref(), Some("junk.large"));
        (error, world.target())
    }),
    (Code::Quantized, |world| {
        let path = add(world, Tensor::new("x.weight", "F8_E4M3", &[1], vec![1]));
        (planned(world, world.options()), path)
    }),
    (Code::ArchUnknown, |world| {
        (planned(world, Options::default()), world.source())
    }),
    (Code::ArchAmbiguous, |world| {
        let other = World::definition().replace(r#"id = "Toy""#, r#"id = "Other""#);
        fs::write(world.path("architectures/other.toml"), other).unwrap();
        (planned(world, world.options()), world.source())
    }),
    (Code::ArchContradiction, |world| {
        let options = Options {
            architecture: Choice::from("Flux"),
            ..world.options()
        };
        (planned(world, options), world.source())
    }),
    (Code::ArchRefused, |world| {
        let start = World::definition().find("[loader]").unwrap();
        let refused = "[refused]\nreason = \"no loader\"\nremedy = \"Keep it.\"\n[detect]\nall = [\"toy.marker\"]";
        world.define(&format!("{}{refused}", &World::definition()[..start]));
        (planned(world, world.options()), world.source())
    }),
    (Code::Definition, |world| {
        world.define("schema = 1");
        (
            planned(world, world.options()),
            world.path("architectures/toy.toml"),
        )
    }),
    (Code::UnitIncomplete, |world| {
        let path = add(world, Tensor::bf16("three.0.a.weight", vec![0; 2]));
        let error = planned(world, world.options());
        assert_eq!(error.unit.as_deref(), Some("three.0"));
        (error, path)
    }),
    (Code::NoUnits, |world| {
        world.define(&World::definition().replace(r"one\.\d+", r"two\.\d+"));
        (planned(world, world.options()), world.source())
    }),
    (Code::NameCollision, |world| {
        add(world, Tensor::bf16("norm.scale", vec![0; 2]));
        let path = add(world, Tensor::bf16("norm.weight", vec![0; 2]));
        let error = planned(world, world.options());
        assert_eq!(error.tensor.as_deref(), Some("norm.weight"));
        (error, path)
    }),
    (Code::FileName, |world| {
        let name = format!("one.{}", "9".repeat(300));
        add(world, Tensor::bf16(&format!("{name}.weight"), vec![0; 2]));
        let error = in_folder(world, "diffusers");
        assert_eq!(error.unit, Some(name));
        (error, world.folder().to_path_buf())
    }),
    (Code::Tied, |world| {
        add(world, Tensor::bf16("embed.weight", vec![0; 2]));
        add(world, Tensor::bf16("head.weight", vec![0; 4]));
        let error = in_folder(world, "transformers");
        assert_eq!(error.tensor.as_deref(), Some("head.weight"));
        (error, world.folder().to_path_buf())
    }),
    (Code::Dtype, |world| {
        let path = add(world, Tensor::f32("one.1.weight", &[1.5]));
        let error = planned(world, world.options());
        assert_eq!(error.tensor.as_deref(), Some("one.1.weight"));
        (error, path)
    }),
    (Code::Exponent, |world| {
        let path = add(world, Tensor::bf16("one.1.weight", vec![0, 0, 0x80, 0x7F]));
        let error = ran(world);
        let place = (error.unit.as_deref(), error.tensor.as_deref(), error.index);
        assert_eq!(place, (Some("one.1"), Some("one.1.weight"), Some(1)));
        (error, path)
    }),
    (Code::NoGain, |world| {
        let path = add(
            world,
            Tensor::bf16("one.1.weight", weights::noise(1, 600_000)),
        );
        (ran(world), path)
    }),
    (Code::UnitSize, |world| {
        let path = add(world, Tensor::bf16("one.1.weight", Vec::new()));
        let error = planned(world, world.options());
        assert_eq!(error.unit.as_deref(), Some("one.1"));
        (error, path)
    }),
    (Code::SourceChanged, |world| {
        let plan = world.plan(world.options()).unwrap();
        let file = fs::File::options().append(true).open(world.source());
        file.unwrap().write_all(&[0]).unwrap();
        let outcome = df11_file::Job::start(plan).and_then(|job| job.result());
        (outcome.unwrap_err(), world.source())
    }),
    (Code::Read, |world| {
        fs::remove_file(world.source()).unwrap();
        (planned(world, world.options()), world.source())
    }),
    (Code::Write, |world| {
        let folder = world.path("nowhere");
        (to(world, &folder.join("a.safetensors")), folder)
    }),
    (Code::NoSpace, |world| {
        // 8 TiB that are a hole.
        let bytes = 1_u64 << 43;
        let json = format!(
            r#"{{"one.0.weight":{{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}},
            "toy.marker":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[2,{}]}}}}"#,
            bytes + 2
        );
        let head = with_length(json.as_bytes(), &[]);
        fs::write(world.source(), &head).unwrap();
        let file = fs::File::options().write(true).open(world.source());
        file.unwrap()
            .set_len(head.len() as u64 + bytes + 2)
            .unwrap();
        (ran(world), world.target())
    }),
    (Code::TargetExists, |world| {
        fs::write(world.target(), "somebody's").unwrap();
        let options = Options {
            if_exists: IfExists::Error,
            ..world.options()
        };
        (planned(world, options), world.target())
    }),
    (Code::TargetBusy, |world| {
        let braked = Options {
            max_rate: Some(10_000),
            ..world.options()
        };
        let _first = world.start(braked);
        while !world.partial().exists() {
            std::thread::yield_now();
        }
        (ran(world), world.target())
    }),
    (Code::TargetIsSource, |world| {
        (to(world, &world.source()), world.source())
    }),
    (Code::PartialForeign, |world| {
        fs::write(world.partial(), "somebody's").unwrap();
        (ran(world), world.partial())
    }),
    (Code::Cancelled, |world| {
        let braked = Options {
            max_rate: Some(100_000),
            ..world.options()
        };
        let job = world.start(braked);
        wait_for_half(&job);
        job.cancel();
        (job.result().unwrap_err(), world.source())
    }),
];

#[test]
fn every_code_has_a_case() {
    let named: Vec<_> = CASES.iter().map(|(code, _)| *code).collect();
    for code in Code::ALL {
        let elsewhere = ELSEWHERE.iter().filter(|(other, _)| other == code);
        let cases = named.iter().filter(|other| *other == code).count() + elsewhere.count();
        assert_eq!(cases, 1, "{} needs one case, here", code.as_str());
    }
}

#[test]
fn every_case_is_met_and_explained() {
    for (code, make) in CASES {
        let world = World::of_unit(weights::realistic(1, 40_000));
        let (error, file) = make(&world);
        assert_eq!(error.code, code, "{error}");
        let text = error.to_string();
        if code == Code::Cancelled {
            // Nothing is wrong with any file, and nothing is to be done.
            assert!(text.contains("nothing was left behind"), "{text}");
            continue;
        }
        assert_eq!(error.path.as_deref(), Some(file.as_path()), "{error}");
        assert!(
            !error.message.is_empty() && !error.hint.is_empty(),
            "{error:?}"
        );
        let place = [error.unit, error.tensor].into_iter().flatten();
        let said = [file.display().to_string(), error.message, error.hint];
        for part in place.chain(said) {
            assert!(text.contains(&part), "{text} lacks {part}");
        }
    }
}

/// The refusal of the world as a model folder of a layout.
fn in_folder(world: &World, layout: &str) -> Error {
    fs::write(world.path("config.json"), "{}").unwrap();
    world.define(&folder::definition(layout));
    let target = std::env::temp_dir().join("df11-never-written");
    plan(world.folder(), Some(&target), world.options())
        .map(|_| ())
        .unwrap_err()
}

/// The refusal of a folder or an index.
fn unplanned(source: &std::path::Path, world: &World) -> Error {
    plan(source, None, world.options()).map(|_| ()).unwrap_err()
}

fn planned(world: &World, options: Options) -> Error {
    world.plan(options).unwrap_err()
}

fn ran(world: &World) -> Error {
    world.run(world.options()).unwrap_err()
}

fn to(world: &World, target: &std::path::Path) -> Error {
    plan(&world.source(), Some(target), world.options()).unwrap_err()
}

fn checked(file: &std::path::Path) -> Error {
    let task = check::start(file, CheckOptions::default());
    task.and_then(|task| task.result()).unwrap_err()
}

/// What a plan says where the source has other bytes.
fn instead(world: &World, bytes: &[u8]) -> (Error, PathBuf) {
    fs::write(world.source(), bytes).unwrap();
    (planned(world, world.options()), world.source())
}

/// Adds a tensor to the source.
fn add(world: &World, tensor: Tensor) -> PathBuf {
    world.add(tensor);
    world.source()
}

/// What a check says where the first byte of a field of the unit is changed.
fn damaged(world: &World, field: &str, change: fn(u8) -> u8) -> Error {
    let mut bytes = world.result(world.options());
    let at = ResultFile::parse(&bytes).offsets[&format!("one.0.{field}")];
    let byte = &mut bytes[at as usize];
    *byte = change(*byte);
    fs::write(world.target(), bytes).unwrap();
    checked(&world.target())
}
