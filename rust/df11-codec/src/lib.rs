//! The `DFloat11` code of one compression unit.
//!
//! Pure: slices in, slices out. No path, name, JSON, thread pool or I/O lives here.
//!
//! A *compression unit* is a list of BF16 weights that share one Huffman code over their exponents. Its life here:
//!
//! ```text
//! weights --ExponentHistogram--> UnitCode (codebook, LUT, exact sizes)
//! weights + UnitCode --encode_piece--> EncodedPiece (sign_mantissa, encoded_exponent, gaps, output_positions)
//! written bytes --DecodeTables::check_chunks--> equal to the weights, or the first mismatch
//! ```
//!
//! A *piece* is any run of consecutive weights of a unit. Pieces are encoded independently and in any order, since the
//! histogram fixes the bit at which each begins. A *kernel chunk* is 4096 bytes of bitstream, a *thread window* 8 bytes.
//! The decoder shares limits, errors and the BF16 helpers with the encoder and nothing else.

#[cfg(has_neon)]
mod arm;
pub mod bf16;
mod bits;
mod codebook;
pub mod decode;
pub mod encode;
pub mod error;
pub mod histogram;
pub mod kernel;
pub mod layout;
pub mod limits;
mod luts;
mod tail;
pub mod unit_code;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use decode::{CheckBuffers, ChunkRun, DecodeTables, Mismatch, MismatchKind};
pub use encode::{BitRun, EncodedPiece, PieceStart, encode_piece};
pub use error::{CodeError, LutError};
pub use histogram::ExponentHistogram;
pub use kernel::{Kernel, KernelError};
pub use layout::UnitLayout;
pub use unit_code::{CodeKind, UnitCode};
