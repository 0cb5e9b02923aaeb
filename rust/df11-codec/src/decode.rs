//! An independent decoder with the structure of the GPU kernel.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
mod check;
mod lane;
pub(crate) mod lanes;
mod launch;
pub(crate) mod run;
mod symbols;
mod tables;

pub use lanes::CheckBuffers;
pub use tables::DecodeTables;

/// Consecutive kernel chunks of one unit, as read from a file.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRun<'a> {
    /// Index of the first kernel chunk.
    pub first_chunk: u64,
    /// Weights in the whole unit, N.
    pub unit_weights: u64,
    /// Bytes of the whole unit's `encoded_exponent`, B.
    pub unit_bytes: u64,
    /// `encoded_exponent` from byte `4096 * first_chunk` to the end of the run's last chunk, and at least 4 bytes more unless B ends before.
    pub encoded_exponent: &'a [u8],
    /// `gaps` from byte `320 * first_chunk`: 320 bytes a chunk, and at least 1 byte more unless the run ends the unit.
    pub gaps: &'a [u8],
    /// `output_positions` (u32 little-endian) from entry `first_chunk` to the entry behind the run's last chunk, inclusive
    /// (one fewer where the tensor has only K entries and the run ends the unit). The number of entries says how many chunks the run has.
    pub output_positions: &'a [u8],
    /// `sign_mantissa` of the weights that start in the run.
    pub sign_mantissa: &'a [u8],
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// A decoded weight differs from the source.
    Weight {
        /// Bits expected (source).
        expected: u16,
        /// Bits decoded.
        found: u16,
    },
    /// A gap differs from what the codes say; `index` is the window.
    Gap {
        /// Bit offset by the codes.
        expected: u8,
        /// Stored.
        found: u8,
    },
    /// An output position differs; `index` is the entry.
    Position {
        /// By the codes.
        expected: u64,
        /// Stored.
        found: u64,
    },
    /// The walk reaches a code of length 0: the kernel would loop for ever; `index` is the window.
    Hang,
    /// The stream's length does not fit its weights; `index` is the byte at which it should end.
    Length,
    /// A slice is too short for the run; `index` is the chunk.
    Truncated,
}

/// The first difference found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs.
    pub kind: MismatchKind,
    /// Where, in the whole unit: weight index, window, or entry, by kind.
    pub index: u64,
}

impl Mismatch {
    fn new(kind: MismatchKind, index: u64) -> Self {
        Self { kind, index }
    }
}
