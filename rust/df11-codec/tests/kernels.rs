//! Every kernel gives what the reference gives: on weights as models have them, at every length, cut anywhere, with codes of any length.
//!
//! Weights stand in buffers of exactly their size, so that a run with the address sanitizer sees every read and write beside them.

mod common;

use common::{
    config,
    distributions::{self, Distribution},
    unit::{self, Unit, same_by_every_kernel},
    weights,
};
use df11_codec::{
    EncodedPiece, ExponentHistogram, Kernel, PieceStart, UnitCode, bf16, encode_piece,
};
use proptest::prelude::*;

/// Bits of a kernel chunk.
const CHUNK_BITS: u64 = 32_768;

/// The first `n` of some weights, and nothing behind them.
fn first(weights: &[u8], n: usize) -> Box<[u8]> {
    weights[..2 * n].into()
}

/// Encodes by every kernel, and has every kernel check the result.
fn encode_and_check(weights: &[u8], sizes: &[usize]) -> Unit {
    let unit = unit::encode(weights, &unit::official(weights), sizes);
    assert_eq!(unit.check(&[1000]), Ok(()));
    unit
}

#[test]
fn every_short_length() {
    for (name, distribution) in distributions::ALL {
        let weights = distribution(3000);
        for n in 1..=3000 {
            encode_and_check(&first(&weights, n), &[usize::MAX / 2]);
        }
        println!("{name}: 3000 lengths");
    }
}

/// About how many of the weights make a unit of so many bits. The code changes with them, so this is not exact.
fn weights_to(weights: &[u8], bits: u64) -> usize {
    let (mut enough, mut few) = (weights.len() / 2, 1);
    while enough > few + 1 {
        let n = usize::midpoint(few, enough);
        if unit::official(&weights[..2 * n]).layout().bits > bits {
            enough = n;
        } else {
            few = n;
        }
    }
    enough
}

#[test]
fn every_length_around_a_chunk_border() {
    for (_, distribution) in distributions::ALL {
        let weights = distribution(60_000);
        for chunks in [1, 2, 3] {
            let border = weights_to(&weights, chunks * CHUNK_BITS);
            let mut sides = [0; 2];
            for n in border - 60..border + 60 {
                let unit = encode_and_check(&first(&weights, n), &[n / 3 + 1]);
                sides[usize::from(unit.chunks() as u64 > chunks)] += 1;
            }
            assert!(sides[0] > 0 && sides[1] > 0, "{sides:?}");
        }
    }
}

#[test]
fn several_segments() {
    for (_, distribution) in distributions::ALL {
        let weights = distribution(400_001);
        encode_and_check(&first(&weights, 400_001), &[400_001]);
        encode_and_check(&first(&weights, 400_001), &[262_144, 4096, 1]);
    }
}

/// Another distribution begins within a segment that was sampled.
#[test]
fn distributions_one_behind_the_other() {
    let parts = distributions::ALL.map(|(_, distribution)| distribution(50_000));
    encode_and_check(&parts.concat(), &[99_999]);
    let reversed: Vec<_> = parts.into_iter().rev().collect();
    encode_and_check(&reversed.concat(), &[usize::MAX / 2]);
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop::sample::select(
        distributions::ALL
            .map(|(_, distribution)| distribution)
            .to_vec(),
    )
}

/// A code whose lengths go from 1 to 32 bits, with its exponents.
fn ladder(base: u8) -> (UnitCode, Vec<u8>) {
    let mut counts = [0; 256];
    let mut pair = (1, 1);
    let exponents: Vec<u8> = (base..base + 33).collect();
    for &exponent in &exponents {
        counts[usize::from(exponent)] = pair.0;
        pair = (pair.1, pair.0 + pair.1);
    }
    let code = UnitCode::new(&ExponentHistogram::from_counts(counts), base).expect("encodable");
    (code, exponents)
}

#[test]
fn the_ladder_reaches_32_bits() {
    let (code, exponents) = ladder(100);
    let lengths: Vec<u32> = exponents.iter().map(|&e| code.code_word(e).1).collect();
    assert_eq!(
        (lengths.iter().min(), lengths.iter().max()),
        (Some(&1), Some(&32))
    );
    let weights = distributions::ladder(9_227_464);
    let code = unit::official(&weights);
    let longest = exponents.iter().map(|&e| code.code_word(e).1).max();
    assert_eq!(longest, Some(32));
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn cut_anywhere(distribution in distribution(), n in 1usize..150_000, sizes in weights::cuts()) {
        encode_and_check(&first(&distribution(n), n), &sizes);
    }

    /// Pieces of a unit that is not there: any exponents, from any bit and weight on.
    #[test]
    fn long_codes(
        base in 0u8..200,
        picks in prop::collection::vec((0usize..33, 1usize..60), 1..300),
        bit in 0u64..1 << 34,
        weight in 1u64..1 << 30,
        steepness in 0u32..3,
    ) {
        let (code, exponents) = ladder(base);
        let mut state = weight;
        let picked = picks.iter().flat_map(|&(pick, run)| {
            // Runs of one exponent, of the frequent ones, or of any.
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            let mut random = state;
            let exponents = &exponents;
            (0..run).map(move |_| {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let near = (random >> 40).leading_zeros() as usize - 40;
                exponents[match steepness {
                    0 => pick,
                    1 => 32 - near.min(32),
                    _ => (random >> 33) as usize % 33,
                }]
            })
        });
        let picked: Vec<u8> = picked.collect();
        let weights = weights::with_exponents(&picked);
        let start = PieceStart { weight, bit, is_last: false };
        // Some tables are only made for a large piece.
        let large = weights::with_exponents(&vec![exponents[32]; 1 << 16]);
        let large = &large[..if weight % 2 == 0 { large.len() } else { 2 }];
        same_by_every_kernel(|kernel| {
            let mut piece = EncodedPiece::default();
            encode_piece(kernel, &code, large, start, &mut piece);
            encode_piece(kernel, &code, &first(&weights, picked.len()), start, &mut piece);
            piece
        });
    }
}

/// Kernels join neighbouring codes, where these have few enough bits.
#[test]
fn eight_neighbours_of_every_length() {
    let (code, exponents) = ladder(100);
    let mut of_length = [0; 33];
    for exponent in exponents {
        of_length[code.code_word(exponent).1 as usize] = exponent;
    }
    for bits in 8..=128 {
        let eight: Vec<u8> = (0..8).map(|at| of_length[(bits + at) / 8]).collect();
        let few = [of_length[1]; 100];
        let weights = weights::with_exponents(&[&few, &*eight.repeat(40), &few].concat());
        for bit in 0..64 {
            let start = PieceStart {
                weight: 1,
                bit,
                is_last: false,
            };
            same_by_every_kernel(|kernel| {
                let mut piece = EncodedPiece::default();
                encode_piece(kernel, &code, &weights, start, &mut piece);
                piece
            });
        }
    }
}

/// Weights whose exponents the histogram did not have break the contract. Nothing is said of the output, but it comes.
#[test]
fn exponents_without_a_code_do_no_harm() {
    let (code, _) = ladder(100);
    let weights =
        weights::with_exponents(&(0..10_000u32).map(|i| (i / 3) as u8).collect::<Vec<_>>());
    for kernel in Kernel::available() {
        let start = PieceStart {
            weight: 5,
            bit: 77,
            is_last: false,
        };
        let mut piece = EncodedPiece::default();
        encode_piece(kernel, &code, &weights, start, &mut piece);
        let expected = weights
            .chunks_exact(2)
            .map(|w| bf16::sign_mantissa(u16::from_le_bytes([w[0], w[1]])));
        assert!(piece.sign_mantissa.iter().copied().eq(expected), "{kernel}");
    }
}

/// One piece encoded after another, whatever was in the buffers.
#[test]
fn buffers_hold_nothing_back() {
    for kernel in Kernel::available() {
        let mut reused = EncodedPiece::default();
        for (_, distribution) in distributions::ALL {
            for n in [30_000, 33, 7, 5000] {
                let weights = distribution(n);
                let code = unit::official(&weights);
                let start = PieceStart {
                    weight: 0,
                    bit: 0,
                    is_last: true,
                };
                let mut fresh = EncodedPiece::default();
                encode_piece(kernel, &code, &weights, start, &mut fresh);
                encode_piece(kernel, &code, &weights, start, &mut reused);
                assert!(fresh == reused, "{kernel}, {n}");
            }
        }
    }
}
