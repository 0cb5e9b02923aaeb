//! Tables and tensors of any bytes are checked and decoded without a panic, and every kernel says the same.

use df11_codec::{CheckBuffers, ChunkRun, DecodeTables, Kernel, limits::MAX_TABLES};

use crate::input::Input;

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let rows = usize::from(input.byte()) % (MAX_TABLES + 2);
    let mut luts = input.cycled(256 * rows);
    let mut lengths = input.cycled(256);
    if input.byte() % 8 > 0 {
        make_readable(&mut luts, &mut lengths, rows);
    }
    luts.extend(lengths);

    let chunks = usize::from(input.byte() % 8);
    let (first_chunk, unit_weights, unit_bytes) = (input.number(), input.number(), input.number());
    let step = usize::from(input.u16());
    let mut positions: Vec<u8> = (0..=chunks)
        .flat_map(|entry| ((step * entry) as u32).to_le_bytes())
        .collect();
    let more_gaps = usize::from(input.byte() % 8);
    let mut gaps = input.cycled(320 * chunks + more_gaps);
    let sign_mantissa = input.cycled(step * chunks);
    let mut source = input.cycled(2 * sign_mantissa.len());
    let short = usize::from(input.byte() % 4);
    for tensor in [&mut positions, &mut gaps, &mut source] {
        for _ in 0..input.byte() % 4 {
            let at = usize::from(input.u16());
            let value = input.byte();
            if let Some(byte) = tensor.get_mut(at) {
                *byte = value;
            }
        }
        if short == 1 {
            tensor.pop();
        }
    }
    let bytes = 4096 * chunks + usize::from(input.byte() % 16);
    let stream = if short == 2 {
        input.0.to_vec()
    } else {
        input.cycled(bytes)
    };

    let run = ChunkRun {
        first_chunk,
        unit_weights,
        unit_bytes,
        encoded_exponent: &stream,
        gaps: &gaps,
        output_positions: &positions,
        sign_mantissa: &sign_mantissa,
    };
    let tables = Kernel::available().into_iter();
    let tables = tables.map(|kernel| DecodeTables::with_kernel(kernel, &luts));
    let Ok(tables) = tables.collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let mut buffers = CheckBuffers::default();
    let mut check = |source: &[u8]| {
        let mut outcomes = tables
            .iter()
            .map(|tables| tables.check_chunks_with(&run, source, &mut buffers));
        let expected = outcomes.next();
        assert!(outcomes.all(|outcome| Some(outcome) == expected));
    };
    check(&source);
    // What the decoder makes of it is a source that the check may take for equal, and so goes to the end.
    let mut decoded = source.clone();
    if tables[0].decode_chunks(&run, &mut decoded).is_ok() {
        check(&decoded);
    }
}

/// Jumps to tables that exist, and lengths up to 32.
fn make_readable(luts: &mut [u8], lengths: &mut [u8], rows: usize) {
    for value in luts {
        if *value >= 240 && 256 - usize::from(*value) >= rows {
            *value -= 240;
        }
    }
    for length in lengths {
        *length %= 33;
    }
}
