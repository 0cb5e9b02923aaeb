//! What this machine is and offers, for fault reports.

use df11_codec::Kernel;
use serde::Serialize;

use crate::{
    budget::Budget,
    error::Result,
    options::{Options, kernel},
    system,
};

/// What a job that is given no limits finds here. Memory in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The operating system and its version, as it names itself.
    pub system: String,
    /// The processor's name, as it tells it.
    pub processor: String,
    /// The processor's instruction sets of which some kernel makes use, by Rust's names for them.
    pub features: Vec<&'static str>,
    /// The kernel in use.
    pub kernel: &'static str,
    /// All that could be used, the slowest first.
    pub kernels: Vec<&'static str>,
    /// Those that the processor could run and that gave wrong bytes in their self-test. Empty on a sound machine.
    pub disabled_kernels: Vec<&'static str>,
    /// Worker threads of a job.
    pub threads: usize,
    /// Memory of the machine.
    pub total_memory: u64,
    /// What can be taken of it without harm, limits of a container included.
    pub available_memory: u64,
    /// The most that a job takes.
    pub memory_budget: u64,
}

impl Machine {
    /// Looks at this machine. `wanted` is a kernel's name, as in [`kernel`].
    ///
    /// # Errors
    /// `E_OPTION` where there is no such kernel here.
    pub fn of_this_process(wanted: Option<&str>) -> Result<Self> {
        let names = |kernels: Vec<Kernel>| kernels.into_iter().map(Kernel::name).collect();
        let budget = Budget::new(&Options::default(), 0)?;
        Ok(Self {
            system: system::name(),
            processor: system::processor(),
            features: features(),
            kernel: kernel(wanted)?.name(),
            kernels: names(Kernel::available()),
            disabled_kernels: names(Kernel::disabled()),
            threads: budget.threads,
            total_memory: system::total_memory(),
            available_memory: system::available_memory(),
            memory_budget: budget.bytes,
        })
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! present {
    ($detected:ident: $($name:tt)+) => {
        [$(($name, std::arch::$detected!($name))),+]
            .into_iter()
            .filter_map(|(name, is_there)| is_there.then_some(name))
            .collect()
    };
}

fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    return present!(is_x86_feature_detected:
        "popcnt" "lzcnt" "movbe" "bmi1" "bmi2" "avx2" "avx512f" "avx512bw" "avx512vpopcntdq"
        "avx512dq" "avx512vbmi" "avx512vbmi2");
    #[cfg(target_arch = "aarch64")]
    return present!(is_aarch64_feature_detected: "neon");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Vec::new()
}
