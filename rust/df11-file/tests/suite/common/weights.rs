//! BF16 weights of all kinds, little-endian.

/// The `SplitMix64` generator: small, seeded, good enough for weights.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}

/// A weight of this exponent with sign and mantissa from `random`.
fn weight(exponent: u8, random: u64) -> [u8; 2] {
    (u16::from(exponent) << 7 | (random >> 48) as u16 & 0x807F).to_le_bytes()
}

/// `n` weights whose exponents `pick` gives by index and a random number.
pub fn by(seed: u64, n: usize, pick: impl Fn(usize, u64) -> u8) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(n * 2);
    for index in 0..n {
        let number = random.next();
        bytes.extend_from_slice(&weight(pick(index, number), number));
    }
    bytes
}

/// Exponents that fall off by half from 122 down, as those of trained weights do.
pub fn realistic(seed: u64, n: usize) -> Vec<u8> {
    by(seed, n, |_, random| {
        122 - (random as u32).trailing_zeros().min(40) as u8
    })
}

/// One exponent alone.
pub fn constant(seed: u64, n: usize) -> Vec<u8> {
    by(seed, n, |_, _| 120)
}

/// One exponent but for one weight in `every`.
pub fn near_constant(seed: u64, n: usize, every: usize) -> Vec<u8> {
    by(
        seed,
        n,
        |index, _| {
            if index % every == every / 2 { 110 } else { 120 }
        },
    )
}

/// Half of one exponent, half of 239 others: more than 17 decode tables.
pub fn many_tables(seed: u64, n: usize) -> Vec<u8> {
    by(seed, n, |index, random| {
        if index % 2 == 0 {
            100
        } else {
            (random % 239) as u8
        }
    })
}

/// Exponents without any regularity: what DF11 cannot shrink.
pub fn noise(seed: u64, n: usize) -> Vec<u8> {
    by(seed, n, |_, random| (random % 240) as u8)
}
