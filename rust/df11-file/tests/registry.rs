//! docs/FORMATS.md names what the code knows, no more and no less.
#![allow(missing_docs, clippy::unwrap_used)]

use df11_file::{Class, Code, check::Level};

const REGISTRY: &str = include_str!("../../../docs/FORMATS.md");

/// The cells of a section's table, without its head.
fn table(section: &str) -> Vec<Vec<&'static str>> {
    let (_, text) = REGISTRY.split_once(&format!("\n## {section}\n")).unwrap();
    let text = text.split("\n## ").next().unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells = row.trim_matches('|').split(" | ");
        cells.map(str::trim).collect()
    })
    .collect()
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Usage => "usage",
        Class::Refused => "refused",
        Class::Mismatch => "mismatch",
        Class::Space => "space",
        Class::TargetExists => "target exists",
        Class::Cancelled => "cancelled",
        Class::Io => "io",
        Class::Internal => "internal",
    }
}

#[test]
fn every_code_has_its_class_and_a_remedy() {
    let rows = table("Error codes");
    let found: Vec<_> = rows.iter().map(|row| (row[0].to_owned(), row[1])).collect();
    let mut expected: Vec<_> = Code::ALL
        .iter()
        .map(|code| (format!("`{}`", code.as_str()), class(code.class())))
        .collect();
    assert!(rows.iter().all(|row| row.len() == 3 && row[2].len() > 5));
    let mut sorted = found.clone();
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
}

/// Names in the source text of the crates, such as `df11.report/1`.
fn names_in_code(matches: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["../df11-file/src", "../df11-cli/src"] {
        collect(std::path::Path::new(folder), &mut |text| {
            let strings = text.split('"').skip(1).step_by(2);
            names.extend(strings.filter(|text| matches(text)).map(str::to_owned));
        });
    }
    names.sort();
    names.dedup();
    names
}

fn collect(folder: &std::path::Path, take: &mut impl FnMut(&str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, take);
        } else {
            take(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

fn first_cells(section: &str) -> Vec<String> {
    let mut cells: Vec<_> = table(section)
        .iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    cells.sort();
    cells
}

#[test]
fn every_schema_is_named() {
    let is_schema = |text: &str| text.starts_with("df11.") && text.ends_with("/1");
    assert_eq!(
        first_cells("Schemas of JSON output"),
        names_in_code(is_schema)
    );
}

#[test]
fn every_metadata_key_is_named() {
    let manifest = include_str!("../src/output/manifest.rs");
    let named = first_cells("Metadata keys");
    for key in &named {
        let short = key.strip_prefix("df11.").unwrap();
        let written = manifest.contains(&format!("\"{short}\""))
            || manifest.contains(&format!("{{KEY_PREFIX}}{short}"));
        assert!(written, "{key}");
    }
    let written = manifest.matches("entry(\n").count() + manifest.matches("entry(\"").count();
    assert_eq!(named.len(), written + 2, "two are known last");
}

#[test]
fn every_level_is_named() {
    let levels: Vec<_> = table("Levels of verification")
        .iter()
        .map(|row| row[0].trim_matches('`'))
        .collect();
    assert_eq!(levels, Level::NAMES);
}
