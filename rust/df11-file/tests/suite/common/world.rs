//! A folder with a source, an architecture that takes it, and what is needed to run jobs there.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use df11_file::{Code, Job, Options, Plan, Report, Result, Snapshot, plan};
use tempfile::TempDir;

use super::{
    checkpoint::{Layout, Tensor, write},
    weights,
};

/// Every name that the tests use: units of three tensors, units of one, dropped, renamed and F32 tensors.
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

[keys]
drop = ['^junk\.']
rename = [['\.scale$', ".weight"]]
keep_f32 = ['^kept\.']

[[units]]
pattern = 'three\.\d+'
attributes = ["a", "b", "c"]

[[units]]
pattern = 'one\.\d+'
attributes = []
"#;

/// The smallest memory budget: spans of a few million weights.
pub const SMALL_BUDGET: u64 = 64 << 20;

/// A folder for one test, removed at its end.
pub struct World {
    folder: TempDir,
}

impl World {
    /// A source of these tensors and the marker that detection wants.
    pub fn new(tensors: Vec<Tensor>) -> Self {
        Self::with_layout(tensors, &Layout::default())
    }

    pub fn with_layout(mut tensors: Vec<Tensor>, layout: &Layout) -> Self {
        let world = Self {
            folder: TempDir::new().unwrap(),
        };
        tensors.push(Tensor::bf16("toy.marker", vec![0x80, 0x3F]));
        write(&world.source(), &tensors, layout);
        fs::create_dir(world.path("architectures")).unwrap();
        world.define(ARCHITECTURE);
        world
    }

    /// One unit of one tensor.
    pub fn of_unit(weights: Vec<u8>) -> Self {
        Self::new(vec![Tensor::bf16("one.0.weight", weights)])
    }

    /// A unit of three tensors, two small ones, and passthrough tensors of several dtypes, in no useful order.
    pub fn mixed(seed: u64) -> Self {
        let unit =
            |name: &str, n: usize| Tensor::bf16(name, weights::realistic(seed + n as u64, n));
        Self::new(vec![
            unit("three.7.c.weight", 70_001),
            Tensor::f32("norm.weight", &[1.0, 1.001, -3.5]),
            unit("one.2.weight", 5),
            unit("three.7.a.weight", 300_000),
            Tensor::new("table", "I64", &[2], vec![7; 16]),
            unit("one.10.weight", 40_000),
            unit("three.7.b.weight", 1),
            unit("three.7.a.bias", 33),
            Tensor::new("empty", "F16", &[0, 4], Vec::new()),
        ])
    }

    /// Adds a tensor to the source.
    pub fn add(&self, tensor: Tensor) {
        let bytes = fs::read(self.source()).unwrap();
        let source = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let mut tensors: Vec<_> = source
            .iter()
            .map(|(name, view)| {
                assert_eq!(view.dtype(), safetensors::Dtype::BF16);
                Tensor::bf16(name, view.data().to_vec())
            })
            .collect();
        tensors.push(tensor);
        write(&self.source(), &tensors, &Layout::default());
    }

    /// Replaces the architecture file's text.
    pub fn define(&self, text: &str) {
        fs::write(self.path("architectures/toy.toml"), text).unwrap();
    }

    /// The architecture file's text.
    pub fn definition() -> &'static str {
        ARCHITECTURE
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn source(&self) -> PathBuf {
        self.path("model.safetensors")
    }

    /// Where results go unless the test says otherwise.
    pub fn target(&self) -> PathBuf {
        self.path("model-DF11.safetensors")
    }

    pub fn partial(&self) -> PathBuf {
        self.path("model-DF11.safetensors.partial")
    }

    pub fn journal(&self) -> PathBuf {
        self.path("model-DF11.safetensors.journal")
    }

    /// Options that know the architecture.
    pub fn options(&self) -> Options {
        Options {
            definitions: vec![self.path("architectures")],
            ..Options::default()
        }
    }

    /// The same with the smallest budget.
    pub fn small(&self) -> Options {
        Options {
            max_memory: Some(SMALL_BUDGET),
            ..self.options()
        }
    }

    pub fn plan(&self, options: Options) -> Result<Plan> {
        plan(&self.source(), None, options)
    }

    pub fn start(&self, options: Options) -> Job {
        Job::start(self.plan(options).unwrap()).unwrap()
    }

    pub fn run(&self, options: Options) -> Result<Report> {
        Job::start(self.plan(options)?)?.result()
    }

    /// The code with which a run fails.
    pub fn fails(&self, options: Options) -> Code {
        self.run(options).expect_err("a failure").code
    }

    /// Runs, gives the result's bytes and removes the file.
    pub fn result(&self, options: Options) -> Vec<u8> {
        let report = self.run(options).unwrap();
        let bytes = fs::read(&report.target).unwrap();
        fs::remove_file(&report.target).unwrap();
        bytes
    }

    /// Names in the folder, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Nothing but what the world began with is there.
    pub fn assert_clean(&self) {
        assert_eq!(self.files(), ["architectures", "model.safetensors"]);
    }
}

/// Polls a job until `reached`, and gives that snapshot; fails where the job ends before or nothing happens for a minute.
pub fn wait_for(job: &Job, reached: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = job.snapshot();
        if reached(&now) {
            return now;
        }
        assert!(
            !job.join(Some(Duration::from_millis(1))),
            "the job ended: {:?}",
            job.result()
        );
        assert!(Instant::now() < deadline, "nothing happened");
    }
}

/// Waits until a job has read half of what it reads.
pub fn wait_for_half(job: &Job) -> Snapshot {
    wait_for(job, |now| {
        now.bytes_total > 0 && now.bytes_in * 2 >= now.bytes_total
    })
}
