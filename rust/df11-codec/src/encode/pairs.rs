//! Codes of two neighbours by one look-up.

use std::fmt;

use crate::codebook::Code;

/// Entries: every two exponents.
const PAIRS: usize = 1 << 16;
/// Where the joined codes stand in an entry, above their length.
const CODES_AT: u32 = 8;
/// Most bits of joined codes.
const MOST_BITS: u32 = 64 - CODES_AT;
/// The length of a pair whose codes must be put one by one: more than can be put at once.
const NOT_JOINED: u64 = 63;

/// Joined codes by the two exponents, the first one in the low byte. Half a megabyte, of which only pairs that occur are touched; kept
/// from piece to piece as long as the code is the same.
#[derive(Clone, Default)]
pub struct PairTable {
    codes: Vec<Code>,
    entries: Vec<u64>,
}

/// Entries for a code.
pub struct Pairs<'a>(&'a [u64; PAIRS]);

/// Joined codes.
#[derive(Clone, Copy)]
pub struct Pair(u64);

impl Pair {
    /// The bits, right-aligned.
    #[inline]
    pub fn value(self) -> u64 {
        self.0 >> CODES_AT
    }

    /// How many. More than 57 where this is no joined code.
    #[inline]
    pub fn bits(self) -> u32 {
        u32::from(self.0 as u8)
    }

    /// How many bits four pairs have together.
    #[inline]
    pub fn bits_of(pairs: [Self; 4]) -> u32 {
        // The low bytes cannot overflow.
        let sum = pairs
            .iter()
            .fold(0u64, |sum, pair| sum.wrapping_add(pair.0));
        u32::from(sum as u8)
    }
}

impl PairTable {
    /// The table for these codes.
    pub fn of(&mut self, codes: &[Code; 256]) -> Option<Pairs<'_>> {
        if self.codes != codes {
            self.make(codes);
        }
        self.entries.first_chunk().map(Pairs)
    }

    fn make(&mut self, codes: &[Code; 256]) {
        if self.entries.is_empty() {
            self.entries = vec![0; PAIRS];
        }
        self.codes = codes.to_vec();
        let used = || codes.iter().enumerate().filter(|(_, code)| code.bits > 0);
        for (second, second_code) in used() {
            for (first, first_code) in used() {
                let bits = first_code.bits + second_code.bits;
                let entry = if bits <= MOST_BITS {
                    let first = u64::from(first_code.value) << second_code.bits;
                    (first | u64::from(second_code.value)) << CODES_AT | u64::from(bits)
                } else {
                    NOT_JOINED
                };
                self.entries[second << 8 | first] = entry;
            }
        }
    }
}

impl fmt::Debug for PairTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairTable").finish_non_exhaustive()
    }
}

impl Pairs<'_> {
    /// The pairs of four weights, as they stand in memory.
    #[inline]
    pub fn of_four(&self, weights: u64) -> [Pair; 2] {
        let exponents = weights >> 7 & 0x00FF_00FF_00FF_00FF;
        let pairs = exponents | exponents >> 8;
        [pairs, pairs >> 32].map(|pair| Pair(self.0[usize::from(pair as u16)]))
    }
}
