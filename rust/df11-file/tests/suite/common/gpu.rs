//! A DF11 file, and a stand-in for the driver to check it with.

use std::{fs, path::PathBuf};

use df11_file::{
    Options, Result, Task,
    check::{self, CheckOptions, CheckReport, GpuOptions, Level},
    options::HeaderMode,
};
use fake_cuda::{FakeDriver, PTX};

use super::{checkpoint::Tensor, weights, world::World};

pub struct GpuWorld {
    pub world: World,
    pub file: PathBuf,
    pub driver: FakeDriver,
}

impl GpuWorld {
    pub fn new(world: World, header: HeaderMode) -> Self {
        let file = world.path("subject.safetensors");
        let options = Options {
            header,
            ..world.options()
        };
        fs::write(&file, world.result(options)).unwrap();
        fs::write(world.path("decode.ptx"), PTX).unwrap();
        let driver = FakeDriver::new(world.folder()).unwrap();
        Self {
            world,
            file,
            driver,
        }
    }

    /// Two units, one of three tensors, and a tensor that is not compressed.
    pub fn plain(header: HeaderMode) -> Self {
        let unit = |name: &str, n: usize| Tensor::bf16(name, weights::realistic(n as u64, n));
        let world = World::new(vec![
            unit("one.0.weight", 30_000),
            unit("three.0.a.weight", 90_001),
            unit("three.0.b.weight", 70),
            unit("three.0.c.weight", 500_000),
            unit("norm.weight", 600),
        ]);
        Self::new(world, header)
    }

    pub fn gpu(&self) -> GpuOptions {
        GpuOptions {
            kernel_file: Some(self.world.path("decode.ptx")),
            driver: Some(self.driver.path().to_path_buf()),
        }
    }

    /// Starts a check at the level `kernel`.
    pub fn start(&self, against: bool, gpu: GpuOptions) -> Result<Task<CheckReport>> {
        let options = CheckOptions {
            level: Level::Kernel,
            against: against.then(|| self.world.source()),
            definitions: self.world.options().definitions,
            threads: Some(2),
            gpu,
            ..CheckOptions::default()
        };
        check::start(&self.file, options)
    }

    pub fn check(&self, against: bool) -> Result<CheckReport> {
        self.start(against, self.gpu())?.result()
    }

    /// The calls of a function so far.
    pub fn calls(&self, function: &str) -> Vec<String> {
        let mut calls = self.driver.calls();
        calls.retain(|call| call.starts_with(function));
        calls
    }
}
