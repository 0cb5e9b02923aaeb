//! Every kernel's histogram, encoded pieces and check are the reference's, whatever the weights and the pieces, in sound and in damaged
//! units.

use df11_codec::UnitCode;

use crate::{input::Input, unit};

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let is_two_bit = input.byte() % 4 == 0;
    let sizes = input.sizes();
    let damages: Vec<_> = (0..input.byte() % 4)
        .map(|_| (input.byte(), input.u32() as usize, input.byte()))
        .collect();
    let weights = input.weights();
    if weights.is_empty() {
        return;
    }
    let make = if is_two_bit {
        UnitCode::two_bit
    } else {
        UnitCode::new
    };
    let histogram = unit::histogram(&weights);
    let code = make(&histogram, unit::last_exponent(&weights)).expect("exponents have codes");
    let mut unit = unit::encode(&weights, &code, &sizes.of_pieces(weights.len() / 2));
    assert_eq!(unit.check(&sizes.of_runs()), Ok(()));
    for (tensor, index, change) in damages {
        let tensor = match tensor % 5 {
            0 => &mut unit.stream,
            1 => &mut unit.gaps,
            2 => &mut unit.positions,
            3 => &mut unit.sign_mantissa,
            _ => &mut unit.weights,
        };
        let index = index % tensor.len();
        tensor[index] ^= change;
    }
    let (run, source) = unit.run(0, unit.chunks());
    let _ = unit::check_run(&unit.luts, &run, source);
}
