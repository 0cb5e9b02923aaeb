//! One piece of a unit, encoded on its own.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(has_avx512)]
pub(crate) mod avx512;
mod block;
mod classes;
mod fours;
mod gaps;
#[cfg(has_neon)]
pub(crate) mod neon;
mod nibbles;
mod pairs;
mod quads;
pub(crate) mod reference;
mod runs;
pub(crate) mod scalar;
#[cfg(has_avx512)]
mod slots;

use pairs::PairTable;
use quads::QuadTable;

use crate::{
    bf16,
    codebook::Code,
    kernel::{Kernel, Stages},
    layout::UnitLayout,
    limits::{CHUNK_BITS, GAP_BITS, WINDOW_BITS, WINDOWS_PER_CHUNK},
    tail,
    unit_code::UnitCode,
};

/// Where a piece stands in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceStart {
    /// Index of the piece's first weight in the unit.
    pub weight: u64,
    /// Bit at which its first code begins.
    pub bit: u64,
    /// The piece ends the unit: it also writes the tail (EOF byte, last position, zero gaps).
    pub is_last: bool,
}

/// A run of bits of a tensor. Bits of the first and last byte that belong to neighbours are zero, so neighbours are joined by OR.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitRun {
    /// First bit, from the start of the tensor.
    pub first_bit: u64,
    /// Number of bits.
    pub bit_len: u64,
    /// The bytes `first_bit / 8 ..= (first_bit + bit_len - 1) / 8`; none where `bit_len` is 0.
    pub bytes: Vec<u8>,
}

/// The output of one piece; its buffers are reused from piece to piece.
#[derive(Clone, Debug, Default)]
pub struct EncodedPiece {
    /// One byte per weight, from byte `start.weight`.
    pub sign_mantissa: Vec<u8>,
    /// The codes (and, in the last piece, the EOF byte up to the byte border).
    pub encoded_exponent: BitRun,
    /// Packed gaps, 5 bits a window, of the windows whose border a code of this piece reaches (the first piece also has window 0,
    /// the last also the zero gaps behind the stream).
    pub gaps: BitRun,
    /// Index of the first entry of `output_positions` written here.
    pub first_position: u64,
    /// Those entries, u32 little-endian; the last piece ends with N.
    pub output_positions: Vec<u8>,
    /// One byte per gap before packing. Empty between calls.
    gap_scratch: Vec<u8>,
    /// The scalar kernel's look-up tables; empty with the others.
    pairs: PairTable,
    quads: QuadTable,
}

impl EncodedPiece {
    /// Room for a piece of `weights` weights whose codes have 8 bits on average; it grows where they have more.
    pub fn with_capacity(weights: usize) -> Self {
        let windows = weights / WINDOW_BITS as usize * 8 + WINDOWS_PER_CHUNK as usize;
        let run = |bytes: usize| BitRun {
            bytes: Vec::with_capacity(bytes),
            ..BitRun::default()
        };
        Self {
            sign_mantissa: Vec::with_capacity(weights),
            encoded_exponent: run(weights),
            gaps: run(windows),
            output_positions: Vec::with_capacity(windows),
            gap_scratch: Vec::with_capacity(windows),
            ..Self::default()
        }
    }
}

impl PartialEq for EncodedPiece {
    /// Compares the output, whichever kernel has made it.
    fn eq(&self, other: &Self) -> bool {
        self.sign_mantissa == other.sign_mantissa
            && self.encoded_exponent == other.encoded_exponent
            && self.gaps == other.gaps
            && self.first_position == other.first_position
            && self.output_positions == other.output_positions
    }
}

impl Eq for EncodedPiece {}

/// What a kernel reads.
pub(crate) struct Input<'a> {
    pub codes: &'a [Code; 256],
    pub weights: &'a [u8],
    pub start: PieceStart,
}

/// What a kernel appends to.
pub(crate) struct Output<'a> {
    pub sign_mantissa: &'a mut Vec<u8>,
    /// From the byte of the first bit; the bits before it are left zero.
    pub stream: &'a mut Vec<u8>,
    /// One byte for each window border that a code's end reaches: by how many bits it reaches past it.
    pub gaps: &'a mut Vec<u8>,
    /// For each such border that also begins a kernel chunk: the index of the next weight, u32 little-endian.
    pub positions: &'a mut Vec<u8>,
    /// Memory for a kernel's tables, kept from piece to piece.
    pub pairs: &'a mut PairTable,
    pub quads: &'a mut QuadTable,
}

/// Encodes `weights` (little-endian BF16, at least one) as the piece of a unit that begins at `start`.
///
/// Every exponent in `weights` must have been in the histogram that `code` was made from, `start.bit` must be the bits of all
/// weights before this piece, and the last piece must end with the unit's last weight.
pub fn encode_piece(
    kernel: Kernel,
    code: &UnitCode,
    weights: &[u8],
    start: PieceStart,
    out: &mut EncodedPiece,
) {
    encode_with(&kernel.stages(), code, weights, start, out);
}

/// [`encode_piece`] with the encoder of `stages`.
pub(crate) fn encode_with(
    stages: &Stages,
    code: &UnitCode,
    weights: &[u8],
    start: PieceStart,
    out: &mut EncodedPiece,
) {
    let is_first = start.weight == 0;
    let first_window = if is_first {
        0
    } else {
        start.bit / WINDOW_BITS + 1
    };
    out.first_position = if is_first {
        0
    } else {
        start.bit / CHUNK_BITS + 1
    };
    out.sign_mantissa.clear();
    out.encoded_exponent.bytes.clear();
    out.output_positions.clear();
    out.gap_scratch.clear();
    // Packing works on groups of eight windows: stand-ins for the windows of the first group that are not ours.
    let padding = (first_window % 8) as usize;
    out.gap_scratch.resize(padding, 0);
    if is_first {
        out.gap_scratch.push(0);
        out.output_positions.extend([0; 4]);
    }

    let input = Input {
        codes: code.codes(),
        weights,
        start,
    };
    let mut output = Output {
        sign_mantissa: &mut out.sign_mantissa,
        stream: &mut out.encoded_exponent.bytes,
        gaps: &mut out.gap_scratch,
        positions: &mut out.output_positions,
        pairs: &mut out.pairs,
        quads: &mut out.quads,
    };
    let end = (stages.encode)(&input, &mut output);

    out.encoded_exponent.first_bit = start.bit;
    out.encoded_exponent.bit_len = end - start.bit;
    if start.is_last {
        let words = bf16::words(weights);
        let count = words.len() as u64;
        let last = words.last().map_or(0, |word| {
            code.codes()[usize::from(bf16::exponent(word))].bits
        });
        let layout = UnitLayout::new(start.weight + count, end, last, 0);
        finish_unit(
            out,
            code.eof(),
            &layout,
            last,
            first_window - padding as u64,
        );
    }
    out.gaps.first_bit = GAP_BITS * first_window;
    out.gaps.bit_len = GAP_BITS * out.gap_scratch.len().saturating_sub(padding) as u64;
    gaps::pack(&out.gap_scratch, padding, &mut out.gaps.bytes);
    out.gap_scratch.clear();
}

/// Writes what stands behind the last code. `scratch_window` is the window of the first byte in the gap scratch.
fn finish_unit(
    out: &mut EncodedPiece,
    eof: Code,
    layout: &UnitLayout,
    last_code_bits: u32,
    scratch_window: u64,
) {
    let bits = layout.bits;
    if bits.is_multiple_of(8) {
        // Without an EOF nothing starts at the end of the last code, so a window that it opened has no gap.
        if bits % WINDOW_BITS < u64::from(last_code_bits) {
            out.gap_scratch.pop();
        }
    } else {
        let fill = tail::eof_fill(bits, eof);
        if let Some(byte) = out.encoded_exponent.bytes.last_mut() {
            *byte |= fill;
        }
        out.encoded_exponent.bit_len += 8 - bits % 8;
    }
    let windows = layout.chunks * WINDOWS_PER_CHUNK;
    out.gap_scratch
        .resize(windows.saturating_sub(scratch_window) as usize, 0);
    // The same holds for a kernel chunk: drop the entry that no code and no EOF stands behind.
    let entries = layout
        .position_entries
        .saturating_sub(out.first_position + 1);
    out.output_positions.truncate(4 * entries as usize);
    out.output_positions
        .extend((layout.weights as u32).to_le_bytes());
}
