//! Bit slices with AVX-512: 512 weights a step. Tests of 16-bit lanes give the masks, 64 bytes of masks are combined and counted at once.
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]
// The build script leaves this module out where the compiler is older than these intrinsics.
#![allow(clippy::incompatible_msrv)]

use std::arch::x86_64::*;

use super::sample::{SEGMENT_WEIGHTS, WINDOW, Window};
use crate::{bf16, x86};

/// Weights in a vector, and vectors in a step.
const LANES: usize = 32;
const VECTORS: usize = 16;
/// Where an exponent stands in a weight.
const EXPONENT: i16 = 0x7F80;
const EXPONENT_AT: u32 = 7;
/// What is set in an exponent, less the base, outside the window.
const ABOVE: i16 = 0x7800;

/// Adds the exponents of `weights`.
pub fn count(counts: &mut [u64; 256], weights: &[u8]) {
    for segment in weights.chunks(2 * SEGMENT_WEIGHTS) {
        match Window::choose(segment) {
            // SAFETY: the processor has the features, as asked.
            Some(window) if x86::has_avx512() => unsafe { count_window(counts, segment, window) },
            _ => super::scalar::count(counts, segment),
        }
    }
}

/// # Safety
/// The processor must have the features of [`x86::has_avx512`].
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt,movbe")]
unsafe fn count_window(counts: &mut [u64; 256], weights: &[u8], window: Window) {
    let steps = weights.chunks_exact(2 * LANES * VECTORS);
    // SAFETY: this function has all its features.
    unsafe { super::avx2::count_window(counts, steps.remainder(), window) };
    let base = _mm512_set1_epi16((u16::from(window.base) << EXPONENT_AT) as i16);
    let exponent = _mm512_set1_epi16(EXPONENT);
    let mut in_window = [_mm512_setzero_si512(); WINDOW];
    let mut holes = 0;
    for weights in steps {
        // The four low bits of the exponents, less the base, and whether they are outside the window: a bit a weight.
        let mut bits = [[0u32; VECTORS]; 4];
        let mut outside = [0u32; VECTORS];
        let mut any_outside = 0;
        for (vector, weights) in weights.chunks_exact(2 * LANES).enumerate() {
            let ahead = weights.as_ptr().wrapping_add(x86::AHEAD);
            // SAFETY: nothing is read. Newer compilers need not be told.
            #[allow(unused_unsafe)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            }
            // SAFETY: 64 bytes are read.
            let words = unsafe { _mm512_loadu_si512(weights.as_ptr().cast()) };
            let above_base = _mm512_sub_epi16(_mm512_and_si512(words, exponent), base);
            for (bit, masks) in bits.iter_mut().enumerate() {
                let tested = _mm512_set1_epi16(1 << (EXPONENT_AT as usize + bit));
                masks[vector] = _mm512_test_epi16_mask(above_base, tested);
            }
            outside[vector] = _mm512_test_epi16_mask(above_base, _mm512_set1_epi16(ABOVE));
            any_outside |= outside[vector];
        }
        add_slices(
            &mut in_window,
            load(&outside),
            bits.each_ref().map(|masks| load(masks)),
        );
        if any_outside != 0 {
            holes += count_outside(counts, weights, &outside, window);
        }
    }
    add(counts, window.hole, holes);
    for (exponent, more) in (window.base..=u8::MAX).zip(in_window) {
        add(counts, exponent, _mm512_reduce_add_epi64(more) as u64);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(masks: &[u32; VECTORS]) -> __m512i {
    // SAFETY: 64 bytes are read.
    unsafe { _mm512_loadu_si512(masks.as_ptr().cast()) }
}

/// Adds how many of the weights not `outside` have each of the 16 values of four bits, the lowest first.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn add_slices(counts: &mut [__m512i; WINDOW], outside: __m512i, bits: [__m512i; 4]) {
    let [b0, b1, b2, b3] = bits;
    // The third number says which of the eight combinations of its three bits give 1.
    let high_bits = [
        _mm512_ternarylogic_epi64::<0b0000_0001>(outside, b3, b2),
        _mm512_ternarylogic_epi64::<0b0000_0010>(outside, b3, b2),
        _mm512_ternarylogic_epi64::<0b0000_0100>(outside, b3, b2),
        _mm512_ternarylogic_epi64::<0b0000_1000>(outside, b3, b2),
    ];
    for (counts, high) in counts.chunks_exact_mut(4).zip(high_bits) {
        let slices = [
            _mm512_ternarylogic_epi64::<0b0001_0000>(high, b1, b0),
            _mm512_ternarylogic_epi64::<0b0010_0000>(high, b1, b0),
            _mm512_ternarylogic_epi64::<0b0100_0000>(high, b1, b0),
            _mm512_ternarylogic_epi64::<0b1000_0000>(high, b1, b0),
        ];
        for (count, slice) in counts.iter_mut().zip(slices) {
            *count = _mm512_add_epi64(*count, _mm512_popcnt_epi64(slice));
        }
    }
}

/// Counts the weights outside the window: those of the hole, which it returns, and the others.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1")]
fn count_outside(
    counts: &mut [u64; 256],
    weights: &[u8],
    outside: &[u32; VECTORS],
    window: Window,
) -> u64 {
    let hole = _mm512_set1_epi16((u16::from(window.hole) << EXPONENT_AT) as i16);
    let mut holes = 0;
    for (weights, &outside) in weights.chunks_exact(2 * LANES).zip(outside) {
        if outside == 0 {
            continue;
        }
        // SAFETY: 64 bytes are read.
        let words = unsafe { _mm512_loadu_si512(weights.as_ptr().cast()) };
        let exponents = _mm512_and_si512(words, _mm512_set1_epi16(EXPONENT));
        let in_hole = _mm512_cmpeq_epi16_mask(exponents, hole);
        holes += u64::from(in_hole.count_ones());
        let mut others = outside & !in_hole;
        while others != 0 {
            let at = 2 * others.trailing_zeros() as usize;
            let word = u16::from_le_bytes([weights[at], weights[at + 1]]);
            add(counts, bf16::exponent(word), 1);
            others &= others - 1;
        }
    }
    holes
}

fn add(counts: &mut [u64; 256], exponent: u8, more: u64) {
    let count = &mut counts[usize::from(exponent)];
    *count = count.saturating_add(more);
}
