//! Compressed and restored: the very bytes of the source.

use std::fs;

use crate::common::{
    checkpoint::{Layout, Tensor},
    forged::Forged,
    weights,
    world::World,
};
use df11_file::{
    Code, Error, Options, Status,
    options::{Cast, HeaderMode},
    restore::{self, RestoreOptions, RestoreReport},
};

fn small(name: &str, n: usize) -> Tensor {
    Tensor::bf16(name, weights::realistic(n as u64, n))
}

fn metadata(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = pairs.iter();
    owned
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn restored(world: &World, threads: usize) -> Result<RestoreReport, Error> {
    let options = RestoreOptions {
        threads: Some(threads),
        ..RestoreOptions::default()
    };
    let target = world.path("back.safetensors");
    restore::start(&world.target(), Some(&target), options)?.result()
}

/// Compresses, restores on one thread and on several, and compares with the source.
fn assert_comes_back(world: &World) {
    world.run(world.options()).unwrap();
    let source = fs::read(world.source()).unwrap();
    for threads in [1, 5] {
        let report = restored(world, threads).unwrap();
        assert_eq!((report.status, report.exact), (Status::Done, true));
        assert_eq!(report.target_bytes, source.len() as u64);
        let back = world.path("back.safetensors");
        // No assert_eq: the bytes are too many to print.
        assert!(fs::read(&back).unwrap() == source, "{threads} threads");
        fs::remove_file(back).unwrap();
    }
    assert_eq!(
        world.files(),
        [
            "architectures",
            "model-DF11.safetensors",
            "model.safetensors"
        ]
    );
}

/// All kinds of tensors, and names that need escapes.
fn all_kinds() -> Vec<Tensor> {
    vec![
        small("three.1.b.weight", 3_000),
        small("three.1.a.weight", 700_000),
        Tensor::bf16("three.1.c.weight", Vec::new()),
        small("one.0.weight", 40_000),
        small("three.1.norm.scale", 64),
        Tensor::f32("norm \"é\\日本", &[1.5, -2.5]),
        Tensor::new("flags", "BOOL", &[3], vec![1, 0, 1]),
        Tensor::new("wide", "F64", &[1], vec![9; 8]),
        Tensor::new("half", "F16", &[2, 1], vec![1, 2, 3, 4]),
        Tensor::new("large", "U8", &[2_500_001], vec![5; 2_500_001]),
        Tensor::new("empty", "I32", &[0, 7], Vec::new()),
        Tensor::new("junk.state", "U8", &[3], vec![7, 8, 9]),
        Tensor::new("junk.nothing", "F32", &[0], Vec::new()),
        Tensor::f32("junk.sigma", &[0.5]),
    ]
}

#[test]
fn every_kind_of_tensor_in_every_layout() {
    let foreign = metadata(&[
        ("modelspec.title", "Zeit \"µ\"\n"),
        ("df11.format", "not ours"),
        ("empty", ""),
    ]);
    for reversed_data in [false, true] {
        for odd in [false, true] {
            let layout = Layout {
                metadata: if odd { foreign.clone() } else { Vec::new() },
                reversed_data,
                odd,
            };
            assert_comes_back(&World::with_layout(all_kinds(), &layout));
        }
    }
}

#[test]
fn only_units() {
    let world = World::new(vec![small("one.0.weight", 1), small("one.1.weight", 9)]);
    assert_comes_back(&world);
}

#[test]
fn weights_of_every_kind() {
    assert_comes_back(&World::new(vec![
        Tensor::bf16("one.0.weight", weights::constant(1, 400_000)),
        Tensor::bf16("one.1.weight", weights::near_constant(2, 400_000, 50_000)),
        Tensor::bf16("one.2.weight", weights::many_tables(3, 200_000)),
        Tensor::bf16("one.3.weight", weights::noise(4, 200_000)),
    ]));
}

#[test]
fn a_prefix_and_what_lies_beside_the_model() {
    let world = World::new(vec![
        small("model.one.0.weight", 5_000),
        Tensor::bf16("model.toy.marker", vec![1, 2]),
        Tensor::f32("vae.scale", &[1.0, 2.0]),
        small("model.norm.scale", 10),
    ]);
    assert_comes_back(&world);
}

#[test]
fn many_tensors() {
    let mut tensors = Vec::new();
    for index in 0..700 {
        tensors.push(small(&format!("norm.{index}"), index % 5));
        if index % 10 == 0 {
            tensors.push(small(&format!("one.{index}.weight"), 1 + index * 70));
        }
    }
    assert_comes_back(&World::new(tensors));
}

#[test]
fn every_kernel() {
    let world = World::new(all_kinds());
    world.run(world.options()).unwrap();
    let source = fs::read(world.source()).unwrap();
    for kernel in df11_codec::Kernel::available() {
        let options = RestoreOptions {
            kernel,
            ..RestoreOptions::default()
        };
        let back = world.path("back.safetensors");
        let task = restore::start(&world.target(), Some(&back), options).unwrap();
        task.result().unwrap();
        assert!(fs::read(&back).unwrap() == source, "{kernel:?}");
        fs::remove_file(back).unwrap();
    }
}

/// Refused at once: the error, and no file.
fn refused(world: &World) -> Error {
    let error = restored(world, 2).expect_err("a refusal");
    assert!(!world.path("back.safetensors").exists());
    assert!(!world.path("back.safetensors.partial").exists());
    error
}

#[test]
fn large_dropped_tensors_are_missing() {
    let world = World::new(vec![
        small("one.0.weight", 100),
        Tensor::new("junk.empty", "U8", &[0], Vec::new()),
        Tensor::new("junk.large", "U8", &[65_530], vec![1; 65_530]),
        Tensor::new("junk.small", "U8", &[7], vec![1; 7]),
    ]);
    world.run(world.options()).unwrap();
    let error = refused(&world);
    assert_eq!(error.code, Code::NotRestorable);
    assert_eq!(error.tensor.as_deref(), Some("junk.large"));
    assert_eq!(error.path, Some(world.target()));
    assert!(
        error.message.contains("2 tensors with 65537 bytes"),
        "{error}"
    );
}

#[test]
fn rounded_weights_are_missing() {
    let world = World::new(vec![
        small("three.0.a.weight", 100),
        Tensor::f32("three.0.b.weight", &[1.001, 2.0]),
        Tensor::f32("three.0.c.weight", &[1.0]),
    ]);
    world
        .run(Options {
            cast: Cast::ToBf16,
            ..world.options()
        })
        .unwrap();
    let error = refused(&world);
    assert_eq!(error.code, Code::NotRestorable);
    assert_eq!(error.tensor.as_deref(), Some("three.0.b.weight"));
    assert!(error.message.contains("2 tensors with 12 bytes"), "{error}");
}

/// What rounding did not change is widened again. Every dtype, and a kept one beside it; tensors that end within a run of kernel chunks.
#[test]
fn exact_weights_come_back_in_their_dtype() {
    let bf16 = |seed, n| weights::realistic(seed, n);
    let wide = |bytes: &[u8]| -> Vec<u8> {
        let pairs = bytes.chunks_exact(2);
        pairs.flat_map(|high| [0, 0, high[0], high[1]]).collect()
    };
    let doubles = wide(&bf16(3, 3_000));
    let doubles = doubles
        .chunks_exact(4)
        .map(|bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap())));
    let doubles: Vec<u8> = doubles.flat_map(f64::to_le_bytes).collect();
    let halves = (0..5_000_u16).flat_map(|n| (0x3000 + (n % 512 << 3)).to_le_bytes());
    let world = World::new(vec![
        Tensor::new(
            "three.0.a.weight",
            "F32",
            &[700_001],
            wide(&bf16(1, 700_001)),
        ),
        Tensor::bf16("three.0.b.weight", bf16(2, 90_000)),
        Tensor::new("three.0.c.weight", "F64", &[3_000], doubles),
        Tensor::new("one.0.weight", "F16", &[5_000], halves.collect()),
        Tensor::f32("norm.weight", &[1.001]),
    ]);
    let cast = Options {
        cast: Cast::ToBf16,
        ..world.options()
    };
    let report = world.run(cast).unwrap();
    assert_eq!(report.cast.unwrap().changed_values, 0);
    assert_eq!(report.cast.unwrap().tensors, 3);
    let source = fs::read(world.source()).unwrap();
    for threads in [1, 4] {
        restored(&world, threads).unwrap();
        let back = world.path("back.safetensors");
        assert!(fs::read(&back).unwrap() == source);
        fs::remove_file(back).unwrap();
    }
    // The stamp says so; without it nobody knows, and nobody tries.
    let mut forged = Forged::read(&world.target());
    assert_eq!(*forged.meta("cast"), "exact");
    forged.remove("cast");
    forged.write(&world.target());
    assert_eq!(refused(&world).code, Code::NotRestorable);
    // One that claims it and is not is found out.
    let mut lie = Forged::read(&world.target());
    lie.set("cast", "exact");
    lie.source_header(|header| {
        let (a, c) = (&header["three.0.a.weight"], &header["three.0.c.weight"]);
        assert_eq!((&a["dtype"], &c["dtype"]), (&"F32".into(), &"F64".into()));
        header["one.0.weight"]["dtype"] = "BF16".into();
    });
    lie.write(&world.target());
    assert_eq!(refused(&world).code, Code::Verify);
}

/// A cast that had nothing to do took nothing away.
#[test]
fn bf16_units_come_back_whatever_the_cast() {
    let world = World::mixed(3);
    world
        .run(Options {
            cast: Cast::ToBf16,
            ..world.options()
        })
        .unwrap();
    restored(&world, 2).unwrap();
    let back = fs::read(world.path("back.safetensors")).unwrap();
    assert!(back == fs::read(world.source()).unwrap());
}

#[test]
fn files_without_a_description() {
    let world = World::mixed(1);
    world
        .run(Options {
            header: HeaderMode::Official,
            ..world.options()
        })
        .unwrap();
    // Nobody knows a toy: the architecture file is not named here.
    let error = refused(&world);
    assert_eq!(
        (error.code, error.path),
        (Code::ArchUnknown, Some(world.target()))
    );
    fs::copy(world.source(), world.target()).unwrap();
    assert_eq!(refused(&world).code, Code::NotDf11);
    fs::remove_file(world.target()).unwrap();
    assert_eq!(refused(&world).code, Code::Read);
}

#[test]
fn no_threads() {
    let world = World::mixed(1);
    world.run(world.options()).unwrap();
    assert_eq!(
        restored(&world, 0).expect_err("no threads").code,
        Code::Option
    );
}
