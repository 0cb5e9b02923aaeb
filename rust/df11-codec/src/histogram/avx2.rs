//! Counters of four bits with AVX2: a byte shuffle turns 32 exponents into ones for the counters that they belong to.
#![allow(unsafe_code)]
// Before Rust 1.87 every intrinsic is unsafe, since then only those that take a pointer.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::sample::{SEGMENT_WEIGHTS, WINDOW, Window};
use crate::x86;

/// Weights of a vector of exponents.
const LANES: usize = 32;
/// Vectors of a step: a counter of four bits holds no more.
const VECTORS: usize = 15;
/// What sets a byte's top bit where it is not less than [`WINDOW`].
const TO_TOP_BIT: i8 = (0x80 - WINDOW) as i8;

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
pub unsafe fn count_window(counts: &mut [u64; 256], weights: &[u8], window: Window) {
    let vectors = weights.chunks_exact(2 * LANES);
    super::reference::count(counts, vectors.remainder());
    let whole = &weights[..weights.len() - vectors.remainder().len()];
    let base = _mm256_set1_epi8(window.base as i8);
    let hole = _mm256_set1_epi8(window.hole.wrapping_sub(window.base) as i8);
    let zero = _mm256_setzero_si256();
    let ones = ones();
    let mut sums = [[zero; 2]; WINDOW / 2];
    let mut holes = zero;
    for weights in whole.chunks(2 * LANES * VECTORS) {
        // Places in the window. Where the exponent is outside the window the top bit is set, and the shuffle gives 0.
        let mut places = [zero; VECTORS];
        let (mut hole_counters, mut outside) = (zero, zero);
        for (to, weights) in places.iter_mut().zip(weights.chunks_exact(2 * LANES)) {
            let above_base = _mm256_sub_epi8(exponents(weights), base);
            *to = _mm256_adds_epu8(above_base, _mm256_set1_epi8(TO_TOP_BIT));
            let is_hole = _mm256_cmpeq_epi8(above_base, hole);
            hole_counters = _mm256_sub_epi8(hole_counters, is_hole);
            outside = _mm256_or_si256(outside, _mm256_andnot_si256(is_hole, *to));
        }
        holes = _mm256_add_epi64(holes, _mm256_sad_epu8(hole_counters, zero));
        let vectors = weights.len() / (2 * LANES);
        for (sums, &ones) in sums.iter_mut().zip(&ones) {
            let mut counters = zero;
            for &index in &places[..vectors] {
                counters = _mm256_add_epi8(counters, _mm256_shuffle_epi8(ones, index));
            }
            let low = _mm256_and_si256(counters, _mm256_set1_epi8(0x0F));
            sums[0] = _mm256_add_epi64(sums[0], _mm256_sad_epu8(low, zero));
            sums[1] = _mm256_add_epi64(sums[1], _mm256_sad_epu8(counters, zero));
        }
        if _mm256_movemask_epi8(outside) != 0 {
            count_others(counts, weights, window);
        }
    }
    add(counts, window.hole, sum(holes));
    for (pair, [low, both]) in sums.into_iter().enumerate() {
        // The upper counter of a byte counts sixteens.
        let (low, both) = (sum(low), sum(both));
        let exponent = window.base + 2 * pair as u8;
        add(counts, exponent, low);
        add(counts, exponent + 1, (both - low) / 16);
    }
}

/// For each two exponents of the window, by the exponent's place in it: one in the lower counter of a byte for the first one, in the
/// upper counter for the second.
///
/// # Safety
/// The processor must have the features below.
#[target_feature(enable = "avx2")]
unsafe fn ones() -> [__m256i; WINDOW / 2] {
    let mut ones = [_mm256_setzero_si256(); WINDOW / 2];
    for (pair, ones) in ones.iter_mut().enumerate() {
        let mut bytes = [0u8; WINDOW];
        bytes[2 * pair] = 0x01;
        bytes[2 * pair + 1] = 0x10;
        // SAFETY: 16 bytes are read.
        *ones = _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast()));
    }
    ones
}

/// The sum of four numbers.
///
/// # Safety
/// The processor must have the features below.
#[target_feature(enable = "avx2")]
unsafe fn sum(numbers: __m256i) -> u64 {
    let mut sums = [0u64; 4];
    // SAFETY: there is room for 32 bytes.
    _mm256_storeu_si256(sums.as_mut_ptr().cast(), numbers);
    sums.iter().sum()
}

/// Counts the weights that are neither in the window nor in its hole, one by one.
///
/// # Safety
/// The processor must have the features below.
#[target_feature(enable = "avx2,bmi1")]
unsafe fn count_others(counts: &mut [u64; 256], weights: &[u8], window: Window) {
    for weights in weights.chunks_exact(2 * LANES) {
        let vector = exponents(weights);
        let above_base = _mm256_sub_epi8(vector, _mm256_set1_epi8(window.base as i8));
        let outside = _mm256_adds_epu8(above_base, _mm256_set1_epi8(TO_TOP_BIT));
        let is_hole = _mm256_cmpeq_epi8(vector, _mm256_set1_epi8(window.hole as i8));
        let mut others = _mm256_movemask_epi8(_mm256_andnot_si256(is_hole, outside)) as u32;
        if others == 0 {
            continue;
        }
        let mut exponents = [0; LANES];
        // SAFETY: there is room for 32 bytes.
        _mm256_storeu_si256(exponents.as_mut_ptr().cast(), vector);
        while others != 0 {
            add(counts, exponents[others.trailing_zeros() as usize], 1);
            others &= others - 1;
        }
    }
}

/// The exponents of 32 weights, in an order of their own.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn exponents(weights: &[u8]) -> __m256i {
    let weights = weights[..2 * LANES].as_ptr();
    _mm_prefetch::<_MM_HINT_T0>(weights.wrapping_add(x86::AHEAD).cast());
    // SAFETY: 64 bytes are read.
    let first = _mm256_loadu_si256(weights.cast());
    let second = _mm256_loadu_si256(weights.add(LANES).cast());
    _mm256_packus_epi16(
        _mm256_srli_epi16::<8>(_mm256_add_epi16(first, first)),
        _mm256_srli_epi16::<8>(_mm256_add_epi16(second, second)),
    )
}

fn add(counts: &mut [u64; 256], exponent: u8, more: u64) {
    let count = &mut counts[usize::from(exponent)];
    *count = count.saturating_add(more);
}
