//! The plan tells the result's tensors before anything is read.

use std::fs;

use crate::common::{checkpoint::Tensor, result::ResultFile, weights, world::World};
use df11_file::{Code, Options, PlanReport, options::HeaderMode};

#[test]
fn names_and_known_shapes_come_in_the_order_of_the_file() {
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let world = World::mixed(3);
        let options = Options {
            header,
            ..world.options()
        };
        let outline = PlanReport::new(&world.plan(options.clone()).unwrap());
        world.run(options).unwrap();
        let result = ResultFile::parse(&fs::read(world.target()).unwrap());
        let planned: Vec<_> = outline.tensors.iter().map(|t| t.name.clone()).collect();
        // Empty tensors share their place with the next one, so their order says nothing.
        let filled = |names: &[String]| -> Vec<String> {
            let filled = |name: &&String| !result.bytes(name).is_empty();
            names.iter().filter(filled).cloned().collect()
        };
        assert_eq!(filled(&planned), filled(&result.order), "{header:?}");
        assert_eq!(planned.len(), result.order.len());
        for tensor in &outline.tensors {
            let (dtype, shape, _) = &result.tensors[&tensor.name];
            assert_eq!(tensor.dtype, dtype.to_string());
            assert_eq!(tensor.shape.len(), shape.len());
            for (planned, &found) in tensor.shape.iter().zip(shape) {
                assert!(
                    planned.is_none_or(|side| side == found as u64),
                    "{}",
                    tensor.name
                );
            }
        }
    }
}

#[test]
fn a_size_that_the_loader_does_not_take_is_noted() {
    let world = World::mixed(1);
    let sizes = "url = \"https://example.org\"\nsizes = [[\"one.2\", [5, 6]], [\"one.10\", [1]]]";
    let definition = World::definition();
    world.define(&definition.replace("url = \"https://example.org\"", sizes));
    let plan = world.plan(world.options()).unwrap();
    let notes: Vec<_> = plan
        .notes
        .iter()
        .filter(|note| note.contains("the loader takes only"))
        .collect();
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("unit one.10 has 40000 weights"),
        "{}",
        notes[0]
    );
}

/// A tensor of the source may carry the name that a unit's field will have.
#[test]
fn a_name_that_a_unit_needs_is_refused() {
    for field in ["luts", "split_positions", "encoded_exponent"] {
        let name = format!("one.0.{field}");
        let world = World::new(vec![
            Tensor::bf16("one.0.weight", weights::realistic(1, 100)),
            Tensor::bf16(&name, Vec::new()),
        ]);
        let error = world.plan(world.options()).expect_err("a refusal");
        assert_eq!(error.code, Code::NameCollision);
        assert!(error.to_string().contains(&name), "{error}");
    }
}

/// Names come from files, and must not write to the terminal.
#[test]
fn messages_hold_no_control_characters() {
    let other = Tensor::f32("one.1.weight\u{1b}[31m\nE_FAKE", &[1.0]);
    let world = World::new(vec![other.clone(), other]);
    let refused = world.plan(world.options());
    let text = refused.expect_err("a name that occurs twice").to_string();
    assert!(text.contains("E_FAKE") && text.lines().count() == 1);
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

#[test]
fn a_rate_of_nothing_is_refused() {
    let world = World::mixed(1);
    let options = Options {
        max_rate: Some(0),
        ..world.options()
    };
    assert_eq!(world.fails(options), Code::Option);
}
