//! Made-up weights, the same on every machine.

use safetensors::Dtype;

use crate::convert::Conversion;

/// Weights of one row.
const ROW: usize = 4096;

/// Little-endian BF16 weights, normal with a spread of its own (0.005 to 0.08) for each row, as trained ones have it.
pub fn synthetic(weights: usize) -> Vec<u8> {
    let mut bytes = vec![0; 2 * weights];
    if let Some(round) = Conversion::between(Dtype::F32, Dtype::BF16) {
        let mut values = vec![0; 4 * ROW];
        for (row, bytes) in bytes.chunks_mut(2 * ROW).enumerate() {
            draw(&mut Random(row as u64), &mut values);
            round.apply(&values[..2 * bytes.len()], bytes);
        }
    }
    bytes
}

/// A row of F32 values.
fn draw(random: &mut Random, values: &mut [u8]) {
    let sigma = 0.005 * 16_f32.powf(random.uniform());
    for pair in values.chunks_exact_mut(8) {
        for (value, normal) in pair.chunks_exact_mut(4).zip(random.normals()) {
            value.copy_from_slice(&(sigma * normal).to_le_bytes());
        }
    }
}

/// The `SplitMix64` generator.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f32 {
        ((self.bits() >> 40) + 1) as f32 / (1 << 24) as f32
    }

    /// Two normal numbers.
    fn normals(&mut self) -> [f32; 2] {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sine, cosine) = (std::f32::consts::TAU * self.uniform()).sin_cos();
        [radius * sine, radius * cosine]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_differ_and_repeat() {
        let weights = synthetic(3 * ROW + 1);
        assert_eq!(weights.len(), 2 * (3 * ROW + 1));
        assert_eq!(weights, synthetic(3 * ROW + 1));
        let spread = |row: &[u8]| {
            let squares = row.chunks_exact(2).map(|word| {
                let word = u16::from_le_bytes([word[0], word[1]]);
                f32::from_bits(u32::from(word) << 16).powi(2)
            });
            (squares.sum::<f32>() / ROW as f32).sqrt()
        };
        let spreads: Vec<_> = weights.chunks_exact(2 * ROW).map(spread).collect();
        assert!(spreads.iter().all(|s| (0.0045..0.085).contains(s)));
        assert!(spreads[0] > 1.5 * spreads[1]);
    }
}
