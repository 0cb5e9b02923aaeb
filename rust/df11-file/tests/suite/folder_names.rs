//! Names of units as names of files: none leaves the folder, none is another's, none is one that a system cannot have.

use std::{collections::HashSet, fs, path::Path};

use df11_file::{Code, Options, Plan, PlanReport, Result, options::Form, plan};
use proptest::prelude::*;

use crate::common::{
    checkpoint::Tensor,
    folder::{ModelFolder, definition},
};

/// The plan of a folder with units of these names, each one tensor.
fn planned(units: &[String], form: Option<Form>) -> Result<Plan> {
    let unique: HashSet<_> = units.iter().collect();
    let tensors = unique.iter().map(|unit| {
        let name = format!("{unit}.weight");
        Tensor::bf16(&name, vec![0x80, 0x3F])
    });
    let folder = ModelFolder::in_layout(vec![tensors.collect()], "transformers");
    let names: Vec<_> = unique.iter().map(|unit| escaped(unit)).collect();
    let pattern = serde_json::Value::from(names.join("|")).to_string();
    let text = definition("transformers").replace(r"'one\.\d+'", &pattern);
    folder.world.define(&text);
    fs::write(folder.file("tokenizer.json"), "{}").unwrap();
    let options = Options {
        form,
        ..folder.world.options()
    };
    plan(&folder.path(), None, options)
}

/// A pattern for one name.
fn escaped(name: &str) -> String {
    let escape = |c: char| {
        let before = if c.is_ascii_punctuation() { "\\" } else { "" };
        format!("{before}{c}")
    };
    name.chars().map(escape).collect()
}

fn files(plan: &Plan) -> Vec<String> {
    PlanReport::new(plan).files
}

#[test]
fn dots_become_underscores() {
    let plan = planned(&["model.layers.0".to_owned(), "lm_head".to_owned()], None).unwrap();
    let mut names = files(&plan);
    names.sort();
    assert_eq!(
        names,
        [
            "lm_head.safetensors",
            "model.safetensors",
            "model_layers_0.safetensors"
        ]
    );
}

#[test]
fn names_that_cannot_be_files_are_refused_and_told() {
    for (unit, code) in [
        ("../../x", Code::FileName),
        ("/etc/x", Code::FileName),
        ("a\\b", Code::FileName),
        ("c:x", Code::FileName),
        ("a\nb", Code::FileName),
        ("a\0b", Code::FileName),
        ("con", Code::FileName),
        ("com1", Code::FileName),
        ("NUL ", Code::FileName),
        ("model", Code::NameCollision),
    ] {
        let units = [unit.to_owned(), "fine".to_owned()];
        let error = planned(&units, None).unwrap_err();
        assert_eq!(error.code, code, "{unit}: {error}");
        assert_eq!(error.unit.as_deref(), Some(unit));
        // One file has room for any name.
        planned(&units, Some(Form::File)).unwrap();
    }
    for pair in [["a.b", "a_b"], ["Layer.0", "layer.0"], ["é.x", "É.x"]] {
        let error = planned(&pair.map(str::to_owned), None).unwrap_err();
        assert_eq!(error.code, Code::NameCollision, "{pair:?}");
        for name in pair {
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_names_files_lie_in_the_folder_and_apart(
        units in proptest::collection::vec("[a-cA-C./\\\\: _0-1\u{e9}\u{df}\n]{1,6}|con|\\.\\.|[xX]{190,195}", 1..4)
    ) {
        let Ok(plan) = planned(&units, None) else { return Ok(()) };
        let mut taken = HashSet::from(["config.json".to_owned(), "tokenizer.json".to_owned()]);
        for name in files(&plan) {
            let path = Path::new(&name);
            prop_assert_eq!(path.file_name().map(Path::new), Some(path));
            prop_assert!(path.extension().is_some_and(|ending| ending == "safetensors"));
            prop_assert!(!name.contains(['/', '\\', ':']) && !name.starts_with('.'));
            prop_assert!(name.len() <= 200 && !name.chars().any(char::is_control));
            prop_assert!(taken.insert(name.to_lowercase()), "{} twice", name);
        }
    }
}
