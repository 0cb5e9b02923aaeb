//! A toy whose compressed weights have two sides, which follow from the other tensors; compressed with the official header.

use std::fs;

use df11_file::{Options, options::HeaderMode, restore::RestoreOptions};

use super::{checkpoint::Tensor, weights, world::World};

const SHAPES: &str = r#"
[shapes]
from_bias = true
rules = [
    { pattern = '\.[ac]$', side = "out", key = "width.weight", axis = 1, factor = 3 },
    { pattern = '^one\.', side = "in", in_unit = ["norm", "second_norm"], axis = 0, factor = 2 },
]

[[units]]
pattern = 'three"#;

/// A two-dimensional weight.
pub fn weight(name: &str, rows: u64, columns: u64) -> Tensor {
    let bytes = weights::realistic(rows * 7 + columns, (rows * columns) as usize);
    Tensor::new(name, "BF16", &[rows, columns], bytes)
}

/// A vector of BF16.
pub fn vector(name: &str, n: usize) -> Tensor {
    Tensor::bf16(name, weights::realistic(n as u64, n))
}

/// Shapes by a rule, by a bias, and by both; a renamed tensor and dropped ones.
pub fn tensors() -> Vec<Tensor> {
    vec![
        weight("three.1.c.weight", 60, 5),
        weight("three.1.a.weight", 60, 1_000),
        weight("three.1.b.weight", 30, 70),
        vector("three.1.b.bias", 30),
        vector("three.1.c.bias", 60),
        weight("one.0.weight", 25, 40),
        vector("one.0.norm", 20),
        weight("width.scale", 4, 20),
        Tensor::new("junk.state", "U8", &[3], vec![7, 8, 9]),
    ]
}

/// The architecture file of such models.
pub fn definition() -> String {
    World::definition().replacen("\n[[units]]\npattern = 'three", SHAPES, 1)
}

/// A folder with nothing but the official file of these tensors, and the architecture.
pub fn compressed(tensors: Vec<Tensor>) -> World {
    let world = World::new(tensors);
    world.define(&definition());
    let header = HeaderMode::Official;
    world
        .run(Options {
            header,
            ..world.options()
        })
        .unwrap();
    fs::remove_file(world.source()).unwrap();
    world
}

/// Options that know the architecture.
pub fn restoring(world: &World) -> RestoreOptions {
    RestoreOptions {
        definitions: vec![world.path("architectures")],
        ..RestoreOptions::default()
    }
}

/// Nothing was written.
pub fn assert_untouched(world: &World) {
    assert_eq!(world.files(), ["architectures", "model-DF11.safetensors"]);
}
