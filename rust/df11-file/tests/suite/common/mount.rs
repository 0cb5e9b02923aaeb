//! Small file systems of our own, where this user may mount any.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A mounted memory file system, taken away when dropped.
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts one of `bytes` at `folder`; the reason where that is not possible.
    pub fn new(folder: &Path, bytes: u64) -> Result<Self, String> {
        let options = format!("size={bytes}");
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder))?;
        Ok(Self(folder.to_path_buf()))
    }

    /// Takes the right to write away.
    pub fn read_only(&self) {
        run(Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(&self.0))
        .unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg(&self.0));
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
