//! Weights come back from their unit, whatever their exponents' counts: flat, steep, with codes of 32 bits, with tables that the official
//! tool gets wrong.

use df11_codec::UnitCode;

use crate::{input::Input, unit};

/// Most weights of a unit: some kernel chunks.
const WEIGHTS: usize = 50_000;

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let is_two_bit = input.byte() % 4 == 0;
    let stride = 2 * usize::from(input.u16()) + 1;
    let sizes = input.sizes();
    // Exponents with counts, from 1 to 64 Ki.
    let mut exponents = Vec::new();
    while let &[exponent, size, ..] = input.0 {
        input.slice(2);
        let count = (16 + usize::from(size % 16)) << (size / 16) >> 4;
        let room = WEIGHTS - exponents.len();
        exponents.extend(std::iter::repeat_n(exponent % 240, count.min(room)));
    }
    if exponents.is_empty() {
        return;
    }
    let weights: Vec<u8> = (0..exponents.len())
        .map(|index| index * stride)
        .flat_map(|at| {
            let noise = at as u16 & 0x807F;
            (noise | u16::from(exponents[at % exponents.len()]) << 7).to_le_bytes()
        })
        .collect();
    let make = if is_two_bit {
        UnitCode::two_bit
    } else {
        UnitCode::new
    };
    let histogram = unit::histogram(&weights);
    let code = make(&histogram, unit::last_exponent(&weights)).expect("exponents have codes");
    let unit = unit::encode(&weights, &code, &sizes.of_pieces(weights.len() / 2));
    assert!(unit.decode(&sizes.of_runs()).as_ref() == Ok(&weights));
    assert_eq!(unit.check(&sizes.of_runs()), Ok(()));
}
