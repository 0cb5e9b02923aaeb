//! Which implementation of the hot loops to use. The codec takes it as a value; callers decide.

mod roster;
mod self_test;

use std::{fmt, str::FromStr};

#[cfg(has_neon)]
use crate::arm;
#[cfg(target_arch = "x86_64")]
use crate::{decode, x86};
use crate::{
    decode::lanes::{self, EqualChunks},
    encode::{self, Input, Output},
    histogram,
};
use roster::Roster;

/// An implementation of histogram, encoder and check. All give the same bytes and find the same differences.
///
/// A kernel whose instructions the processor does not have may be asked for: [`Kernel::Scalar`] does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Plain Rust, one weight a step: what every other kernel is compared with.
    Reference,
    /// Plain Rust, several weights a step.
    Scalar,
    /// 64-bit ARM with NEON.
    Neon,
    /// x86-64 with AVX2.
    Avx2,
    /// x86-64 with AVX-512 (F, BW, VPOPCNTDQ): the histogram, and the encoder where the processor also has DQ, VBMI and VBMI2. The rest is
    /// AVX2. Not in a codec built by Rust before 1.89.
    Avx512,
}

impl Kernel {
    /// All kernels, the slowest first.
    const ALL: [Self; 5] = [
        Self::Reference,
        Self::Scalar,
        Self::Neon,
        Self::Avx2,
        Self::Avx512,
    ];

    /// The kernels that this processor can run and that pass their self-test, the slowest first. Tests all of them.
    pub fn available() -> Vec<Self> {
        Roster::of_this_machine().usable().collect()
    }

    /// The kernels that this processor could run but whose output is not the reference's, out of those that were asked for so far: by
    /// name, by [`Self::best`], or all by [`Self::available`]. They are never chosen. Empty on a sound machine.
    pub fn disabled() -> Vec<Self> {
        Roster::of_this_machine().disabled().collect()
    }

    /// The fastest available kernel. Tests the fastest, and slower ones only where that fails.
    pub fn best() -> Self {
        let mut usable = Roster::of_this_machine().usable();
        usable.next_back().unwrap_or(Self::Reference)
    }

    /// The name that [`Kernel::from_str`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// True where the processor has the instructions.
    fn is_supported(self) -> bool {
        match self {
            Self::Reference | Self::Scalar => true,
            #[cfg(has_neon)]
            Self::Neon => arm::has_neon(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86::has_avx2(),
            #[cfg(has_avx512)]
            Self::Avx512 => x86::has_avx512(),
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// Its hot loops.
    pub(crate) fn stages(self) -> Stages {
        match self {
            Self::Reference => Stages {
                count: histogram::reference::count,
                encode: encode::reference::encode,
                // The strict walk does all.
                equal_chunks: |_, _, _, _, _| 0,
            },
            #[cfg(has_neon)]
            Self::Neon if self.is_supported() => Stages {
                count: histogram::neon::count,
                encode: encode::neon::encode,
                // Compiled for NEON already.
                ..Self::Scalar.stages()
            },
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if self.is_supported() => Stages {
                count: histogram::avx2::count,
                encode: encode::avx2::encode,
                equal_chunks: decode::avx2::equal_chunks,
            },
            #[cfg(has_avx512)]
            Self::Avx512 if self.is_supported() => Stages {
                count: histogram::avx512::count,
                encode: encode::avx512::encode,
                ..Self::Avx2.stages()
            },
            _ => Stages {
                count: histogram::scalar::count,
                encode: encode::scalar::encode,
                equal_chunks: |tables, slices, run, source, buffers| {
                    lanes::equal_chunks(tables, slices, run, source, buffers)
                },
            },
        }
    }
}

impl Default for Kernel {
    /// [`Kernel::best`].
    fn default() -> Self {
        Self::best()
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a kernel that was asked for by name cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No kernel has this name.
    #[error("no kernel is called {0:?}; there are {names}", names = Kernel::ALL.map(Kernel::name).join(", "))]
    Unknown(String),
    /// The processor does not have its instructions.
    #[error("this processor cannot run the kernel {0}")]
    Unsupported(Kernel),
    /// Its self-test failed on this machine.
    #[error("the kernel {0} failed its self-test on this machine")]
    Disabled(Kernel),
}

impl FromStr for Kernel {
    type Err = KernelError;

    fn from_str(name: &str) -> Result<Self, KernelError> {
        let kernel = Self::ALL
            .into_iter()
            .find(|kernel| kernel.name() == name)
            .ok_or_else(|| KernelError::Unknown(name.to_owned()))?;
        if !kernel.is_supported() {
            return Err(KernelError::Unsupported(kernel));
        }
        if !Roster::of_this_machine().is_sound(kernel) {
            return Err(KernelError::Disabled(kernel));
        }
        Ok(kernel)
    }
}

/// The hot loops of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Stages {
    /// Adds the exponents of some weights to counts.
    pub count: fn(&mut [u64; 256], &[u8]),
    /// Encodes a piece; returns the bit behind its last code.
    pub encode: fn(&Input<'_>, &mut Output<'_>) -> u64,
    /// Proves chunks equal to their source.
    pub equal_chunks: EqualChunks,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for kernel in Kernel::available() {
            assert_eq!(kernel.name().parse(), Ok(kernel));
            assert_eq!(kernel.to_string(), kernel.name());
        }
        for kernel in Kernel::ALL {
            let parsed = kernel.name().parse::<Kernel>();
            assert_eq!(parsed.is_ok(), Kernel::available().contains(&kernel));
        }
        let error = "sclar".parse::<Kernel>().map_err(|error| error.to_string());
        let message = error.expect_err("no such kernel");
        assert!(message.contains("\"sclar\"") && message.contains("reference, scalar"));
    }

    #[test]
    fn this_machine_is_sound() {
        assert_eq!(Kernel::available()[0], Kernel::Reference);
        assert_eq!(Kernel::disabled(), []);
        assert_eq!(Some(&Kernel::default()), Kernel::available().last());
        #[cfg(has_neon)]
        assert_eq!(Kernel::best(), Kernel::Neon);
    }
}
