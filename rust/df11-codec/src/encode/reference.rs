//! The reference kernel: one weight a step.

use super::{Input, Output};
use crate::{
    bf16,
    limits::{WINDOW_BITS, WINDOWS_PER_CHUNK},
};

/// Encodes a piece; returns the bit behind its last code.
///
/// The stream is collected window by window. No code is longer than half a window, so every window border is reached by the end of
/// exactly one code, and the bits by which that code reaches past the border are the new window's gap.
pub fn encode(input: &Input<'_>, out: &mut Output<'_>) -> u64 {
    out.sign_mantissa
        .extend(bf16::words(input.weights).map(bf16::sign_mantissa));

    let mut window = input.start.bit / WINDOW_BITS;
    let mut filled = (input.start.bit % WINDOW_BITS) as u32;
    // The window's bits so far, right-aligned. What stands above them is shifted out before the window is stored.
    let mut word = 0u64;
    // Bytes of the window that belong to the piece before.
    let mut skip = filled as usize / 8;
    for (index, weight) in (input.start.weight..).zip(bf16::words(input.weights)) {
        let code = input.codes[usize::from(bf16::exponent(weight))];
        let total = filled + code.bits;
        if total < WINDOW_BITS as u32 {
            word = word << code.bits | u64::from(code.value);
            filled = total;
            continue;
        }
        let over = total - WINDOW_BITS as u32;
        word = word << (code.bits - over) | u64::from(code.value >> over);
        out.stream.extend_from_slice(&word.to_be_bytes()[skip..]);
        skip = 0;
        word = u64::from(code.value);
        filled = over;
        window += 1;
        out.gaps.push(over as u8);
        if window.is_multiple_of(WINDOWS_PER_CHUNK) {
            out.positions
                .extend_from_slice(&(index as u32 + 1).to_le_bytes());
        }
    }
    if filled > 0 {
        let rest = (word << (WINDOW_BITS as u32 - filled)).to_be_bytes();
        out.stream
            .extend_from_slice(&rest[skip..filled.div_ceil(8) as usize]);
    }
    window * WINDOW_BITS + u64::from(filled)
}
