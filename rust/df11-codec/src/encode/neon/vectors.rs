//! Steps of the NEON encoder that know nothing of buffers: vectors in, vectors out.
// As in the module above.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::wildcard_imports)]

use std::arch::aarch64::*;

use super::LookedUp;

/// The `sign_mantissa` bytes of 16 weights, given their low and their high bytes.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub unsafe fn sign_mantissa(uint8x16x2_t(low, high): uint8x16x2_t) -> uint8x16_t {
    vbslq_u8(vdupq_n_u8(0x80), high, low)
}

/// The exponents of 16 weights, given their low and their high bytes.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub unsafe fn exponents(uint8x16x2_t(low, high): uint8x16x2_t) -> uint8x16_t {
    vsriq_n_u8::<7>(vaddq_u8(high, high), low)
}

/// The sums of the first and of the last 8 bytes.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub unsafe fn sums_of_8(bytes: uint8x16_t) -> [u32; 2] {
    let sums = vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(bytes)));
    [
        vgetq_lane_u64::<0>(sums) as u32,
        vgetq_lane_u64::<1>(sums) as u32,
    ]
}

/// Joins the codes of 8 neighbours; right wherever these have at most 64 bits.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub unsafe fn join_8(codes: &LookedUp) -> [u64; 2] {
    const Z: u8 = 0xFF;
    let lengths_of_2 = vpaddlq_u8(codes.lengths);
    let lengths_of_4 = vpaddlq_u16(lengths_of_2);
    // The second of each two neighbours' lengths, as 32-bit numbers; then of each two pairs', as 64-bit numbers.
    let second = [
        [1, Z, Z, Z, 3, Z, Z, Z, 5, Z, Z, Z, 7, Z, Z, Z],
        [9, Z, Z, Z, 11, Z, Z, Z, 13, Z, Z, Z, 15, Z, Z, Z],
    ];
    let second_of_2 = [
        [2, Z, Z, Z, Z, Z, Z, Z, 6, Z, Z, Z, Z, Z, Z, Z],
        [10, Z, Z, Z, Z, Z, Z, Z, 14, Z, Z, Z, Z, Z, Z, Z],
    ];
    let interleaved = [
        vzip1q_u8(codes.low, codes.high),
        vzip2q_u8(codes.low, codes.high),
    ];
    let mut joined = [vdupq_n_u64(0); 2];
    for (half, codes_of_8) in interleaved.into_iter().enumerate() {
        let pairs = vreinterpretq_u32_u8(codes_of_8);
        let shift = vreinterpretq_s32_u8(picked(codes.lengths, second[half]));
        let first = vandq_u32(pairs, vdupq_n_u32(0xFFFF));
        let of_2 = vsraq_n_u32::<16>(vshlq_u32(first, shift), pairs);

        let fours = vreinterpretq_u64_u32(of_2);
        let lengths = vreinterpretq_u8_u16(lengths_of_2);
        let shift = vreinterpretq_s64_u8(picked(lengths, second_of_2[half]));
        let first = vandq_u64(fours, vdupq_n_u64(0xFFFF_FFFF));
        joined[half] = vsraq_n_u64::<32>(vshlq_u64(first, shift), fours);
    }
    let first = vzip1q_u64(joined[0], joined[1]);
    let second = vzip2q_u64(joined[0], joined[1]);
    let shift = vshrq_n_u64::<32>(vreinterpretq_u64_u32(lengths_of_4));
    let of_8 = vorrq_u64(vshlq_u64(first, vreinterpretq_s64_u64(shift)), second);
    [vgetq_lane_u64::<0>(of_8), vgetq_lane_u64::<1>(of_8)]
}

/// The bytes with these numbers; 0 for numbers above 15.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn picked(bytes: uint8x16_t, numbers: [u8; 16]) -> uint8x16_t {
    // SAFETY: 16 bytes are read.
    vqtbl1q_u8(bytes, vld1q_u8(numbers.as_ptr()))
}

/// For each of 16 bytes, the sum of it and those before.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub unsafe fn running_sum(bytes: uint8x16_t) -> uint8x16_t {
    let zeros = vdupq_n_u8(0);
    let sum = vaddq_u8(bytes, vextq_u8::<15>(zeros, bytes));
    let sum = vaddq_u8(sum, vextq_u8::<14>(zeros, sum));
    let sum = vaddq_u8(sum, vextq_u8::<12>(zeros, sum));
    vaddq_u8(sum, vextq_u8::<8>(zeros, sum))
}
