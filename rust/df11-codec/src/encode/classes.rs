//! Code tables of 16 entries, as byte shuffles look them up.

use crate::codebook::Code;

/// Exponents that have a class of their own without being the hole.
pub const WINDOW: usize = 15;
/// Length of a class without a code that fits: its top bit says "one by one".
pub const NO_CODE: u8 = 0x80;

/// Exponent `e` has class `min(e - base, 15)`: fifteen neighbours with a class each, and one for all others. That one's code is the
/// most frequent other's, the *hole*: usually exponent 0, of exact zeros.
pub struct Classes {
    pub base: u8,
    pub hole: u8,
    /// Low and high byte of the class's code.
    pub low: [u8; 16],
    pub high: [u8; 16],
    /// Its length, 1 to 16, or [`NO_CODE`].
    pub lengths: [u8; 16],
    /// Whether so few weights have no class, fewer than one in 128, that a step of 64 mostly has none of them.
    pub pay: bool,
}

impl Classes {
    /// The classes that cover the most weights, judged by the code's lengths.
    pub fn new(codes: &[Code; 256]) -> Self {
        let fits = |code: Code| (1..=16).contains(&code.bits);
        let share = codes.map(|code| if fits(code) { 1 << (16 - code.bits) } else { 0 });
        let window_share = |base: usize| share[base..base + WINDOW].iter().sum::<u32>();
        let base = (0..=256 - WINDOW)
            .max_by_key(|&base| window_share(base))
            .unwrap_or(0);
        let hole = (0..256)
            .filter(|e| !(base..base + WINDOW).contains(e))
            .max_by_key(|&e| share[e])
            .unwrap_or(0);
        let mut classes = Self {
            base: base as u8,
            hole: hole as u8,
            low: [0; 16],
            high: [0; 16],
            lengths: [NO_CODE; 16],
            pay: window_share(base) + share[hole] > (1 << 16) - (1 << 9),
        };
        for (class, exponent) in (base..base + WINDOW).chain([hole]).enumerate() {
            let code = codes[exponent];
            if fits(code) {
                [classes.low[class], classes.high[class], ..] = code.value.to_le_bytes();
                classes.lengths[class] = code.bits as u8;
            }
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(lengths: &[(usize, u32)]) -> [Code; 256] {
        let mut codes = [Code::default(); 256];
        for &(exponent, bits) in lengths {
            let value = exponent as u32 + 1;
            codes[exponent] = Code { value, bits };
        }
        codes
    }

    #[test]
    fn the_best_window_and_the_best_of_the_rest() {
        let classes = Classes::new(&codes(&[
            (0, 5),
            (100, 2),
            (110, 1),
            (116, 16),
            (117, 9),
            (30, 17),
        ]));
        assert!((103..=110).contains(&classes.base) || classes.base <= 100);
        let class = |e: u8| usize::from(e.wrapping_sub(classes.base).min(15));
        assert_eq!(
            (classes.lengths[class(100)], classes.lengths[class(110)]),
            (2, 1)
        );
        assert_eq!(
            (classes.low[class(110)], classes.high[class(110)]),
            (111, 0)
        );
        assert_eq!(
            (classes.hole, classes.lengths[15], classes.low[15]),
            (0, 5, 1)
        );
    }

    #[test]
    fn codes_that_do_not_fit_have_no_class() {
        let classes = Classes::new(&codes(&[(255, 1), (254, 17), (7, 32)]));
        let class = |e: u8| usize::from(e.wrapping_sub(classes.base).min(15));
        assert_eq!(classes.lengths[class(255)], 1);
        assert_eq!(classes.lengths[class(254)], NO_CODE);
        assert_eq!(classes.lengths[15], NO_CODE, "no other exponent has a code");
    }
}
