//! What the steps look up and shuffle by.
#![allow(clippy::wildcard_imports)]

use std::arch::x86_64::*;

use crate::encode::slots::{SLOTS, Slots};

/// Made once for a piece and read from memory: a compiler that knows the orders makes more of the shuffles, not less.
pub struct Tables {
    /// Codes by slot, in words: right-aligned and left-aligned.
    pub right: __m512i,
    pub left: __m512i,
    /// Their lengths, in words, and twice in bytes.
    pub word_lengths: __m512i,
    pub lengths: __m512i,
    /// Exponents whose slots they are, twice.
    pub owners: __m512i,
    /// Out of the 16 quads of two vectors: those that come first in their octets, and the others.
    pub first_quads: __m512i,
    pub second_quads: __m512i,
    /// Out of the 64 words of two vectors: low and high bytes.
    pub low: __m512i,
    pub high: __m512i,
    /// The lowest bytes of all eight numbers, in each of them.
    pub all_octets: __m512i,
    /// Masks those of the numbers before.
    pub octets_before: __m512i,
    /// The lowest byte of each number, in all its bytes.
    pub lowest: __m512i,
    /// The bytes of each number, the highest first.
    pub highest_first: __m512i,
}

impl Tables {
    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    pub fn new(slots: &Slots) -> Self {
        Self {
            right: words(slots.right),
            left: words(slots.left),
            word_lengths: words(slots.lengths.map(u16::from)),
            lengths: bytes(|at| slots.lengths[usize::from(at) % SLOTS]),
            owners: bytes(|at| slots.owners[usize::from(at) % SLOTS]),
            first_quads: _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0),
            second_quads: _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1),
            low: bytes(|at| 2 * at),
            high: bytes(|at| 2 * at + 1),
            all_octets: bytes(|at| 8 * (at % 8)),
            octets_before: bytes(|at| if at % 8 < at / 8 { 0xFF } else { 0 }),
            lowest: bytes(|at| at & 8),
            highest_first: bytes(|at| at ^ 7),
        }
    }
}

#[target_feature(enable = "avx512f")]
fn words(words: [u16; 32]) -> __m512i {
    // SAFETY: 64 bytes are read.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn bytes(byte: impl Fn(u8) -> u8) -> __m512i {
    let bytes: [u8; 64] = std::array::from_fn(|at| byte(at as u8));
    // SAFETY: 64 bytes are read.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
