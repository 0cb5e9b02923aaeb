//! The stages of a unit's life, as the pipeline runs them: in pieces, with reused buffers.

use df11_codec::{
    BitRun, CheckBuffers, ChunkRun, DecodeTables, EncodedPiece, ExponentHistogram, Kernel,
    PieceStart, UnitCode, bf16, encode_piece,
};

/// Weights of a piece.
pub const PIECE: usize = 256 * 1024;
/// Kernel chunks of a checked run.
const RUN: usize = 16;

/// A unit's weights and its code.
pub struct Unit<'a> {
    pub weights: &'a [u8],
    pub code: UnitCode,
    pub starts: Vec<PieceStart>,
}

/// Counts piece by piece.
pub fn count(kernel: Kernel, weights: &[u8]) -> Vec<ExponentHistogram> {
    let piece = |weights| {
        let mut histogram = ExponentHistogram::default();
        histogram.count(kernel, weights);
        histogram
    };
    weights.chunks(2 * PIECE).map(piece).collect()
}

impl<'a> Unit<'a> {
    /// Counts the weights and makes their code.
    pub fn new(kernel: Kernel, weights: &'a [u8]) -> Self {
        let pieces = count(kernel, weights);
        let mut total = ExponentHistogram::default();
        for piece in &pieces {
            total.merge(piece);
        }
        let last = weights.last_chunk().map_or(0, |w| u16::from_le_bytes(*w));
        let code = UnitCode::new(&total, bf16::exponent(last)).expect("encodable");
        let mut next = PieceStart {
            weight: 0,
            bit: 0,
            is_last: false,
        };
        let starts = pieces.iter().map(|piece| {
            let start = next;
            next.weight += piece.total();
            next.bit += code.bits_of(piece);
            PieceStart {
                is_last: next.weight == total.total(),
                ..start
            }
        });
        let starts = starts.collect();
        Self {
            weights,
            code,
            starts,
        }
    }

    /// Encodes piece by piece; hands each to `take`.
    pub fn encode(
        &self,
        kernel: Kernel,
        out: &mut EncodedPiece,
        mut take: impl FnMut(&EncodedPiece),
    ) {
        for (weights, &start) in self.weights.chunks(2 * PIECE).zip(&self.starts) {
            encode_piece(kernel, &self.code, weights, start, out);
            take(out);
        }
    }
}

/// A unit's tensors, joined.
#[derive(Default)]
pub struct Tensors {
    pub luts: Vec<u8>,
    pub encoded_exponent: Vec<u8>,
    pub sign_mantissa: Vec<u8>,
    pub output_positions: Vec<u8>,
    pub gaps: Vec<u8>,
}

impl Tensors {
    /// Encodes and joins.
    pub fn new(kernel: Kernel, unit: &Unit<'_>) -> Self {
        let mut all = Self {
            luts: unit.code.luts().to_vec(),
            ..Self::default()
        };
        unit.encode(kernel, &mut EncodedPiece::default(), |piece| {
            all.sign_mantissa.extend(&piece.sign_mantissa);
            all.output_positions.extend(&piece.output_positions);
            join(&mut all.encoded_exponent, &piece.encoded_exponent);
            join(&mut all.gaps, &piece.gaps);
        });
        all
    }

    /// Checks every run of chunks.
    pub fn check(&self, tables: &DecodeTables, unit: &Unit<'_>) {
        let layout = unit.code.layout();
        let chunks = layout.chunks as usize;
        let position = |entry: usize| {
            let bytes = self
                .output_positions
                .get(4 * entry..)
                .and_then(|tail| tail.first_chunk());
            bytes.map_or(layout.weights as usize, |b| u32::from_le_bytes(*b) as usize)
        };
        let mut buffers = CheckBuffers::default();
        for first in (0..chunks).step_by(RUN) {
            let end = (first + RUN).min(chunks);
            let until = |tensor: &'_ [u8], bytes: usize| bytes.min(tensor.len());
            let weights = position(first)..position(end);
            let run = ChunkRun {
                first_chunk: first as u64,
                unit_weights: layout.weights,
                unit_bytes: layout.encoded_exponent_bytes,
                encoded_exponent: &self.encoded_exponent
                    [4096 * first..until(&self.encoded_exponent, 4096 * end + 8)],
                gaps: &self.gaps[320 * first..until(&self.gaps, 320 * end + 1)],
                output_positions: &self.output_positions
                    [4 * first..until(&self.output_positions, 4 * (end + 1))],
                sign_mantissa: &self.sign_mantissa[weights.clone()],
            };
            let source = &unit.weights[2 * weights.start..2 * weights.end];
            tables
                .check_chunks_with(&run, source, &mut buffers)
                .expect("equal");
        }
    }
}

/// Appends a run to its tensor.
fn join(tensor: &mut Vec<u8>, run: &BitRun) {
    let mut bytes = &run.bytes[..];
    if !run.first_bit.is_multiple_of(8)
        && let (Some(last), Some((first, rest))) = (tensor.last_mut(), bytes.split_first())
    {
        *last |= first;
        bytes = rest;
    }
    tensor.extend(bytes);
}
