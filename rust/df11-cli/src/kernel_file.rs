//! Where the Python package `dfloat11` keeps its decode kernel. No Python runs: its folders are looked for.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

/// The kernel's file in a folder of Python packages.
const FILE: [&str; 2] = ["dfloat11", "decode.ptx"];

/// The file of the first Python that has one: that of the program's own folder (a wheel's `df11` lies beside its Python), the active environment,
/// those of the search path in its order, and the user's own packages.
pub fn installed() -> Option<PathBuf> {
    let own = env::args_os()
        .next()
        .map(PathBuf::from)
        .into_iter()
        .chain(env::current_exe().ok());
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(env::var_os)
        .map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<_> = env::split_paths(&path)
        .filter(|folder| has_python(folder))
        .collect();
    let user = env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let beside = own.filter_map(|program| program.parent().and_then(prefix));
    let prefixes = beside
        .chain(active)
        .chain(on_path.iter().filter_map(|folder| prefix(folder)))
        .chain(user);
    prefixes
        .flat_map(|prefix| package_folders(&prefix))
        .map(|folder| folder.join(FILE[0]).join(FILE[1]))
        .find(|file| file.is_file())
}

/// Whether a folder of programs has a Python.
fn has_python(folder: &Path) -> bool {
    ["python3", "python", "python.exe"]
        .iter()
        .any(|name| folder.join(name).exists())
}

/// What a folder of programs belongs to: Windows keeps `python.exe` above its scripts, other systems in `bin`.
fn prefix(programs: &Path) -> Option<PathBuf> {
    let is = |name: &str| {
        programs
            .file_name()
            .is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    let above = is("bin") || is("Scripts");
    let prefix = if above { programs.parent()? } else { programs };
    (!prefix.as_os_str().is_empty()).then(|| prefix.to_path_buf())
}

/// The folders of packages below a prefix, those of newer Pythons first.
fn package_folders(prefix: &Path) -> Vec<PathBuf> {
    let mut found = vec![prefix.join("Lib/site-packages")];
    for library in ["lib", "lib64", "local/lib"].map(|name| prefix.join(name)) {
        let entries = fs::read_dir(library).into_iter().flatten().flatten();
        let mut pythons: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(is_python))
            .collect();
        pythons.sort_by_key(|path| std::cmp::Reverse(path.file_name().and_then(minor_version)));
        found.extend(
            pythons.iter().flat_map(|python| {
                ["site-packages", "dist-packages"].map(|name| python.join(name))
            }),
        );
    }
    found
}

fn is_python(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with("python3"))
}

/// 11 of `python3.11`.
fn minor_version(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix("python3.")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_of_programs_belongs_to() {
        let of = |programs: &str| prefix(Path::new(programs));
        assert_eq!(of("/opt/env/bin"), Some("/opt/env".into()));
        assert_eq!(of("/opt/env/Scripts"), Some("/opt/env".into()));
        assert_eq!(of("/opt/python"), Some("/opt/python".into()));
        assert_eq!(of("bin"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn newer_pythons_come_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "lib/python3.9",
            "lib/python3.11",
            "lib/python3",
            "lib/other",
        ] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let found = package_folders(folder.path());
        let names: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(folder.path()).unwrap())
            .collect();
        let expected = [
            "Lib/site-packages",
            "lib/python3.11/site-packages",
            "lib/python3.11/dist-packages",
        ];
        assert_eq!(names[..3], expected.map(Path::new));
        assert_eq!(names.len(), 7);
    }
}
