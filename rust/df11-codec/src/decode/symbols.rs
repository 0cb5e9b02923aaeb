//! Several codes by one look-up.

use super::tables::QUICK_BITS;

/// Most codes of one look-up: five bytes.
const MAX_CODES: u32 = 5;

/// Where the parts of an entry are.
const CODES_AT: u32 = 6;
const EXPONENTS_AT: u32 = 11;
const ENDS_AT: u32 = EXPONENTS_AT + 8 * MAX_CODES;

/// By the next 12 bits: the codes that end within them.
///
/// The lowest six bits of an entry say how many bits they take, five more how many they are: room for the sums of several entries. Then
/// come five bytes of exponents, the first one lowest, and 12 bits of which bit `k` is set where a code ends `k + 1` bits behind. 0 where not
/// even one is decided.
#[derive(Clone, Debug)]
pub struct Symbols {
    several: Box<[u64; ENTRIES]>,
    /// The code that the next bits decide: exponent, and length in the high byte; 0 where they do not. By the number of known bits, a one
    /// above them: those of one known bit stand at 2 and 3, those of 12 at 4096 and behind.
    decided: Box<[u16; 2 * ENTRIES]>,
}

/// Look-ups.
const ENTRIES: usize = 1 << QUICK_BITS;

/// An entry of [`Symbols`].
#[derive(Clone, Copy, Default)]
pub struct Entry(u64);

impl Entry {
    /// Whether no code is decided.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Exponents, the first one in byte 0; bytes behind them are to be ignored.
    #[inline]
    pub fn exponents(self) -> [u8; 8] {
        (self.0 >> EXPONENTS_AT).to_le_bytes()
    }

    /// Bit `k` is set where a code ends `k + 1` bits behind.
    #[inline]
    pub fn ends(self) -> u64 {
        self.0 >> ENDS_AT
    }

    /// The bits that follow in `buffer`, left-aligned: a shift that only looks at the lowest bits of the entry.
    #[inline]
    pub fn shift(self, buffer: u64) -> u64 {
        buffer.wrapping_shl(self.0 as u32)
    }
}

/// What several look-ups have taken: codes, and less than 64 bits.
#[derive(Clone, Copy, Default)]
pub struct Taken(u64);

impl Taken {
    /// So many codes, of bits that do not count.
    #[inline]
    pub fn codes_before(codes: usize) -> Self {
        Self((codes as u64) << CODES_AT)
    }

    /// Adds a look-up.
    #[inline]
    pub fn add(&mut self, entry: Entry) {
        self.0 += entry.0 & ((1 << EXPONENTS_AT) - 1);
    }

    /// Number of codes.
    #[inline]
    pub fn codes(self) -> usize {
        (self.0 >> CODES_AT) as usize
    }

    /// Bits that they take.
    #[inline]
    pub fn bits(self) -> usize {
        (self.0 % (1 << CODES_AT)) as usize
    }

    /// Marks of the next look-up, as seen from the first: a shift that only looks at the lowest bits.
    #[inline]
    pub fn behind(self, marks: u64) -> u64 {
        marks.wrapping_shl(self.0 as u32)
    }
}

impl Default for Symbols {
    /// Nothing decided. 48 KiB.
    #[allow(clippy::large_stack_arrays)]
    fn default() -> Self {
        Self {
            several: Box::new([0; ENTRIES]),
            decided: Box::new([0; 2 * ENTRIES]),
        }
    }
}

impl Symbols {
    /// Sets all entries from those for one code by 12 bits: exponent, and length in the high byte; 0 where 12 bits do not decide.
    ///
    /// A code counts as decided only where the bits behind those known cannot change it, whatever nonsense a file's tables are: the
    /// result is what one look-up after the other gives.
    pub fn fill(&mut self, code: impl Fn(u32) -> u16) {
        for (entry, prefix) in self.decided[ENTRIES..].iter_mut().zip(0..) {
            *entry = code(prefix);
        }
        for known in (1..ENTRIES).rev() {
            let [zero, one] = [0, 1].map(|bit| self.decided[2 * known + bit]);
            self.decided[known] = if zero == one { zero } else { 0 };
        }
        for (prefix, entry) in self.several.iter_mut().enumerate() {
            *entry = several(&self.decided, prefix);
        }
    }

    /// The code at the top of `buffer`: exponent, and length in the high byte; 0 where 12 bits do not decide.
    #[inline]
    pub fn first(&self, buffer: u64) -> u16 {
        self.decided[ENTRIES + (buffer >> (64 - QUICK_BITS)) as usize]
    }

    /// The entry for the bits at the top of `buffer`.
    #[inline]
    pub fn entry(&self, buffer: u64) -> Entry {
        Entry(self.several[(buffer >> (64 - QUICK_BITS)) as usize])
    }
}

/// The entry for 12 bits.
fn several(decided: &[u16; 2 * ENTRIES], prefix: usize) -> u64 {
    let (mut bits, mut codes) = (0, 0);
    let mut entry = 0;
    while codes < MAX_CODES {
        let known = QUICK_BITS - bits;
        let code = decided[1 << known | prefix & ((1 << known) - 1)];
        let length = u32::from(code >> 8);
        if code == 0 || length > known {
            break;
        }
        entry |= u64::from(code as u8) << (EXPONENTS_AT + 8 * codes);
        bits += length;
        codes += 1;
        entry |= 1 << (ENDS_AT + bits - 1);
    }
    entry | u64::from(codes) << CODES_AT | u64::from(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of a broken file: which code it is may depend on bits behind the code.
    #[test]
    fn one_look_up_is_several() {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut taken = [0; MAX_CODES as usize + 1];
        for variants in [1, 2, 3, 50] {
            let codes: Vec<u16> = (0..64)
                .map(|_| (1 + random() as u16 % 6) << 8 | random() as u16 & 0xFF)
                .collect();
            let mut quick = [0; 1 << QUICK_BITS];
            for (prefix, code) in quick.iter_mut().enumerate() {
                let variant = random() as usize % variants / 2;
                *code = codes[((prefix >> 6) + variant) % 64];
                if random() % 500 == 0 {
                    *code = 0;
                }
            }
            let mut symbols = Symbols::default();
            symbols.fill(|prefix| quick[prefix as usize]);
            for _ in 0..20_000 {
                let buffer = random();
                let entry = symbols.entry(buffer);
                let mut sum = Taken::default();
                sum.add(entry);
                let (mut bits, mut ends) = (0, 0u64);
                for &exponent in &entry.exponents()[..sum.codes()] {
                    let code = quick[(buffer << bits >> (64 - QUICK_BITS)) as usize];
                    assert_eq!(code as u8, exponent);
                    bits += u32::from(code >> 8);
                    ends |= 1 << (bits - 1);
                }
                assert_eq!((sum.bits(), entry.ends()), (bits as usize, ends));
                assert_eq!(entry.shift(buffer), buffer << bits);
                assert_eq!(entry.is_none(), sum.codes() == 0);
                taken[sum.codes()] += 1;
            }
        }
        assert!(taken.iter().all(|&n| n > 0), "{taken:?}");
    }
}
