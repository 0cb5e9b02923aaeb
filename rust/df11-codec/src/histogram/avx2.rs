//! Bit slices with AVX2: 64 weights a step become masks of their exponents' bits, and the counts are population counts of these.
#![allow(unsafe_code)]
// Before Rust 1.87 every intrinsic is unsafe, since then only those that take a pointer.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::sample::{SEGMENT_WEIGHTS, WINDOW, Window};
use crate::x86;

/// Weights of a step.
const STEP: usize = 64;

/// Adds the exponents of `weights`.
pub fn count(counts: &mut [u64; 256], weights: &[u8]) {
    for segment in weights.chunks(2 * SEGMENT_WEIGHTS) {
        match Window::choose(segment) {
            // SAFETY: the processor has the features, as asked.
            Some(window) if x86::has_avx2() => unsafe { count_window(counts, segment, window) },
            _ => super::scalar::count(counts, segment),
        }
    }
}

/// # Safety
/// The processor must have the features of [`x86::has_avx2`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,movbe")]
unsafe fn count_window(counts: &mut [u64; 256], weights: &[u8], window: Window) {
    let steps = weights.chunks_exact(2 * STEP);
    super::reference::count(counts, steps.remainder());
    let base = _mm256_set1_epi8(window.base as i8);
    let hole = _mm256_set1_epi8(window.hole.wrapping_sub(window.base) as i8);
    let above = _mm256_set1_epi8(0xF0u8 as i8);
    let mut in_window = [0; WINDOW];
    let mut holes = 0;
    for weights in steps {
        for line in [0, STEP] {
            let ahead = weights.as_ptr().wrapping_add(x86::AHEAD + line);
            _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
        }
        // By how much the exponents are above the base. Their order does not matter, as long as it is one.
        let low = _mm256_sub_epi8(exponents(weights, 0), base);
        let high = _mm256_sub_epi8(exponents(weights, STEP), base);
        let zero = _mm256_setzero_si256();
        let inside = mask(
            _mm256_cmpeq_epi8(_mm256_and_si256(low, above), zero),
            _mm256_cmpeq_epi8(_mm256_and_si256(high, above), zero),
        );
        add_slices(
            &mut in_window,
            inside,
            [
                mask(_mm256_slli_epi16::<7>(low), _mm256_slli_epi16::<7>(high)),
                mask(_mm256_slli_epi16::<6>(low), _mm256_slli_epi16::<6>(high)),
                mask(_mm256_slli_epi16::<5>(low), _mm256_slli_epi16::<5>(high)),
                mask(_mm256_slli_epi16::<4>(low), _mm256_slli_epi16::<4>(high)),
            ],
        );
        if inside != u64::MAX {
            let in_hole = mask(_mm256_cmpeq_epi8(low, hole), _mm256_cmpeq_epi8(high, hole));
            holes += u64::from(in_hole.count_ones());
            let mut others = !(inside | in_hole);
            if others != 0 {
                let mut exponents = [[0u8; STEP / 2]; 2];
                // SAFETY: there is room for 32 bytes.
                _mm256_storeu_si256(exponents[0].as_mut_ptr().cast(), low);
                _mm256_storeu_si256(exponents[1].as_mut_ptr().cast(), high);
                while others != 0 {
                    let at = others.trailing_zeros() as usize;
                    let exponent = exponents[at / 32][at % 32].wrapping_add(window.base);
                    add(counts, exponent, 1);
                    others &= others - 1;
                }
            }
        }
    }
    add(counts, window.hole, holes);
    for (exponent, more) in (window.base..=u8::MAX).zip(in_window) {
        add(counts, exponent, more);
    }
}

/// Adds how many of the weights in `inside` have each of the 16 values of four bits, the lowest first.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "popcnt,bmi1")]
unsafe fn add_slices(counts: &mut [u64; WINDOW], inside: u64, [b0, b1, b2, b3]: [u64; 4]) {
    let low_bits = [!b1 & !b0, !b1 & b0, b1 & !b0, b1 & b0];
    let upper = [inside & !b3, inside & b3];
    let high_bits = [upper[0] & !b2, upper[0] & b2, upper[1] & !b2, upper[1] & b2];
    for (counts, high) in counts.chunks_exact_mut(4).zip(high_bits) {
        for (count, low) in counts.iter_mut().zip(low_bits) {
            *count += u64::from((high & low).count_ones());
        }
    }
}

/// The exponents of the 32 weights from byte `at` of 128 bytes.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn exponents(weights: &[u8], at: usize) -> __m256i {
    let weights = weights[at..at + STEP].as_ptr();
    // SAFETY: 64 bytes are read.
    let first = _mm256_loadu_si256(weights.cast());
    let second = _mm256_loadu_si256(weights.add(32).cast());
    _mm256_packus_epi16(
        _mm256_srli_epi16::<8>(_mm256_add_epi16(first, first)),
        _mm256_srli_epi16::<8>(_mm256_add_epi16(second, second)),
    )
}

/// The top bits of 64 bytes.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn mask(low: __m256i, high: __m256i) -> u64 {
    let low = u64::from(_mm256_movemask_epi8(low) as u32);
    let high = u64::from(_mm256_movemask_epi8(high) as u32);
    low | high << 32
}

fn add(counts: &mut [u64; 256], exponent: u8, more: u64) {
    let count = &mut counts[usize::from(exponent)];
    *count = count.saturating_add(more);
}
