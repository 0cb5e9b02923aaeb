//! A short comparison of a kernel with the reference, on weights that take every path: a millisecond or two.

mod change;
mod samples;

use super::{Kernel, Stages};
use crate::{
    bf16,
    decode::{CheckBuffers, ChunkRun, DecodeTables, run::Slices},
    encode::{EncodedPiece, PieceStart, encode_with},
    histogram::ExponentHistogram,
    unit_code::UnitCode,
};
use change::{Change, SLICES};

/// A whole unit as one piece.
const WHOLE: PieceStart = PieceStart {
    weight: 0,
    bit: 0,
    is_last: true,
};
/// A piece from the middle: it begins within a byte, and holds more than two of the blocks that a kernel encodes at once.
const MIDDLE: [usize; 2] = [4391, 9030];

/// True where a kernel with these loops gives what the reference gives.
pub fn passes(stages: &Stages) -> bool {
    let mut buffers = Buffers::default();
    samples::all().enumerate().all(|(number, weights)| {
        Unit::new(&weights).is_some_and(|mut unit| {
            count(stages, &weights) == unit.counts
                && unit.encodes_alike(stages, &mut buffers)
                && unit.is_checked(stages, number, &mut buffers.check)
        })
    })
}

/// Memory that is used for one sample after the other.
#[derive(Default)]
struct Buffers {
    expected: EncodedPiece,
    found: EncodedPiece,
    check: CheckBuffers,
}

/// A sample, and what the reference makes of it.
struct Unit<'a> {
    weights: &'a [u8],
    counts: [u64; 256],
    code: UnitCode,
    piece: EncodedPiece,
}

impl<'a> Unit<'a> {
    fn new(weights: &'a [u8]) -> Option<Self> {
        let reference = Kernel::Reference.stages();
        let counts = count(&reference, weights);
        let last = bf16::words(weights).next_back().map(bf16::exponent)?;
        let code = UnitCode::new(&ExponentHistogram::from_counts(counts), last).ok()?;
        let mut piece = EncodedPiece::default();
        encode_with(&reference, &code, weights, WHOLE, &mut piece);
        Some(Self {
            weights,
            counts,
            code,
            piece,
        })
    }

    /// Whether it makes the same of the whole unit, and of a piece of it.
    fn encodes_alike(&self, stages: &Stages, buffers: &mut Buffers) -> bool {
        let Buffers {
            expected, found, ..
        } = buffers;
        encode_with(stages, &self.code, self.weights, WHOLE, found);
        if *found != self.piece {
            return false;
        }
        let reference = Kernel::Reference.stages();
        let [from, to] = MIDDLE.map(|weight| 2 * weight);
        let before = ExponentHistogram::from_counts(count(&reference, &self.weights[..from]));
        let start = PieceStart {
            weight: before.total(),
            bit: self.code.bits_of(&before),
            is_last: false,
        };
        let weights = &self.weights[from..to];
        encode_with(&reference, &self.code, weights, start, expected);
        encode_with(stages, &self.code, weights, start, found);
        expected == found
    }

    /// Whether no chunk is called equal that is not: in the unit as it is, and with a change in each slice.
    fn is_checked(&mut self, stages: &Stages, sample: usize, buffers: &mut CheckBuffers) -> bool {
        let Ok(tables) = DecodeTables::with_kernel(Kernel::Reference, self.code.luts()) else {
            return false;
        };
        // The last chunk, in which the unit ends, is never among them.
        let last = self.code.layout().chunks as usize - 1;
        self.proves_at_most(last, stages, &tables, buffers)
            && (0..SLICES).all(|slice| {
                let change = Change::new(&self.piece, slice, sample + slice);
                change.flip(&mut self.piece);
                let is_seen = self.proves_at_most(change.chunk, stages, &tables, buffers);
                change.flip(&mut self.piece);
                is_seen
            })
    }

    fn proves_at_most(
        &self,
        chunks: usize,
        stages: &Stages,
        tables: &DecodeTables,
        buffers: &mut CheckBuffers,
    ) -> bool {
        let run = self.run();
        Slices::new(&run).is_ok_and(|slices| {
            (stages.equal_chunks)(tables, &slices, &run, self.weights, buffers) <= chunks
        })
    }

    fn run(&self) -> ChunkRun<'_> {
        ChunkRun {
            first_chunk: 0,
            unit_weights: self.code.layout().weights,
            unit_bytes: self.code.layout().encoded_exponent_bytes,
            encoded_exponent: &self.piece.encoded_exponent.bytes,
            gaps: &self.piece.gaps.bytes,
            output_positions: &self.piece.output_positions,
            sign_mantissa: &self.piece.sign_mantissa,
        }
    }
}

fn count(stages: &Stages, weights: &[u8]) -> [u64; 256] {
    let mut counts = [0; 256];
    (stages.count)(&mut counts, weights);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::lanes::LANES;

    /// There are chunks to check side by side, and the strict walk agrees about each change.
    #[test]
    fn changes_are_seen_where_they_are() {
        for weights in samples::all() {
            let mut unit = Unit::new(&weights).expect("encodable");
            let chunks = unit.code.layout().chunks as usize;
            assert!(chunks > LANES, "{chunks}");
            let tables = DecodeTables::with_kernel(Kernel::Reference, unit.code.luts());
            let tables = tables.expect("own tables");
            assert_eq!(tables.check_chunks(&unit.run(), &weights), Ok(()));
            for slice in 0..SLICES {
                for part in 0..3 {
                    let change = Change::new(&unit.piece, slice, part);
                    assert!(
                        change.chunk < chunks - 1,
                        "slice {slice}, part {part}: {} of {chunks}",
                        change.chunk
                    );
                    change.flip(&mut unit.piece);
                    let found = tables.check_chunks(&unit.run(), &weights);
                    assert!(found.is_err(), "slice {slice}, part {part}");
                    change.flip(&mut unit.piece);
                }
            }
        }
    }

    /// Codes of every length that a kernel treats on its own: up to 12 bits, to 16, and beyond.
    #[test]
    fn samples_have_codes_of_all_kinds() {
        let lengths: Vec<u32> = samples::all()
            .flat_map(|weights| {
                let unit = Unit::new(&weights).expect("encodable");
                unit.code.codes().map(|code| code.bits)
            })
            .collect();
        for kind in [1..=1, 2..=5, 6..=12, 13..=16, 17..=32] {
            assert!(lengths.iter().any(|bits| kind.contains(bits)), "{kind:?}");
        }
    }
}
