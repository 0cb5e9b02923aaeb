//! Pieces joined are the unit in one piece, which is what the oracle writes.

mod common;

use common::{assert::like_oracle, config, unit, weights};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn short_units(exponents in weights::exponents(300), sizes in weights::cuts()) {
        let weights = weights::with_exponents(&exponents);
        like_oracle(&weights, &unit::official(&weights), &sizes);
        like_oracle(&weights, &unit::two_bit(&weights), &sizes);
    }

    #[test]
    fn one_weight_pieces(exponents in weights::exponents(100)) {
        let weights = weights::with_exponents(&exponents);
        like_oracle(&weights, &unit::official(&weights), &[1]);
        like_oracle(&weights, &unit::two_bit(&weights), &[1]);
    }
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn several_chunks(exponents in weights::exponents(120_000), sizes in weights::cuts()) {
        let weights = weights::with_exponents(&exponents);
        like_oracle(&weights, &unit::official(&weights), &sizes);
        like_oracle(&weights, &unit::two_bit(&weights), &sizes);
    }
}

#[test]
fn buffers_are_reused() {
    use df11_codec::{EncodedPiece, Kernel, PieceStart, encode_piece};

    let weights =
        weights::with_exponents(&weights::from_counts(&[(120, 30_000), (121, 9000)], 121));
    let code = unit::official(&weights);
    let start = PieceStart {
        weight: 0,
        bit: 0,
        is_last: true,
    };
    let buffers = |out: &EncodedPiece| {
        [
            &out.sign_mantissa,
            &out.encoded_exponent.bytes,
            &out.gaps.bytes,
            &out.output_positions,
        ]
        .map(Vec::as_ptr)
    };
    for kernel in Kernel::available() {
        let mut out = EncodedPiece::default();
        encode_piece(kernel, &code, &weights, start, &mut out);
        let first = out.clone();
        let before = buffers(&out);
        encode_piece(kernel, &code, &weights, start, &mut out);
        assert_eq!(out, first);
        assert_eq!(buffers(&out), before);
    }
}
