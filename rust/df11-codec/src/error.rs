//! Why a unit cannot be coded, and what is wrong with a decode table.

/// Why a unit has no DF11 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The unit has no weights.
    #[error("the unit has no weights")]
    Empty,
    /// An exponent that collides with the LUT's jump values.
    #[error("exponent {exponent} is not below 240")]
    ExponentTooLarge {
        /// The largest exponent of the unit.
        exponent: u8,
    },
    /// More weights or bitstream bytes than the kernel can index.
    #[error("{found} weights or bitstream bytes; the kernel's limit is {limit}")]
    TooLarge {
        /// Weights or bytes found.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

/// Why a `luts` tensor cannot be decoded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LutError {
    /// Not `(tables + 1) * 256` bytes with 1 to 17 tables.
    #[error("luts has {bytes} bytes")]
    Size {
        /// Bytes found.
        bytes: usize,
    },
    /// An entry jumps to a table that is not there.
    #[error("table {table}, entry {entry} jumps past the last table")]
    Jump {
        /// The table.
        table: usize,
        /// The entry.
        entry: usize,
    },
    /// A code length above 32 bits.
    #[error("exponent {exponent} has a code of {bits} bits")]
    Length {
        /// The exponent.
        exponent: u8,
        /// Its code length in bits.
        bits: u8,
    },
}
