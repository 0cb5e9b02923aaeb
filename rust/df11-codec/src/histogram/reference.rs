//! The reference histogram: one weight a step.

use crate::bf16;

/// Adds the exponents of `weights`.
pub fn count(counts: &mut [u64; 256], weights: &[u8]) {
    for word in bf16::words(weights) {
        let count = &mut counts[usize::from(bf16::exponent(word))];
        *count = count.saturating_add(1);
    }
}
