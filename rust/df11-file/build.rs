//! Embeds the repository's `architectures/*.toml`.

use std::{env, error::Error, fmt::Write, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?)
        .join("../../architectures")
        .canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut paths: Vec<_> = fs::read_dir(&folder)?
        .collect::<Result<Vec<_>, _>>()?
        .iter()
        .map(fs::DirEntry::path)
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.sort();
    let mut entries = String::new();
    for path in paths {
        let name = path
            .file_name()
            .ok_or("a path without name")?
            .to_string_lossy();
        let text = path.to_str().ok_or("a path that is not UTF-8")?;
        println!("cargo::rerun-if-changed={text}");
        writeln!(entries, "    ({name:?}, include_str!({text:?})),")?;
    }
    let code = format!(
        "/// The architecture files of the repository: name and text.\n\
         const EMBEDDED: &[(&str, &str)] = &[\n{entries}];\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("embedded.rs"), code)?;
    Ok(())
}
