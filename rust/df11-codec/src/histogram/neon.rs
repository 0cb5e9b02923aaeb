//! Bit slices with NEON: 128 weights a step become four vectors of one bit of their exponents each, and the counts are population counts
//! of these.
#![allow(unsafe_code)]
// Before Rust 1.87 every intrinsic is unsafe, since then only those that take a pointer.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::wildcard_imports)]

use std::arch::aarch64::*;

use super::sample::{SEGMENT_WEIGHTS, WINDOW, Window};
use crate::{arm, bf16};

/// Weights in a vector of exponents, and vectors in a step.
const LANES: usize = 16;
const VECTORS: usize = 8;
/// A step adds up to 8 to a byte.
const STEPS_TO_FULL_BYTES: usize = 255 / 8;

/// Adds the exponents of `weights`.
pub fn count(counts: &mut [u64; 256], weights: &[u8]) {
    for segment in weights.chunks(2 * SEGMENT_WEIGHTS) {
        match Window::choose(segment) {
            // SAFETY: the processor has the feature, as asked.
            Some(window) if arm::has_neon() => unsafe { count_window(counts, segment, window) },
            _ => super::scalar::count(counts, segment),
        }
    }
}

/// # Safety
/// The processor must have NEON.
#[target_feature(enable = "neon")]
unsafe fn count_window(counts: &mut [u64; 256], weights: &[u8], window: Window) {
    let steps = weights.chunks_exact(2 * LANES * VECTORS);
    super::scalar::count(counts, steps.remainder());
    let whole = &weights[..weights.len() - steps.remainder().len()];
    let mut holes = 0;
    for weights in whole.chunks(2 * LANES * VECTORS * STEPS_TO_FULL_BYTES) {
        let mut in_window = [vdupq_n_u8(0); WINDOW];
        for weights in weights.chunks_exact(2 * LANES * VECTORS) {
            let above_base = exponents(weights, vdupq_n_u8(window.base));
            let outside = bit_slice(above_base.map(|e| vcgeq_u8(e, vdupq_n_u8(WINDOW as u8))));
            add_slices(&mut in_window, outside, transposed(above_base));
            if vmaxvq_u8(outside) != 0 {
                let hole = vdupq_n_u8(window.hole.wrapping_sub(window.base));
                let in_hole = bit_slice(above_base.map(|e| vceqq_u8(e, hole)));
                holes += u64::from(vaddlvq_u8(vcntq_u8(in_hole)));
                add_each(counts, weights, vbicq_u8(outside, in_hole));
            }
        }
        for (exponent, more) in (window.base..=u8::MAX).zip(in_window) {
            add(counts, exponent, u64::from(vaddlvq_u8(more)));
        }
    }
    add(counts, window.hole, holes);
}

/// The exponents of 128 weights, less the base.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn exponents(weights: &[u8], base: uint8x16_t) -> [uint8x16_t; VECTORS] {
    let mut exponents = [base; VECTORS];
    for (exponents, weights) in exponents.iter_mut().zip(weights.chunks_exact(2 * LANES)) {
        // SAFETY: 32 bytes are read.
        let first = vreinterpretq_u16_u8(vld1q_u8(weights.as_ptr()));
        let second = vreinterpretq_u16_u8(vld1q_u8(weights.as_ptr().add(LANES)));
        let both = vshrn_high_n_u16::<7>(vshrn_n_u16::<7>(first), second);
        *exponents = vsubq_u8(both, base);
    }
    exponents
}

/// One bit of each byte of eight vectors, all of whose bits are the same: bit `7 - k` of byte `i` is byte `i` of vector `k`.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn bit_slice([v0, v1, v2, v3, v4, v5, v6, v7]: [uint8x16_t; VECTORS]) -> uint8x16_t {
    let pairs = [
        vsriq_n_u8::<1>(v0, v1),
        vsriq_n_u8::<1>(v2, v3),
        vsriq_n_u8::<1>(v4, v5),
        vsriq_n_u8::<1>(v6, v7),
    ];
    let fours = [
        vsriq_n_u8::<2>(pairs[0], pairs[1]),
        vsriq_n_u8::<2>(pairs[2], pairs[3]),
    ];
    vsriq_n_u8::<4>(fours[0], fours[1])
}

/// The four low bits of each byte of eight vectors: four vectors of one bit each, in the order of [`bit_slice`].
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn transposed([v0, v1, v2, v3, v4, v5, v6, v7]: [uint8x16_t; VECTORS]) -> [uint8x16_t; 4] {
    // Four bits of the one beside four of the other, then two beside two, then one beside one.
    let nibbles = [
        vsliq_n_u8::<4>(v4, v0),
        vsliq_n_u8::<4>(v5, v1),
        vsliq_n_u8::<4>(v6, v2),
        vsliq_n_u8::<4>(v7, v3),
    ];
    let twos = vdupq_n_u8(0b0011_0011);
    let pair = |second, first| {
        [
            vbslq_u8(twos, second, vshlq_n_u8::<2>(first)),
            vbslq_u8(twos, vshrq_n_u8::<2>(second), first),
        ]
    };
    let even = pair(nibbles[2], nibbles[0]);
    let odd = pair(nibbles[3], nibbles[1]);
    let ones = vdupq_n_u8(0b0101_0101);
    let single = |second, first| {
        [
            vbslq_u8(ones, second, vshlq_n_u8::<1>(first)),
            vbslq_u8(ones, vshrq_n_u8::<1>(second), first),
        ]
    };
    let [b0, b1] = single(odd[0], even[0]);
    let [b2, b3] = single(odd[1], even[1]);
    [b0, b1, b2, b3]
}

/// Adds how many of the weights not `outside` have each of the 16 values of four bits, the lowest first.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn add_slices(
    counts: &mut [uint8x16_t; WINDOW],
    outside: uint8x16_t,
    [b0, b1, b2, b3]: [uint8x16_t; 4],
) {
    let low_bits = [
        vmvnq_u8(vorrq_u8(b1, b0)),
        vbicq_u8(b0, b1),
        vbicq_u8(b1, b0),
        vandq_u8(b1, b0),
    ];
    let upper = [vmvnq_u8(vorrq_u8(outside, b3)), vbicq_u8(b3, outside)];
    let high_bits = [
        vbicq_u8(upper[0], b2),
        vandq_u8(upper[0], b2),
        vbicq_u8(upper[1], b2),
        vandq_u8(upper[1], b2),
    ];
    for (counts, high) in counts.chunks_exact_mut(4).zip(high_bits) {
        for (count, low) in counts.iter_mut().zip(low_bits) {
            *count = vaddq_u8(*count, vcntq_u8(vandq_u8(high, low)));
        }
    }
}

/// Counts those of 128 weights whose bit is set, one by one.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn add_each(counts: &mut [u64; 256], weights: &[u8], slice: uint8x16_t) {
    let halves = vreinterpretq_u64_u8(slice);
    let halves = [vgetq_lane_u64::<0>(halves), vgetq_lane_u64::<1>(halves)];
    for (half, mut bits) in halves.into_iter().enumerate() {
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            let at = LANES * (7 - bit % 8) + 8 * half + bit / 8;
            let word = u16::from_le_bytes([weights[2 * at], weights[2 * at + 1]]);
            add(counts, bf16::exponent(word), 1);
            bits &= bits - 1;
        }
    }
}

fn add(counts: &mut [u64; 256], exponent: u8, more: u64) {
    let count = &mut counts[usize::from(exponent)];
    *count = count.saturating_add(more);
}
