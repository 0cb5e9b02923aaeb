//! Codes of neighbours that together just fit what a kernel joins, or just do not, from every bit of a window on.

mod common;

use common::{unit::same_by_every_kernel, weights};
use df11_codec::{EncodedPiece, ExponentHistogram, Kernel, PieceStart, UnitCode, encode_piece};

/// A code with lengths of 1 to 32 bits, and an exponent for each length.
fn ladder() -> (UnitCode, [u8; 33]) {
    let mut counts = [0; 256];
    let mut pair = (1, 1);
    for count in &mut counts[100..133] {
        *count = pair.0;
        pair = (pair.1, pair.0 + pair.1);
    }
    let code = UnitCode::new(&ExponentHistogram::from_counts(counts), 100).expect("encodable");
    let mut by_length = [0; 33];
    for exponent in 100..133 {
        by_length[code.code_word(exponent).1 as usize] = exponent;
    }
    (code, by_length)
}

/// Encodes weights with codes of these lengths by every kernel, from every bit of a window on and across a border of kernel chunks.
fn from_every_bit(lengths: impl Iterator<Item = usize> + Clone) {
    let available = Kernel::available();
    assert_eq!(Kernel::disabled(), [], "compared below: {available:?}");
    let (code, by_length) = ladder();
    let exponents: Vec<u8> = lengths.map(|length| by_length[length]).collect();
    let weights = weights::with_exponents(&exponents);
    // Behind a large piece: some tables are not made for a small one.
    let large = weights::with_exponents(&vec![by_length[1]; 1 << 16]);
    for bit in 32_768 - 96..32_768 - 32 {
        let start = PieceStart {
            weight: 9,
            bit,
            is_last: false,
        };
        same_by_every_kernel(|kernel| {
            let mut piece = EncodedPiece::default();
            encode_piece(kernel, &code, &large, start, &mut piece);
            encode_piece(kernel, &code, &weights, start, &mut piece);
            piece
        });
    }
}

/// `count` codes of about `usual` bits, one of which makes them `total` bits; which, says `at`.
fn group(
    count: usize,
    usual: usize,
    total: usize,
    at: usize,
) -> impl Iterator<Item = usize> + Clone {
    let last = total - usual * (count - 1);
    let more = usize::from(usual > 1);
    (0..count).map(move |i| match (i + at) % count {
        0 => last,
        1 => usual + more,
        2 => usual - more,
        _ => usual,
    })
}

#[test]
fn eight_codes_of_about_64_bits() {
    for total in 57..=72 {
        from_every_bit((0..40).flat_map(move |i| group(8, 8, total, i)));
    }
}

#[test]
fn sixteen_codes_of_about_64_bits() {
    for total in 61..=76 {
        from_every_bit((0..20).flat_map(move |i| group(16, 4, total, i)));
    }
}

/// The shortest: the codes of a whole step may end in the window in which they start.
#[test]
fn codes_of_one_bit() {
    from_every_bit((0..400).map(|i| if i % 150 == 149 { 2 } else { 1 }));
}

/// Steps of each kind by turns: joined by 16, by 8, not joined.
#[test]
fn every_kind_of_step_behind_every_other() {
    let kinds = [(16, 3, 48), (16, 5, 80), (16, 1, 33), (16, 12, 192)];
    let steps = (0..16).map(move |i| kinds[[i / 4, i % 4][i % 2]]);
    from_every_bit(steps.flat_map(|(count, usual, total)| {
        (0..4).flat_map(move |at| group(count, usual, total, 5 * at))
    }));
}
