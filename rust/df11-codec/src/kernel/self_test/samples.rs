//! Weights that take every path of the kernels.

/// An exponent by the weight's index and a random number.
type Exponent = fn(usize, u64) -> u8;

/// Weights of a sample and their exponents: more than four kernel chunks each, which a check decodes side by side. The scalar kernel
/// encodes three of them in ways of its own: large and small, and where nothing can be joined.
///
/// From steep (few different ones, with zeros and stragglers) to flat (codes of 8 bits); stretches of 1 and of about 5 bits a weight, and
/// few of about 12; and a ladder with codes of more than 16.
const SAMPLES: [(usize, Exponent); 4] = [
    (66_000, |_, random| match random % 512 {
        0..25 => 0,
        25 => 200,
        _ => 122 - (random >> 9 & 0xFFFF | 0x10_0000).trailing_zeros() as u8,
    }),
    (50_001, |index, random| match index / 512 % 2 {
        _ if index / 64 % 256 == 255 => 118 + (random % 16) as u8,
        0 => 110,
        _ => 103 + (random % 15) as u8,
    }),
    (18_003, |_, random| (random % 240) as u8),
    (66_007, |_, random| {
        let seven_of_16 = random & (random >> 15 | random >> 29 | random >> 44);
        140 - (seven_of_16 | 1 << 20).trailing_zeros() as u8
    }),
];

/// Makes the samples, one after the other.
pub fn all() -> impl Iterator<Item = Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    SAMPLES.into_iter().map(move |(weights, exponent)| {
        let mut sample = vec![0; 2 * weights];
        for (index, weight) in sample.chunks_exact_mut(2).enumerate() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let noise = (state >> 48) as u16 & 0x807F;
            let word = noise | u16::from(exponent(index, state)) << 7;
            weight.copy_from_slice(&word.to_le_bytes());
        }
        sample
    })
}
