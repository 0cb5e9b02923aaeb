//! Refusals that the header shows: what is said, about which place, with what to do.

use std::{
    fs::{self, File},
    path::Path,
};

use crate::common::{
    checkpoint::{Layout, Tensor, with_length, write},
    weights,
    world::World,
};
use df11_file::{
    Code, Error, Options,
    architectures::Choice,
    options::{Cast, HeaderMode},
};

/// The refusal of the world's source, with all that every refusal has.
pub fn refusal(world: &World, options: Options) -> Error {
    let error = world.plan(options).expect_err("a refusal");
    check(&error, &world.source());
    error
}

/// The file, the place and what to do are there and are said.
pub fn check(error: &Error, path: &Path) {
    assert_eq!(error.path.as_deref(), Some(path), "{error}");
    assert!(!error.hint.is_empty(), "{error}");
    let text = error.to_string();
    let place = path.to_str().into_iter();
    let place = place
        .chain(error.unit.as_deref())
        .chain(error.tensor.as_deref());
    for part in place.chain([error.message.as_str(), error.hint.as_str()]) {
        assert!(text.contains(part), "{text} lacks {part}");
    }
    for other in &error.also {
        check(other, path);
    }
}

fn choose(world: &World, id: &str) -> Options {
    Options {
        architecture: Choice::from(id),
        ..world.options()
    }
}

pub fn one(name: &str) -> Tensor {
    Tensor::bf16(name, vec![0x80, 0x3F])
}

/// Where the unit is, if at all, and where the tensor.
fn place(error: &Error) -> (Option<&str>, Option<&str>) {
    (error.unit.as_deref(), error.tensor.as_deref())
}

/// The toy architecture's file with one part replaced.
pub fn changed(from: &str, to: &str) -> String {
    assert!(World::definition().contains(from));
    World::definition().replacen(from, to, 1)
}

#[test]
fn an_unknown_architecture_names_the_nearest() {
    let world = World::new(vec![one("toy.half"), one("one.0.weight")]);
    world.define(&changed(
        r#"all = ["toy.marker"]"#,
        r#"all = ["toy.marker", "toy.half", "toy.missing"]"#,
    ));
    fs::write(
        world.path("architectures/less.toml"),
        changed(r#"all = ["toy.marker"]"#, r#"all = ["toy.half", "b", "c"]"#)
            .replace(r#"id = "Toy""#, r#"id = "Less""#),
    )
    .unwrap();
    let error = refusal(&world, world.options());
    assert_eq!(error.code, Code::ArchUnknown);
    let nearest = "nearest: Toy (a toy), Less (a toy)";
    assert!(error.message.ends_with(nearest), "{error}");
    let chosen = refusal(&world, choose(&world, "Toy"));
    assert_eq!(chosen.code, Code::ArchUnknown, "a choice does not help");

    let alone = refusal(&world, Options::default());
    assert!(
        alone.message.ends_with("no known one is similar"),
        "{alone}"
    );
}

#[test]
fn two_architectures_that_match_are_both_named() {
    let world = World::of_unit(weights::realistic(1, 10));
    let other = world.path("architectures/other.toml");
    fs::write(&other, changed(r#"id = "Toy""#, r#"id = "Other""#)).unwrap();
    for options in [world.options(), choose(&world, "Toy")] {
        let error = refusal(&world, options);
        assert_eq!(error.code, Code::ArchAmbiguous);
        let toy = world.path("architectures/toy.toml");
        for (id, file) in [("Toy", &toy), ("Other", &other)] {
            let named = format!("{id} ({})", file.display());
            assert!(error.message.contains(&named), "{error}");
        }
    }
}

#[test]
fn a_choice_that_the_names_contradict() {
    let world = World::of_unit(weights::realistic(1, 10));
    let error = refusal(&world, choose(&world, "Flux"));
    assert_eq!(error.code, Code::ArchContradiction);
    for part in ["Flux", "Toy (a toy)"] {
        assert!(error.message.contains(part), "{error}");
    }
    let unheard = refusal(&world, choose(&world, "flux"));
    assert_eq!(unheard.code, Code::Option, "ids are exact");
    assert!(unheard.message.contains("flux"), "{unheard}");
    for id in ["Toy", "Flux", "Flux2-alt"] {
        assert!(unheard.hint.contains(id), "{unheard}");
    }

    let variant = changed(r#"id = "Toy""#, "id = \"Toy-alt\"\nvariant_of = \"Toy\"")
        .replace("[detect]\nall = [\"toy.marker\"]\n", "");
    fs::write(world.path("architectures/alt.toml"), variant).unwrap();
    for (id, found) in [("auto", "Toy"), ("Toy", "Toy"), ("Toy-alt", "Toy-alt")] {
        let plan = world.plan(choose(&world, id)).unwrap();
        assert_eq!(plan.architecture.id, found);
    }
}

#[test]
fn an_architecture_that_no_loader_takes() {
    let world = World::of_unit(weights::realistic(1, 10));
    world.define(
        r#"
        schema = 1
        id = "Toy"
        name = "a toy"
        source = "made up for tests"
        [refused]
        reason = "nothing plays it"
        remedy = "Take another toy."
        [detect]
        all = ["toy.marker"]
        "#,
    );
    for id in ["auto", "Toy", "Flux"] {
        let error = refusal(&world, choose(&world, id));
        assert_eq!(error.code, Code::ArchRefused, "{id}");
        assert_eq!(error.message, "this is a toy: nothing plays it");
        assert_eq!(error.hint, "Take another toy.");
    }
}

#[test]
fn two_names_that_become_one() {
    let tensors = ["norm.scale", "one.0.weight", "norm.weight"].map(one);
    let error = {
        let world = World::new(tensors.to_vec());
        refusal(&world, world.options())
    };
    assert_eq!(error.code, Code::NameCollision);
    assert_eq!(place(&error), (None, Some("norm.weight")));
    assert!(error.message.contains("norm.scale"), "{error}");
    assert!(error.also.is_empty());
}

#[test]
fn a_unit_that_lacks_weights() {
    let world = World::new(vec![one("three.0.b.weight"), one("three.0.a.bias")]);
    let error = refusal(&world, world.options());
    assert_eq!(error.code, Code::UnitIncomplete);
    assert_eq!(place(&error), (Some("three.0"), None));
    for missing in ["three.0.a.weight", "three.0.c.weight"] {
        assert!(error.message.contains(missing), "{error}");
    }
    assert!(!error.message.contains("three.0.b.weight"), "{error}");
}

#[test]
fn a_model_without_units() {
    let world = World::new(vec![one("two.0.weight")]);
    let error = refusal(&world, world.options());
    assert_eq!(error.code, Code::NoUnits);
    assert!(error.message.contains("Toy"), "{error}");
}

#[test]
fn units_of_no_weights_or_too_many() {
    let empty = World::of_unit(Vec::new());
    let error = refusal(&empty, empty.options());
    assert_eq!(error.code, Code::UnitSize);
    assert_eq!(place(&error), (Some("one.0"), None));

    // The kernel's index has 31 bits. The file has a hole instead of data.
    let world = World::of_unit(weights::realistic(1, 10));
    let with_weights = |weights: u64| {
        let (bytes, end) = (weights * 2, weights * 2 + 1);
        let json = format!(
            r#"{{"one.0.weight":{{"dtype":"BF16","shape":[{weights}],"data_offsets":[0,{bytes}]}},
            "toy.marker":{{"dtype":"U8","shape":[1],"data_offsets":[{bytes},{end}]}}}}"#
        );
        let head = with_length(json.as_bytes(), &[]);
        fs::write(world.source(), &head).unwrap();
        let file = File::options().write(true).open(world.source()).unwrap();
        file.set_len(head.len() as u64 + end).unwrap();
        world.plan(world.options())
    };
    let most = (1_u64 << 31) - 1;
    assert_eq!(with_weights(most).unwrap().units[0].weights, most);
    let error = with_weights(most + 1).unwrap_err();
    check(&error, &world.source());
    assert_eq!(error.code, Code::UnitSize);
    assert_eq!(place(&error), (Some("one.0"), None));
    for number in ["2147483648", "2147483647"] {
        assert!(error.message.contains(number), "{error}");
    }
}

#[test]
fn results_are_not_compressed_again() {
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let world = World::mixed(1);
        let result = world.result(Options {
            header,
            ..world.options()
        });
        fs::write(world.source(), result).unwrap();
        let error = refusal(&world, world.options());
        assert_eq!(error.code, Code::AlreadyDf11);
        let tensor = error.tensor.as_deref().unwrap();
        assert!(tensor.ends_with(".encoded_exponent"), "{error}");
    }
    // One of the two names alone is no sign.
    let world = World::new(vec![one("one.0.weight"), one("a.encoded_exponent")]);
    world.plan(world.options()).unwrap();
}

#[test]
fn quantised_dtypes() {
    // 4 elements have whole bytes in every one of them.
    let dtypes = [
        ("F4", 2),
        ("F6_E2M3", 3),
        ("F6_E3M2", 3),
        ("F8_E4M3", 4),
        ("F8_E5M2", 4),
        ("F8_E8M0", 4),
        ("F8_E4M3FNUZ", 4),
        ("F8_E5M2FNUZ", 4),
        ("I8", 4),
    ];
    for (dtype, bytes) in dtypes {
        for name in ["one.1.weight", "elsewhere"] {
            let quantised = Tensor::new(name, dtype, &[4], vec![0; bytes]);
            let world = World::new(vec![one("one.0.weight"), quantised]);
            // Before the architecture is asked for: without it the answer is the same.
            for options in [world.options(), Options::default()] {
                let error = refusal(&world, options);
                assert_eq!(error.code, Code::Quantized, "{dtype}");
                assert_eq!(place(&error), (None, Some(name)));
                assert!(error.message.contains(dtype), "{error}");
            }
        }
    }
}

#[test]
fn quantisation_markers() {
    for marker in [
        "one.0.comfy_quant",
        "one.0.scale_weight",
        "one.0.weight_scale",
        "scaled_fp8",
        "model.diffusion_model.scaled_fp8",
    ] {
        let world = World::new(vec![one("one.0.weight"), one(marker)]);
        let error = refusal(&world, world.options());
        assert_eq!(error.code, Code::Quantized, "{marker}");
        assert_eq!(place(&error), (None, Some(marker)));
        let kind = marker.rsplit('.').next().unwrap();
        assert!(error.message.contains(kind), "{error}");
    }
    let alike = World::new(vec![one("one.0.weight"), one("one.0.scale_weights")]);
    alike.plan(alike.options()).unwrap();
}

/// Headers count too: they are refused where the budget does not hold what becomes of them.
#[test]
fn headers_that_memory_does_not_hold() {
    let enough = |world: &World| Options {
        max_memory: Some(128 << 20),
        // The other would describe all these names.
        header: HeaderMode::Official,
        ..world.options()
    };
    let long = World::new(vec![one("one.0.weight"), one(&"a".repeat(4 << 20))]);
    let error = refusal(&long, long.small());
    assert_eq!(error.code, Code::NoMemory);
    assert!(error.message.contains("its header of 4194"), "{error}");
    long.run(enough(&long)).unwrap();

    let empty = |index| Tensor::new(&format!("{index}"), "U8", &[0], Vec::new());
    let mut many: Vec<_> = (0..30_000).map(empty).collect();
    many.push(one("one.0.weight"));
    let many = World::new(many);
    assert_eq!(many.fails(many.small()), Code::NoMemory);
    many.run(enough(&many)).unwrap();
}

#[test]
fn files_that_are_something_else() {
    let world = World::of_unit(Vec::new());
    let cases: [(&[u8], &str); 8] = [
        (b"GGUF\x03\0\0\0\0\0\0\0", "GGUF"),
        (b"\x80\x02}q\x00X\x05\x00\x00\x00model", "pickle"),
        (b"PK\x03\x04\x00\x00\x08\x08\x00\x00", "pickle"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git LFS"),
        (b"<!doctype html><title>Sign in</title>", "web page"),
        (b"", "empty"),
        (b"\x02\0\0\0{}", "too short"),
        (b"Repository not found", "not a safetensors file"),
    ];
    for (bytes, words) in cases {
        fs::write(world.source(), bytes).unwrap();
        let error = refusal(&world, world.options());
        assert_eq!(error.code, Code::NotSafetensors, "{words}");
        assert!(error.message.contains(words), "{error}");
    }
    fs::remove_file(world.source()).unwrap();
    fs::create_dir(world.source()).unwrap();
    let error = refusal(&world, world.options());
    assert_eq!(error.code, Code::NotSafetensors);
    assert!(error.message.contains("folder"), "{error}");
}

#[test]
fn dtypes_that_cannot_become_bf16() {
    let world = World::new(vec![Tensor::new("one.0.weight", "I64", &[1], vec![0; 8])]);
    for cast in [Cast::None, Cast::ToBf16] {
        let error = refusal(
            &world,
            Options {
                cast,
                ..world.options()
            },
        );
        assert_eq!(error.code, Code::Dtype);
        assert_eq!(place(&error), (Some("one.0"), Some("one.0.weight")));
        assert!(error.message.contains("I64"), "{error}");
    }
}

/// Some values are read to tell what rounding would lose; the refusal stays.
#[test]
fn dtypes_of_which_rounding_may_lose_nothing() {
    let hint = |values: Vec<Tensor>| {
        let world = World::new(values);
        let error = refusal(&world, world.options());
        assert_eq!(error.code, Code::Dtype);
        assert!(
            error
                .also
                .iter()
                .all(|other| !other.hint.contains("values"))
        );
        error.hint
    };
    let exact = || Tensor::f32("one.0.weight", &[0.5; 3_000]);
    let found = hint(vec![
        exact(),
        Tensor::new("one.1.weight", "F16", &[1], vec![0, 0x3C]),
    ]);
    let words = "All 3001 values of such tensors are exact in BF16: to-bf16 loses nothing.";
    assert!(found.ends_with(words), "{found}");
    let mut values = [1.001; 10];
    values[0] = 1.0;
    let found = hint(vec![exact(), Tensor::f32("one.1.weight", &values)]);
    let words = "Of the first 3010 values that were looked at, to-bf16 would change 9.";
    assert!(found.ends_with(words), "{found}");
    // More than is read: 4 bytes behind 64 MiB nobody has looked at.
    let mut many = vec![0.5; (64 << 20) / 4 + 1];
    many[(64 << 20) / 4] = 1.001;
    let found = hint(vec![Tensor::f32("one.0.weight", &many)]);
    assert!(found.contains("The 16777216 values"), "{found}");
    assert!(
        found.ends_with("may lose nothing; its report tells."),
        "{found}"
    );
    let none = hint(vec![Tensor::new("one.0.weight", "I64", &[1], vec![0; 8])]);
    assert!(!none.contains("values"), "{none}");
}

#[test]
fn several_faults_are_all_said() {
    let world = World::new(vec![
        one("three.1.a.weight"),
        one("norm.scale"),
        one("norm.weight"),
        Tensor::bf16("one.1.weight", Vec::new()),
        Tensor::f32("one.2.weight", &[1.0]),
        one("one.3.weight"),
    ]);
    let error = refusal(&world, world.options());
    let all: Vec<_> = [&error].into_iter().chain(&error.also).collect();
    let found: Vec<_> = all.iter().map(|fault| (fault.code, place(fault))).collect();
    let expected = [
        (Code::NameCollision, (None, Some("norm.weight"))),
        (Code::UnitSize, (Some("one.1"), None)),
        (Code::Dtype, (Some("one.2"), Some("one.2.weight"))),
        (Code::UnitIncomplete, (Some("three.1"), None)),
    ];
    assert_eq!(found, expected);
    assert_eq!(error.to_string().lines().count(), expected.len());

    // Mended one by one, they go away one by one.
    let mended = [
        "three.1.a.weight",
        "three.1.b.weight",
        "three.1.c.weight",
        "one.2.weight",
    ];
    let tensors: Vec<_> = mended.into_iter().chain(["toy.marker"]).map(one).collect();
    write(&world.source(), &tensors, &Layout::default());
    assert_eq!(world.plan(world.options()).unwrap().units.len(), 2);
}
