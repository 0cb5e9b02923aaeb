//! A folder with a source, an architecture that takes it, and the program.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// One unit, `one.0`, and whatever else there is.
const ARCHITECTURE: &str = r#"
schema = 1
id = "Toy"
name = "a toy"
source = "made up for tests"

[loader]
node = "ToyLoader"
pack = "toys"
url = "https://example.org"

[detect]
all = ["toy.marker"]

[[units]]
pattern = 'one\.\d+'
attributes = []
"#;

/// A folder for one test, removed at its end.
pub struct World(TempDir);

impl World {
    /// A source with a unit of `weights` weights.
    pub fn new(weights: usize) -> Self {
        let mut state = 1_u32;
        let weight = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let exponent = 122 - (state >> 8).leading_zeros().min(30) as u16 + 8;
            (exponent << 7 | (state >> 16) as u16 & 0x807F).to_le_bytes()
        };
        let bytes: Vec<u8> = (0..weights).flat_map(weight).collect();
        Self::of(&[("one.0.weight", "BF16", bytes)])
    }

    /// A source of these tensors (name, dtype, bytes) and the marker.
    pub fn of(tensors: &[(&str, &str, Vec<u8>)]) -> Self {
        let world = Self(TempDir::new().unwrap());
        let mut members =
            vec![r#""toy.marker":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#.to_owned()];
        let mut data = vec![0];
        for (name, dtype, bytes) in tensors {
            let sides = bytes.len() / if *dtype == "BF16" { 2 } else { 1 };
            let (start, end) = (data.len(), data.len() + bytes.len());
            members.push(format!(
                r#""{name}":{{"dtype":"{dtype}","shape":[{sides}],"data_offsets":[{start},{end}]}}"#
            ));
            data.extend_from_slice(bytes);
        }
        let json = format!("{{{}}}", members.join(","));
        let file = [&(json.len() as u64).to_le_bytes(), json.as_bytes(), &data].concat();
        fs::write(world.source(), file).unwrap();
        fs::create_dir(world.path("architectures")).unwrap();
        fs::write(world.path("architectures/toy.toml"), ARCHITECTURE).unwrap();
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn source(&self) -> PathBuf {
        self.path("model.safetensors")
    }

    pub fn target(&self) -> PathBuf {
        self.path("model-DF11.safetensors")
    }

    pub fn partial(&self) -> PathBuf {
        self.path("model-DF11.safetensors.partial")
    }

    /// The program in the folder, with the architecture known.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_df11"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("DF11_ARCHITECTURES", self.path("architectures"))
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Compresses the source with some options.
    pub fn compress(&self, options: &[&str]) -> Output {
        self.run(&[&["compress", "model.safetensors"], options].concat())
    }

    /// Starts a compression that takes seconds, and waits until its partial file is there.
    pub fn start_braked(&self) -> Child {
        let mut command = self.command(&["compress", "model.safetensors", "--max-rate", "0.5"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while fs::metadata(self.partial()).map_or(true, |stat| stat.len() < 16) {
            assert!(Instant::now() < deadline, "no partial file appeared");
            thread::sleep(Duration::from_millis(5));
        }
        child
    }

    /// Names in the folder, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Nothing but what the world began with is there.
    pub fn assert_clean(&self) {
        assert_eq!(self.files(), ["architectures", "model.safetensors"]);
    }
}

/// The exit code; fails where a signal ended the program.
pub fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

/// What a run wrote to standard output, as JSON.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a run wrote to standard error.
pub fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
