//! What tests steer the driver with.

#![allow(unsafe_code)]

use std::{
    env,
    ffi::{CString, c_char},
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use libloading::{Library, Symbol};

/// The head of the decode kernel, as `decode.ptx` of `dfloat11` 0.5.0 declares it: six addresses, three numbers. There is nothing in it: the
/// driver does what [`crate::decode_kernel`] says.
pub const PTX: &str = ".version 8.2
.target sm_52
.address_size 64
.visible .entry decode(
    .param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 f,
    .param .u32 g, .param .u32 h, .param .u32 i
)
{
    ret;
}
";
/// Room for an answer.
const ANSWER_BYTES: usize = 1 << 20;

/// A driver of one test's own: a copy of the library has a state of its own.
pub struct FakeDriver {
    path: PathBuf,
    library: Library,
}

impl FakeDriver {
    /// Copies the driver into `folder` and loads it.
    ///
    /// # Errors
    /// Where the library is not where cargo puts it, or cannot be copied or loaded.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let path = folder.join("libcuda.so.1");
        fs::copy(built()?, &path)?;
        // SAFETY: the library was built from this crate and has no start code.
        let library = unsafe { Library::new(&path) }.map_err(io::Error::other)?;
        Ok(Self { path, library })
    }

    /// A copy of the driver in `folder` that lacks a function.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn without(folder: &Path, function: &str) -> io::Result<PathBuf> {
        let path = folder.join(format!("libcuda-without-{function}.so.1"));
        let mut bytes = fs::read(built()?)?;
        let name = [b"\0", function.as_bytes(), b"\0"].concat();
        let places: Vec<_> = (0..bytes.len())
            .filter(|&at| bytes[at..].starts_with(&name))
            .collect();
        for at in places {
            bytes[at + 1] = b'x';
        }
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has the nth call of a function fail with a code.
    pub fn fail(&self, function: &str, nth: u32, code: i32) {
        self.ask(&format!("fail {function} {nth} {code}"));
    }

    /// Has the nth call of a function wait.
    pub fn hold(&self, function: &str, nth: u32) {
        self.ask(&format!("hold {function} {nth}"));
    }

    /// Waits until that call has come; false where it does not within a minute.
    pub fn wait_until_held(&self) -> bool {
        let start = Instant::now();
        while self.ask("held") != "true" {
            if start.elapsed() > Duration::from_secs(60) {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Lets it go on.
    pub fn release(&self) {
        self.ask("release");
    }

    /// Has the launch of a number (from 1) change a weight.
    pub fn spoil(&self, launch: u32, weight: u64) {
        self.ask(&format!("spoil {launch} {weight}"));
    }

    /// Has the launch of a number do nothing.
    pub fn skip(&self, launch: u32) {
        self.ask(&format!("spoil {launch}"));
    }

    /// Sets how many bytes of memory the GPU has.
    pub fn limit_memory(&self, bytes: u64) {
        self.ask(&format!("memory {bytes}"));
    }

    /// How much memory, how many modules and contexts were not given back.
    pub fn left_over(&self) -> usize {
        self.ask("left").parse().unwrap_or(usize::MAX)
    }

    /// Every call so far: its function, what is to be said about it, and its result.
    pub fn calls(&self) -> Vec<String> {
        self.ask("log").lines().map(str::to_owned).collect()
    }

    /// # Panics
    /// Where the library is another than this crate's.
    fn ask(&self, command: &str) -> String {
        type Ask = unsafe extern "C" fn(*const c_char, *mut u8, usize) -> usize;
        let command = CString::new(command).unwrap_or_default();
        let mut answer = vec![0; ANSWER_BYTES];
        // SAFETY: the function has this type, in driver.rs; the text ends with 0 and the answer has so many bytes.
        let length = unsafe {
            let ask: Symbol<'_, Ask> = self
                .library
                .get(b"fake_cuda_ask\0")
                .expect("a function of driver.rs");
            ask(command.as_ptr(), answer.as_mut_ptr(), ANSWER_BYTES)
        };
        answer.truncate(length);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// The library that cargo built with the test that runs.
fn built() -> io::Result<PathBuf> {
    let name = format!(
        "{}fake_cuda{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    );
    let test = env::current_exe()?;
    let folders = test.ancestors().skip(1).take(2);
    let mut places =
        folders.flat_map(|folder| [folder.join(&name), folder.join("deps").join(&name)]);
    places
        .find(|path| path.exists())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, name))
}
