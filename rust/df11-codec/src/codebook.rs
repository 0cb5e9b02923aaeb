//! The Huffman code of a unit, equal to what `dahuffman` 0.4.2 builds, and our own codes for units that DF11 cannot hold otherwise.

mod flatten;
mod limiter;
mod tree;
mod two_bit;

pub use flatten::flatten;
pub use limiter::official;
pub use two_bit::two_bit;

use crate::limits::MAX_CODE_BITS;
use tree::Leaf;

/// Counts by exponent. Together below 2^31, so no tree is deeper than 45 (its counts grow at least as the Fibonacci numbers do).
pub type Counts = [u64; 256];

/// A code word. Zero bits: the symbol does not occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The bits, right-aligned.
    pub value: u32,
    /// How many, at most 32.
    pub bits: u32,
}

/// The code words of one unit, none longer than 32 bits.
#[derive(Clone, Debug)]
pub struct Codebook {
    /// By exponent.
    pub codes: [Code; 256],
    /// The end-of-file symbol's code: at most 8 bits of it are ever written.
    pub eof: Code,
    /// The exponents in ascending order of their codes as bit strings.
    pub order: Vec<u8>,
}

impl Codebook {
    /// From leaves in ascending order of their codes; `None` where a code is too long.
    fn from_leaves(leaves: &[Leaf]) -> Option<Self> {
        let mut book = Self {
            codes: [Code::default(); 256],
            eof: Code::default(),
            order: Vec::with_capacity(leaves.len()),
        };
        for leaf in leaves {
            if leaf.bits > MAX_CODE_BITS {
                return None;
            }
            let code = Code {
                value: leaf.value as u32,
                bits: leaf.bits,
            };
            match leaf.symbol {
                None => book.eof = code,
                Some(exponent) => {
                    book.codes[usize::from(exponent)] = code;
                    book.order.push(exponent);
                }
            }
        }
        Some(book)
    }

    /// Bits that weights with these exponent counts take.
    pub fn bits_of(&self, counts: &Counts) -> u64 {
        counts
            .iter()
            .zip(&self.codes)
            .fold(0, |sum: u64, (&count, code)| {
                sum.saturating_add(count.saturating_mul(u64::from(code.bits)))
            })
    }
}

/// The plain Huffman code; `None` where a code, EOF's included, is longer than 32 bits.
pub fn huffman(counts: &Counts) -> Option<Codebook> {
    Codebook::from_leaves(&tree::leaves(counts, 1, 0))
}
