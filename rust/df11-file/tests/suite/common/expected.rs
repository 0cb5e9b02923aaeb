//! What a unit's tensors must be: the codec's encoding of the whole unit as one piece, without threads, spans or files.

use df11_codec::{
    EncodedPiece, ExponentHistogram, Kernel, PieceStart, UnitCode, encode_piece,
    limits::MAX_WEIGHTS_PER_CHUNK,
};

/// The five U8 tensors of a unit, by field.
pub fn unit(weights: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    let mut histogram = ExponentHistogram::default();
    histogram.count(Kernel::Scalar, weights);
    let last = weights[weights.len() - 2..].try_into().unwrap();
    let last = df11_codec::bf16::exponent(u16::from_le_bytes(last));
    let official = UnitCode::new(&histogram, last).unwrap();
    let (mut code, mut piece) = (official.clone(), encode(&official, weights));
    if fullest_chunk(&piece) > MAX_WEIGHTS_PER_CHUNK {
        code = UnitCode::two_bit(&histogram, last).unwrap();
        piece = encode(&code, weights);
    }
    [
        ("encoded_exponent", piece.encoded_exponent.bytes),
        ("gaps", piece.gaps.bytes),
        ("luts", code.luts().to_vec()),
        ("output_positions", piece.output_positions),
        ("sign_mantissa", piece.sign_mantissa),
    ]
}

fn encode(code: &UnitCode, weights: &[u8]) -> EncodedPiece {
    let start = PieceStart {
        weight: 0,
        bit: 0,
        is_last: true,
    };
    let mut piece = EncodedPiece::default();
    encode_piece(Kernel::Scalar, code, weights, start, &mut piece);
    piece
}

fn fullest_chunk(piece: &EncodedPiece) -> u64 {
    let entries = piece.output_positions.chunks_exact(4);
    let positions: Vec<_> = entries
        .map(|entry| u32::from_le_bytes(entry.try_into().unwrap()))
        .collect();
    let most = positions.windows(2).map(|pair| pair[1] - pair[0]).max();
    u64::from(most.unwrap_or(0))
}
