//! Files that do not describe themselves and cannot be restored: a code, every tensor's name, and no file.

use std::fs;

use serde_json::json;

use crate::common::{
    checkpoint::Tensor,
    forged::Forged,
    shaped::{self, vector, weight},
    world::World,
};
use df11_file::{
    Code, Error,
    restore::{self, RestoreOptions},
};

/// Fails before anything is written.
fn refused(world: &World, options: RestoreOptions) -> Error {
    let error = restore::start(&world.target(), None, options).expect_err("a refusal");
    assert_eq!(error.path, Some(world.target()), "{error}");
    for also in &error.also {
        assert_eq!(also.path, Some(world.target()), "{also}");
    }
    shaped::assert_untouched(world);
    error
}

/// The refusal of a model with these tensors besides, or instead of those of the same name.
fn refused_with(others: Vec<Tensor>) -> Error {
    let mut tensors = shaped::tensors();
    tensors.retain(|tensor| others.iter().all(|other| other.name != tensor.name));
    tensors.extend(others);
    let world = shaped::compressed(tensors);
    refused(&world, shaped::restoring(&world))
}

fn assert_no_shape(error: &Error, tensor: &str, message: &str) {
    assert_eq!(error.code, Code::NotRestorable, "{error}");
    assert_eq!(error.tensor.as_deref(), Some(tensor), "{error}");
    assert!(error.message.contains(message), "{error}");
    assert!(error.hint.contains("Nothing was written"), "{error}");
}

#[test]
fn shapes_that_nothing_tells() {
    let mut tensors = shaped::tensors();
    let gone = ["three.1.b.bias", "one.0.norm", "width.scale"];
    tensors.retain(|tensor| !gone.contains(&tensor.name.as_str()));
    let world = shaped::compressed(tensors);
    let error = refused(&world, shaped::restoring(&world));
    let tensor = |error: &Error| error.tensor.clone().unwrap();
    assert_eq!(tensor(&error), "one.0.weight");
    assert!(
        error.message.contains("one.0.norm or one.0.second_norm"),
        "{error}"
    );
    // Not c: its bias is there.
    let also: Vec<_> = error.also.iter().map(tensor).collect();
    assert_eq!(also, ["three.1.a.weight", "three.1.b.weight"]);
    assert!(error.also[0].message.contains("width.weight"), "{error}");
    assert!(error.also[1].message.contains("three.1.b.bias"), "{error}");
    assert!(
        error
            .also
            .iter()
            .all(|also| also.code == Code::NotRestorable)
    );
    assert!(error.to_string().contains("toy.toml"), "{error}");
}

#[test]
fn shapes_that_are_told_in_two_ways() {
    let error = refused_with(vec![vector("three.1.c.bias", 30)]);
    assert_no_shape(
        &error,
        "three.1.c.weight",
        "[30, 10] by three.1.c.bias, and [60, 5] by width.weight",
    );
    let error = refused_with(vec![vector("one.0.second_norm", 10)]);
    assert_no_shape(&error, "one.0.weight", "one.0.norm and one.0.second_norm");
}

#[test]
fn lengths_that_do_not_fit() {
    let error = refused_with(vec![vector("three.1.b.bias", 31)]);
    assert_no_shape(
        &error,
        "three.1.b.weight",
        "2100 weights, which do not fit a side of 31",
    );
    let error = refused_with(vec![vector("three.1.b.bias", 4_200)]);
    assert_no_shape(&error, "three.1.b.weight", "do not fit a side of 4200");
    let error = refused_with(vec![vector("three.1.b.bias", 0)]);
    assert_no_shape(&error, "three.1.b.weight", "do not fit a side of 0");
    let error = refused_with(vec![weight("three.1.b.bias", 5, 6)]);
    assert_no_shape(
        &error,
        "three.1.b.weight",
        "three.1.b.bias has the shape [5, 6]",
    );
    let error = refused_with(vec![vector("width.scale", 60)]);
    assert_no_shape(
        &error,
        "three.1.a.weight",
        "width.weight has the shape [60]",
    );
    // No weights: any shape with a side of 0 would do.
    let error = refused_with(vec![Tensor::new(
        "three.1.b.weight",
        "BF16",
        &[30, 0],
        Vec::new(),
    )]);
    assert_no_shape(&error, "three.1.b.weight", "it has 0 weights");
}

/// Sides that no file could hold: the header alone says so.
#[test]
fn huge_sides() {
    let world = shaped::compressed(shaped::tensors());
    for shape in [json!([0, 1_u64 << 63]), json!([0, u64::MAX])] {
        let mut file = Forged::read(&world.target());
        let width = &mut file.header["width.weight"];
        let end = width["data_offsets"][1].clone();
        *width = json!({"dtype": "BF16", "shape": shape, "data_offsets": [end, end]});
        // The bytes that were its own.
        let start = end.as_u64().unwrap() - 160;
        file.header["rest"] = json!({"dtype": "BF16", "shape": [80], "data_offsets": [start, end]});
        file.write(&world.target());
        let error = refused(&world, shaped::restoring(&world));
        assert_no_shape(
            &error,
            "three.1.a.weight",
            "width.weight has the shape [0, ",
        );
    }
}

/// The bytes of a tensor in the file.
fn bytes<'a>(file: &'a mut Forged, name: &str) -> &'a mut [u8] {
    let offsets = &file.header[name]["data_offsets"];
    let at = |end: usize| offsets[end].as_u64().unwrap() as usize;
    let range = at(0)..at(1);
    &mut file.data[range]
}

#[test]
fn split_positions_that_lie() {
    let world = shaped::compressed(shaped::tensors());
    let sound = Forged::read(&world.target());
    let cases: [(&[u64; 2], Code); 6] = [
        (&[60_000, 59_999], Code::Structure),
        (&[60_000, u64::MAX], Code::Structure),
        (&[1 << 40, 1 << 41], Code::Structure),
        (&[60_000, 62_101], Code::NotRestorable),
        (&[0, 62_100], Code::NotRestorable),
        (&[60_000, 60_000], Code::NotRestorable),
    ];
    for (lie, code) in cases {
        let mut file = Forged::read(&world.target());
        let splits: Vec<_> = lie.iter().flat_map(|split| split.to_le_bytes()).collect();
        let truth = bytes(&mut file, "three.1.split_positions");
        assert_eq!(truth, [60_000_u64, 62_100].map(u64::to_le_bytes).concat());
        truth.copy_from_slice(&splits);
        file.write(&world.target());
        let error = refused(&world, shaped::restoring(&world));
        assert_eq!(error.code, code, "{lie:?}: {error}");
        assert_eq!(error.unit.as_deref(), Some("three.1"), "{lie:?}: {error}");
        sound.write(&world.target());
    }
}

#[test]
fn names_that_are_taken() {
    let world = shaped::compressed(shaped::tensors());
    let empty = || json!({"dtype": "BF16", "shape": [0], "data_offsets": [0, 0]});
    let sound = Forged::read(&world.target());
    for (name, dtype) in [("three.1.a.weight", "BF16"), ("one.0.weight", "F64")] {
        let mut file = Forged::read(&world.target());
        file.header[name] = empty();
        file.header[name]["dtype"] = dtype.into();
        file.write(&world.target());
        let error = refused(&world, shaped::restoring(&world));
        assert_eq!(error.code, Code::NameCollision, "{error}");
        assert_eq!(error.tensor.as_deref(), Some(name));
        sound.write(&world.target());
    }
    // A unit of one tensor that is also the first tensor of another unit.
    let mut tensors = shaped::tensors();
    tensors.push(weight("one.5.weight", 60, 4));
    let world = shaped::compressed(tensors);
    world.define(&shaped::definition().replace(r"'one\.\d+'", r"'one\.\d+|three\.1\.a'"));
    let mut file = Forged::read(&world.target());
    let header = file.header.as_object_mut().unwrap();
    for (name, tensor) in header.clone() {
        if let Some(field) = name.strip_prefix("one.5.") {
            header.remove(&name);
            header.insert(format!("three.1.a.{field}"), tensor);
        }
    }
    file.write(&world.target());
    let error = refused(&world, shaped::restoring(&world));
    assert_eq!(error.code, Code::NameCollision, "{error}");
    assert_eq!(error.tensor.as_deref(), Some("three.1.a.weight"));
}

/// The marker by which detection knows the toy.
fn without_marker(world: &World) {
    let mut file = Forged::read(&world.target());
    let header = file.header.as_object_mut().unwrap();
    let marker = header.remove("toy.marker").unwrap();
    header.insert("other.marker".to_owned(), marker);
    file.write(&world.target());
}

#[test]
fn architectures_that_nobody_knows() {
    let world = shaped::compressed(shaped::tensors());
    without_marker(&world);
    let error = refused(&world, shaped::restoring(&world));
    assert_eq!(error.code, Code::ArchUnknown);
    assert!(error.message.contains("nearest: Toy (a toy)"), "{error}");
    assert!(error.hint.contains("Name its architecture"), "{error}");

    let chosen = |id: &str| RestoreOptions {
        architecture: id.into(),
        ..shaped::restoring(&world)
    };
    assert_eq!(refused(&world, chosen("Toys")).code, Code::Option);
    let error = refused(&world, chosen("Flux"));
    assert_eq!(error.code, Code::ArchContradiction);
    assert_eq!(error.unit.as_deref(), Some("one.0"));
    let task = restore::start(&world.target(), None, chosen("Toy")).unwrap();
    let report = task.result().unwrap();
    assert!(
        report.notes[2].contains("only the choice"),
        "{:?}",
        report.notes
    );
    assert_eq!(report.architecture.as_deref(), Some("Toy"));
}

#[test]
fn units_that_are_others() {
    // A unit of another number of tensors.
    let world = shaped::compressed(shaped::tensors());
    world.define(&shaped::definition().replace(r#"["a", "b", "c"]"#, r#"["a", "b"]"#));
    let error = refused(&world, shaped::restoring(&world));
    assert_eq!(error.code, Code::ArchUnknown);
    let chosen = RestoreOptions {
        architecture: "Toy".into(),
        ..shaped::restoring(&world)
    };
    let error = refused(&world, chosen);
    assert_eq!(error.code, Code::ArchContradiction);
    assert!(error.message.contains("2 tensors, here 3"), "{error}");
}

#[test]
fn architectures_that_contradict() {
    let world = shaped::compressed(shaped::tensors());
    let other = shaped::definition()
        .replace(r#"id = "Toy""#, r#"id = "Other""#)
        .replace("[\"a\", \"b\", \"c\"]", "[\"c\", \"b\", \"a\"]");
    // Another order of tensors, for models without the marker.
    let elsewhere = other.replace(r#"all = ["toy.marker"]"#, r#"all = ["nothing"]"#);
    fs::write(world.path("architectures/other.toml"), elsewhere).unwrap();
    let chosen = RestoreOptions {
        architecture: "Other".into(),
        ..shaped::restoring(&world)
    };
    let error = refused(&world, chosen);
    assert_eq!(error.code, Code::ArchContradiction);
    assert!(error.message.contains("those of Toy"), "{error}");
    // And for all.
    fs::write(world.path("architectures/other.toml"), other).unwrap();
    let error = refused(&world, shaped::restoring(&world));
    assert_eq!(error.code, Code::ArchAmbiguous);
}
