//! Times one compression unit on one core, memory to memory. `time_unit FILE ROUNDS [KERNEL]`: FILE holds little-endian BF16 weights.
//! Prints one JSON object: weights, and the fastest seconds of encoding (histogram, code, tables, all six tensors) and of checking.
#![allow(clippy::print_stdout)]

use std::{error::Error, time::Instant};

use df11_codec::{
    ChunkRun, DecodeTables, EncodedPiece, ExponentHistogram, Kernel, PieceStart, UnitCode, bf16,
    encode_piece,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let weights = std::fs::read(args.next().ok_or("which file?")?)?;
    let rounds: u32 = args.next().ok_or("how many rounds?")?.parse()?;
    let kernel = args
        .next()
        .map_or(Ok(Kernel::best()), |name| name.parse())?;
    let [.., low, high] = weights[..] else {
        return Err("the file is empty".into());
    };
    let last_exponent = bf16::exponent(u16::from_le_bytes([low, high]));
    let start = PieceStart {
        weight: 0,
        bit: 0,
        is_last: true,
    };
    let (mut encoding, mut checking) = (f64::INFINITY, f64::INFINITY);
    let mut piece = EncodedPiece::default();
    for _ in 0..rounds {
        let began = Instant::now();
        let mut histogram = ExponentHistogram::default();
        histogram.count(kernel, &weights);
        let code = UnitCode::new(&histogram, last_exponent)?;
        encode_piece(kernel, &code, &weights, start, &mut piece);
        encoding = encoding.min(began.elapsed().as_secs_f64());

        let began = Instant::now();
        let run = ChunkRun {
            first_chunk: 0,
            unit_weights: code.layout().weights,
            unit_bytes: code.layout().encoded_exponent_bytes,
            encoded_exponent: &piece.encoded_exponent.bytes,
            gaps: &piece.gaps.bytes,
            output_positions: &piece.output_positions,
            sign_mantissa: &piece.sign_mantissa,
        };
        let checked = DecodeTables::with_kernel(kernel, code.luts())?.check_chunks(&run, &weights);
        checked.map_err(|mismatch| format!("{mismatch:?}"))?;
        checking = checking.min(began.elapsed().as_secs_f64());
    }
    println!(
        "{{\"kernel\": \"{kernel}\", \"weights\": {}, \"encode_seconds\": {encoding}, \"check_seconds\": {checking}}}",
        weights.len() / 2
    );
    Ok(())
}
