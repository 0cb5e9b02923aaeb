//! Which disk a file lies on, and what the system says of it.

use std::path::Path;

/// The number of the file system that a path lies on, where the system numbers them.
pub fn number(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    return std::fs::metadata(path)
        .ok()
        .map(|found| std::os::unix::fs::MetadataExt::dev(&found));
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Whether two paths lie on one disk, where the system tells.
pub fn is_shared(one: &Path, other: &Path) -> Option<bool> {
    Some(number(one)? == number(other)?)
}

/// Whether the system calls the disk of a path a rotating one (Linux). It may err: of a virtual machine's disk it knows little.
pub fn is_rotating(path: &Path) -> Option<bool> {
    let (major, minor) = device(number(path)?);
    let disk = format!("/sys/dev/block/{major}:{minor}");
    // A part of a disk has its queue one folder above.
    let found = ["queue", "../queue"].into_iter().find_map(|queue| {
        let flag = Path::new(&disk).join(queue).join("rotational");
        std::fs::read_to_string(flag).ok()
    });
    Some(found?.trim() == "1")
}

/// The major and minor number of a device, as Linux packs them.
fn device(number: u64) -> (u64, u64) {
    let major = number >> 8 & 0xFFF | number >> 32 & 0xFFFF_F000;
    let minor = number & 0xFF | number >> 12 & 0xFFFF_FF00;
    (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_as_linux_packs_them() {
        for (number, expected) in [
            (0x0801, (8, 1)),
            (0xFE00, (254, 0)),
            (0x10_3105, (0x31, 0x105)),
            (0x1234_5000_0000_0001, (0x1234_5000, 1)),
        ] {
            assert_eq!(device(number), expected, "{number:#x}");
        }
    }

    #[test]
    fn a_folder_shares_its_disk_with_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        let expected = cfg!(unix).then_some(true);
        assert_eq!(is_shared(&file, folder.path()), expected);
        assert_eq!(is_shared(&file, &folder.path().join("missing")), None);
        if cfg!(target_os = "linux") {
            assert_eq!(is_shared(&file, Path::new("/proc")), Some(false));
            assert_eq!(is_rotating(Path::new("/proc")), None, "no device");
        }
    }
}
