//! A short comparison of a kernel with the reference, on weights that take every path: some ten milliseconds.

use super::{Kernel, Stages};
use crate::{
    bf16,
    decode::{CheckBuffers, ChunkRun, DecodeTables},
    encode::{EncodedPiece, PieceStart, encode_with},
    histogram::ExponentHistogram,
    unit_code::UnitCode,
};

/// Weights of a sample: several kernel chunks.
const WEIGHTS: usize = 70_000;
/// Weights of its first piece; odd, so that the second begins within a byte.
const FIRST_PIECE: usize = 4391;

/// True where a kernel with these loops gives what the reference gives.
pub fn passes(stages: &Stages) -> bool {
    samples().iter().all(|weights| agrees(stages, weights))
}

fn agrees(stages: &Stages, weights: &[u8]) -> bool {
    let reference = Kernel::Reference.stages();
    let [expected, found] = [&reference, stages].map(|stages| {
        let mut counts = [0; 256];
        (stages.count)(&mut counts, weights);
        counts
    });
    if found != expected {
        return false;
    }
    let last = bf16::words(weights).next_back().map_or(0, bf16::exponent);
    let Ok(code) = UnitCode::new(&ExponentHistogram::from_counts(expected), last) else {
        return false;
    };
    let (first, second) = weights.split_at(2 * FIRST_PIECE);
    let mut counts = [0; 256];
    (reference.count)(&mut counts, first);
    let starts = [
        PieceStart {
            weight: 0,
            bit: 0,
            is_last: false,
        },
        PieceStart {
            weight: FIRST_PIECE as u64,
            bit: code.bits_of(&ExponentHistogram::from_counts(counts)),
            is_last: true,
        },
    ];
    let mut pieces = [EncodedPiece::default(), EncodedPiece::default()];
    [first, second]
        .into_iter()
        .zip(starts)
        .all(|(weights, start)| {
            for (stages, piece) in [&reference, stages].into_iter().zip(&mut pieces) {
                encode_with(stages, &code, weights, start, piece);
            }
            pieces[0] == pieces[1]
        })
        && checks_alike(stages, weights, &code)
}

/// Whether the check says what the strict walk says: of a whole unit, and of the same with a change in each slice.
fn checks_alike(stages: &Stages, weights: &[u8], code: &UnitCode) -> bool {
    let start = PieceStart {
        weight: 0,
        bit: 0,
        is_last: true,
    };
    let reference = Kernel::Reference;
    let mut piece = EncodedPiece::default();
    encode_with(&reference.stages(), code, weights, start, &mut piece);
    let Ok(tables) = DecodeTables::with_kernel(reference, code.luts()) else {
        return false;
    };
    let mut buffers = CheckBuffers::default();
    let mut alike = |piece: &EncodedPiece| {
        let run = ChunkRun {
            first_chunk: 0,
            unit_weights: code.layout().weights,
            unit_bytes: code.layout().encoded_exponent_bytes,
            encoded_exponent: &piece.encoded_exponent.bytes,
            gaps: &piece.gaps.bytes,
            output_positions: &piece.output_positions,
            sign_mantissa: &piece.sign_mantissa,
        };
        let [expected, found] = [&reference.stages(), stages]
            .map(|stages| tables.check_by(stages.equal_chunks, &run, weights, &mut buffers));
        expected == found
    };
    if !alike(&piece) {
        return false;
    }
    for slice in 0..4 {
        for part in [1, 4, 7] {
            let mut changed = piece.clone();
            let bytes = match slice {
                0 => &mut changed.encoded_exponent.bytes,
                1 => &mut changed.gaps.bytes,
                2 => &mut changed.output_positions,
                _ => &mut changed.sign_mantissa,
            };
            let at = bytes.len() * part / 8;
            bytes[at] ^= 1 << part;
            if !alike(&changed) {
                return false;
            }
        }
    }
    true
}

/// Exponents from steep (few different ones, with zeros and stragglers) to flat (codes of 8 bits); stretches of 1 and of about 5 bits a
/// weight; and a ladder with codes of up to 18.
fn samples() -> [Vec<u8>; 4] {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut sample = |exponent: fn(usize, u64) -> u8| {
        let mut weights = Vec::with_capacity(2 * WEIGHTS);
        for index in 0..WEIGHTS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let noise = (state >> 48) as u16 & 0x807F;
            weights.extend((noise | u16::from(exponent(index, state)) << 7).to_le_bytes());
        }
        weights
    };
    [
        sample(|_, random| match random % 512 {
            0..25 => 0,
            25 => 200,
            _ => 122 - (random >> 9 & 0xFFFF | 0x10_0000).trailing_zeros() as u8,
        }),
        sample(|index, random| match index / 512 % 2 {
            0 => 110,
            _ => 103 + (random % 15) as u8,
        }),
        sample(|_, random| (random % 240) as u8),
        sample(|_, random| 140 - (random >> 20).trailing_zeros().min(30) as u8),
    ]
}
