//! Architecture files that cannot be used: what is said, about which file.

use std::{fs, path::Path};

use df11_file::Code;

use crate::{
    common::{weights, world::World},
    refusals::{changed, check, one},
};

#[test]
fn faulty_architecture_files() {
    let refused = "[refused]\nreason = \"a\"\nremedy = \"b\"\n";
    let start = World::definition().find("[loader]").unwrap();
    let units = World::definition().find("[[units]]").unwrap();
    let (head, rest) = World::definition().split_at(start);
    let cases = [
        (changed("schema = 1", "schema = 2"), "schema number"),
        (changed(r#"id = "Toy""#, r#"id = """#), "id is empty"),
        (
            changed(r#"id = "Toy""#, r#"id = "auto""#),
            "id is empty or reserved",
        ),
        (
            changed(r#"id = "Toy""#, "id = \"Toy\"\nvariant_of = \"Flux\""),
            "either [detect] or variant_of",
        ),
        (
            changed("[detect]\nall = [\"toy.marker\"]", ""),
            "either [detect] or variant_of",
        ),
        (format!("{head}{refused}{rest}"), "either [refused] or"),
        (
            format!("{head}{refused}[detect]\n{}", &World::definition()[units..]),
            "either [refused] or",
        ),
        (
            World::definition()[..units].to_owned(),
            "either [refused] or",
        ),
        (
            format!("{head}[detect]\n{}", &World::definition()[units..]),
            "either [refused] or",
        ),
        (
            changed(r#"all = ["toy.marker"]"#, r#"none = ["a"]"#),
            "demands neither names nor shapes",
        ),
        (
            changed(r#"all = ["toy.marker"]"#, r#"any = [["toy.marker"], []]"#),
            "a group of any in [detect] is empty",
        ),
        (
            changed("[detect]\nall = [\"toy.marker\"]\n", "")
                .replace(r#"id = "Toy""#, "id = \"Toy\"\nvariant_of = \"Toys\""),
            "variant_of names Toys",
        ),
        (changed("schema = 1", ""), "schema"),
        (changed("[keys]", "[kyes]"), "kyes"),
        (changed("keep_f32", "keep_f16"), "keep_f16"),
        (changed(r"'one\.\d+'", r"'one\.(\d+'"), "unclosed group"),
        (changed(r"'^junk\.'", "'['"), "unclosed character class"),
        (changed(r"'\.scale$'", "'*'"), "repetition operator"),
        (
            changed(r#"["a", "b", "c"]"#, r#"["a", "b", "a"]"#),
            "an attribute twice",
        ),
        (
            format!(
                "{}[shapes]\nfrom_bias = true\nrules = [{{ pattern = \".\", side = \"in\", axis = 0, factor = 1 }}]\n",
                World::definition()
            ),
            "either key or in_unit",
        ),
        ("schema = ".to_owned(), "line 1"),
    ];
    let world = World::of_unit(weights::realistic(1, 10));
    let file = world.path("architectures/toy.toml");
    each_is_refused(&world, &file, &cases);
    // Every faulty file is named, one that is not even text among them.
    let binary = world.path("architectures/zoo.toml");
    fs::write(&binary, [0xFF]).unwrap();
    let error = world.plan(world.options()).unwrap_err();
    assert_eq!((error.code, error.path), (Code::Definition, Some(file)));
    let also = error.also.iter();
    let also: Vec<_> = also.map(|other| (other.code, other.path.clone())).collect();
    assert_eq!(also, [(Code::Read, Some(binary))]);
}

fn each_is_refused(world: &World, file: &Path, cases: &[(String, &str)]) {
    for (text, words) in cases {
        world.define(text);
        let error = world.plan(world.options()).expect_err(words);
        check(&error, file);
        assert_eq!(error.code, Code::Definition, "{words}");
        assert!(error.message.contains(words), "{error}\nlacks {words}");
    }
}

/// What belongs to models that are folders, in a file of one that is not; and patterns that would be one key of their config.json.
#[test]
fn faulty_layouts() {
    let cases = [
        (
            changed(
                r#"all = ["toy.marker"]"#,
                "all = [\"toy.marker\"]\nconfig = [[\"a\", 1]]",
            ),
            "[detect] asks for config.json",
        ),
        (
            changed(
                r#"all = ["toy.marker"]"#,
                "all = [\"toy.marker\"]\nnot_config = [[\"a\", true]]",
            ),
            "[detect] asks for config.json",
        ),
        (
            changed(r#"id = "Toy""#, "id = \"Toy\"\ntied = [[\"a\", \"b\"]]"),
            "no tied tensors",
        ),
        (
            changed(r#"id = "Toy""#, "id = \"Toy\"\nlayout = \"shards\""),
            "unknown variant `shards`",
        ),
        (
            format!(
                "{}\n[[units]]\npattern = 'one\\.\\d+'\nattributes = []\n",
                World::definition()
            ),
            "two units have the same pattern",
        ),
    ];
    let world = World::of_unit(weights::realistic(1, 10));
    each_is_refused(&world, &world.path("architectures/toy.toml"), &cases);
}

/// A file of the user's takes the place of a built-in one, but nothing says which of two beside each other would.
#[test]
fn an_id_twice_in_a_folder() {
    let world = World::of_unit(weights::realistic(1, 10));
    let (one, two) = (
        world.path("architectures/toy.toml"),
        world.path("architectures/toy2.toml"),
    );
    fs::write(&two, changed("a toy", "another toy")).unwrap();
    let error = world.plan(world.options()).unwrap_err();
    assert_eq!(error.code, Code::Definition);
    check(&error, &two);
    assert!(error.message.contains(one.to_str().unwrap()), "{error}");
    // In folders of their own the later one counts.
    fs::create_dir(world.path("more")).unwrap();
    fs::rename(&two, world.path("more/toy.toml")).unwrap();
    let mut options = world.options();
    options.definitions.push(world.path("more"));
    assert_eq!(
        world.plan(options).unwrap().architecture.name,
        "another toy"
    );
}

#[test]
fn renames_that_never_end() {
    let world = World::of_unit(weights::realistic(1, 10));
    let doubled = r"['^.*$', '$0$0'], ".repeat(30);
    world.define(&changed(r"rename = [", &format!("rename = [{doubled}")));
    let error = world.plan(world.options()).unwrap_err();
    assert_eq!(error.code, Code::Definition);
    check(&error, &world.path("architectures/toy.toml"));
    assert_eq!(error.tensor.as_deref(), Some("one.0.weight"));
    for words in ["renames of Toy", "4096 bytes"] {
        assert!(error.message.contains(words), "{error}");
    }
    // What is long already may stay so.
    let long = "a".repeat(10_000);
    let world = World::new(vec![one("one.0.weight"), one(&long)]);
    world.plan(world.options()).unwrap();
}
