//! Code tables of 32 entries, as shuffles of words look them up.

use crate::codebook::Code;

/// Entries of a table.
pub const SLOTS: usize = 32;
/// Longest code that has a slot.
pub const SLOT_BITS: u32 = 16;

/// Exponent `e` looks in slot `e % 32`, so any 32 neighbours have a slot each. Of the exponents that share one, it belongs to the most
/// frequent: where weights are small, and few of them exactly zero or large, these find a place beside the neighbours.
pub struct Slots {
    /// The exponent whose slot it is. One without a code has an exponent that never looks there.
    pub owners: [u8; SLOTS],
    /// The code, right-aligned and left-aligned.
    pub right: [u16; SLOTS],
    pub left: [u16; SLOTS],
    /// Its length, 1 to [`SLOT_BITS`]; 0 without a code.
    pub lengths: [u8; SLOTS],
    /// Whether so few weights have no slot, fewer than one in 128, that a step of 64 mostly has none of them.
    pub pay: bool,
}

impl Slots {
    /// The slots that cover the most weights, judged by the code's lengths.
    pub fn new(codes: &[Code; 256]) -> Self {
        let mut slots = Self {
            owners: std::array::from_fn(|slot| slot as u8 + 1),
            right: [0; SLOTS],
            left: [0; SLOTS],
            lengths: [0; SLOTS],
            pay: false,
        };
        let mut share = 0;
        for slot in 0..SLOTS {
            let owner = (slot..codes.len())
                .step_by(SLOTS)
                .filter(|&exponent| (1..=SLOT_BITS).contains(&codes[exponent].bits))
                .min_by_key(|&exponent| codes[exponent].bits);
            let Some(owner) = owner else { continue };
            let Code { value, bits } = codes[owner];
            let free = SLOT_BITS - bits;
            slots.owners[slot] = owner as u8;
            slots.right[slot] = value as u16;
            slots.left[slot] = (value << free) as u16;
            slots.lengths[slot] = bits as u8;
            share += 1 << free;
        }
        slots.pay = share > (1 << SLOT_BITS) - (1 << (SLOT_BITS - 7));
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(lengths: &[(usize, u32)]) -> [Code; 256] {
        let mut codes = [Code::default(); 256];
        for &(exponent, bits) in lengths {
            let value = ((1u64 << bits) - 1) as u32 ^ 2;
            codes[exponent] = Code { value, bits };
        }
        codes
    }

    #[test]
    fn a_slot_is_its_most_frequent_exponents() {
        let slots = Slots::new(&codes(&[(96, 12), (0, 5), (128, 13), (127, 3), (255, 2)]));
        assert_eq!((slots.owners[0], slots.lengths[0]), (0, 5));
        assert_eq!((slots.right[0], slots.left[0]), (0b11101, 0b11101 << 11));
        assert_eq!((slots.owners[31], slots.lengths[31]), (255, 2));
    }

    #[test]
    fn a_slot_without_a_code_is_nobodys() {
        let slots = Slots::new(&codes(&[(100, 17), (4, 32), (131, 16)]));
        for (slot, owner) in slots.owners.into_iter().enumerate() {
            let has_code = slot == 131 % SLOTS;
            assert_eq!(usize::from(owner) % SLOTS == slot, has_code);
            assert_eq!(slots.lengths[slot] > 0, has_code);
        }
    }

    #[test]
    fn they_pay_where_nearly_all_weights_have_one() {
        let mut lengths: Vec<(usize, u32)> =
            (1..8).map(|bits| (100 + bits as usize, bits)).collect();
        lengths.push((101 + 32, 7));
        assert!(!Slots::new(&codes(&lengths)).pay, "one in 128 is left over");
        lengths.push((120, 8));
        assert!(Slots::new(&codes(&lengths)).pay);
    }
}
