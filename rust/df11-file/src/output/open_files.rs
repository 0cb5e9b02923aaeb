//! The files of a folder that is written: a few of them open at a time, and what shows that each is still the one that was written.

use std::{
    collections::{HashMap, VecDeque},
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use super::partial::taken_away;
use crate::{
    error::{Code, Error, Result},
    sync::lock,
    system,
};

/// Files that are open at a time; systems allow a process 256 or more.
const MAX_OPEN: usize = 64;

/// The files, by their numbers.
#[derive(Debug)]
pub struct OpenFiles {
    folder: PathBuf,
    names: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    open: VecDeque<(usize, Arc<File>)>,
    /// By number, those that were opened once.
    seen: Vec<Option<Seen>>,
}

/// What tells a file again.
#[derive(Clone, Copy, Debug)]
struct Seen {
    id: Option<(u64, u64)>,
    /// Its length, once it is finished.
    bytes: Option<u64>,
}

impl OpenFiles {
    /// Files of these names, none of them open.
    pub fn new(folder: &Path, names: Vec<String>) -> Self {
        let state = State {
            open: VecDeque::with_capacity(MAX_OPEN),
            seen: vec![None; names.len()],
        };
        Self {
            folder: folder.to_path_buf(),
            names,
            state: Mutex::new(state),
        }
    }

    /// Their names, by their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the file of a name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Where a file lies.
    pub fn path(&self, number: usize) -> PathBuf {
        self.folder.join(&self.names[number])
    }

    /// Whether there is a file of this number, and it reaches to byte `end`.
    pub fn reaches(&self, number: usize, end: u64) -> bool {
        let name = self.names.get(number);
        let found = name.and_then(|name| fs::symlink_metadata(self.folder.join(name)).ok());
        found.is_some_and(|found| found.is_file() && found.len() >= end)
    }

    /// A file, which is made where it was never opened and is not there. It is only opened where `is_ours` says that the folder still is.
    ///
    /// # Errors
    /// Those of the system; where another program has put something in its place.
    pub fn file(&self, number: usize, is_ours: impl FnOnce() -> bool) -> io::Result<Arc<File>> {
        let mut state = lock(&self.state);
        if let Some((_, file)) = state.open.iter().rev().find(|(known, _)| *known == number) {
            return Ok(Arc::clone(file));
        }
        while state.open.len() >= MAX_OPEN
            && let Some((_, oldest)) = state.open.pop_front()
        {
            // The system tells of a failed write only whoever has the file open.
            oldest.sync_all()?;
        }
        if !is_ours() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let before = state.seen[number];
        let file = open(&self.path(number), before.is_none())?;
        let id = system::file_id(&file.metadata()?);
        if before.is_some_and(|before| before.id != id) {
            return Err(io::Error::other("another program has put a file here"));
        }
        state.seen[number].get_or_insert(Seen { id, bytes: None });
        let file = Arc::new(file);
        state.open.push_back((number, Arc::clone(&file)));
        Ok(file)
    }

    /// Those that are open.
    pub fn all_open(&self) -> Vec<(usize, Arc<File>)> {
        lock(&self.state).open.iter().cloned().collect()
    }

    /// Closes all.
    pub fn close(&self) {
        lock(&self.state).open.clear();
    }

    /// Takes note of the final length of a file.
    pub fn finished(&self, number: usize, bytes: u64) {
        if let Some(seen) = &mut lock(&self.state).seen[number] {
            seen.bytes = Some(bytes);
        }
    }

    /// Makes sure that the folder holds what was written and nothing else. What is hidden is nobody's business.
    ///
    /// # Errors
    /// `E_WRITE` with the first file that is missing, another, or none of these.
    pub fn check(&self) -> Result<()> {
        let state = lock(&self.state);
        let numbers: HashMap<_, _> = self.names.iter().map(String::as_str).zip(0..).collect();
        let failed = |error| Error::read(&self.folder, &error);
        let mut is_there = vec![false; self.names.len()];
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            let found = fs::symlink_metadata(&path).map_err(failed)?;
            let number: Option<usize> = numbers.get(&*name).copied();
            let seen = number.and_then(|number| state.seen[number]);
            let is_ours = |seen: Seen| {
                system::is_file_of_one_name(&found)
                    && seen.id == system::file_id(&found)
                    && seen.bytes == Some(found.len())
            };
            let (Some(number), Some(true)) = (number, seen.map(is_ours)) else {
                return Err(put_there(&path));
            };
            is_there[number] = true;
        }
        let mut numbers = (0..self.names.len()).zip(&state.seen);
        let missing = numbers.find(|(number, seen)| seen.is_some() && !is_there[*number]);
        missing.map_or(Ok(()), |(number, _)| Err(taken_away(&self.path(number))))
    }
}

/// Opens a file that no other name leads to.
fn open(path: &Path, may_be_new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if may_be_new {
        match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => return outcome,
        }
    }
    // What is written to a link changes a file that is not ours.
    if !system::is_file_of_one_name(&fs::symlink_metadata(path)?) {
        return Err(io::Error::other("another program has put a link here"));
    }
    options.open(path)
}

/// The failure to be the only one who writes into the folder.
fn put_there(path: &Path) -> Error {
    let message = "another program put this into the folder while it was being written";
    Error::new(Code::Write, message)
        .hint("Move it away, or choose another name.")
        .at_path(path)
}
