//! Which file a path leads to.

use std::{
    fs::{self, File, Metadata},
    io,
    path::Path,
};

/// Whether something found without following links is a file, and has no other name (hard link) as far as the system tells.
pub fn is_file_of_one_name(found: &Metadata) -> bool {
    #[cfg(unix)]
    let names = std::os::unix::fs::MetadataExt::nlink(found);
    #[cfg(not(unix))]
    let names = 1;
    found.is_file() && names <= 1
}

/// What tells a file from any other that is there at the same time; none where the system does not say.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there is none.
pub fn file_id(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

/// The same where only an open file tells.
#[cfg(not(unix))]
pub fn file_id(_found: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Whether `file` is what stands at `path`, and no link to it.
pub fn is_at(file: &File, path: &Path) -> bool {
    let found = fs::symlink_metadata(path).ok();
    found.is_some_and(|found| found.is_file() && is_the_same(file, path, &found).unwrap_or(false))
}

/// The same for a path at which a file was `found`. Asks without opening anything where that is possible: that could fail for want of handles.
fn is_the_same(file: &File, path: &Path, found: &Metadata) -> io::Result<bool> {
    match file_id(found) {
        Some(id) => Ok(file_id(&file.metadata()?) == Some(id)),
        None => is_the_same_when_opened(file, path),
    }
}

fn is_the_same_when_opened(file: &File, path: &Path) -> io::Result<bool> {
    let here = same_file::Handle::from_path(path)?;
    Ok(here == same_file::Handle::from_file(file.try_clone()?)?)
}

/// Whether two paths lead to the same file, and neither is a link that points elsewhere.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let is_file = |path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_file(one) && is_file(other) && same_file::is_same_file(one, other).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of asking say the same, also where another file has taken the place.
    #[test]
    fn a_file_is_known_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("one"), folder.path().join("two"));
        fs::write(&path, "text").unwrap();
        let file = File::open(&path).unwrap();
        let answers = |path: &Path| {
            let found = fs::symlink_metadata(path).unwrap();
            let asked = is_the_same(&file, path, &found).unwrap();
            assert_eq!(asked, is_the_same_when_opened(&file, path).unwrap());
            assert_eq!(asked, is_at(&file, path));
            asked
        };
        assert!(answers(&path));
        fs::rename(&path, &moved).unwrap();
        fs::write(&path, "text").unwrap();
        assert!(!answers(&path));
        assert!(answers(&moved));
        assert!(is_file_of_one_name(&fs::symlink_metadata(&moved).unwrap()));
        fs::remove_file(&moved).unwrap();
        assert!(!is_at(&file, &moved), "it has no name any more");
    }
}
