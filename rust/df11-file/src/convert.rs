//! Float conversions that the official node does when it loads a model in BF16.

use safetensors::Dtype;

/// A conversion of every element of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    from: Dtype,
    to: Dtype,
}

impl Conversion {
    /// The conversion between two float dtypes; none where there is nothing to do or it does not exist.
    pub fn between(from: Dtype, to: Dtype) -> Option<Self> {
        let known = matches!(from, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16)
            && matches!(to, Dtype::BF16 | Dtype::F32);
        (from != to && known).then_some(Self { from, to })
    }

    /// Bytes of one element before and after.
    pub fn widths(self) -> (usize, usize) {
        (self.from.bitsize() / 8, self.to.bitsize() / 8)
    }

    /// Bytes that whole elements of together `bytes` bytes take once converted.
    pub fn converted_bytes(self, bytes: u64) -> u64 {
        let (from, to) = self.widths();
        bytes / from as u64 * to as u64
    }

    /// Bytes that whole elements of together `bytes` bytes have before they are converted.
    pub fn source_bytes(self, bytes: u64) -> u64 {
        let (from, to) = self.widths();
        bytes / to as u64 * from as u64
    }

    /// Converts whole elements of `input` (little-endian) into `output` and returns how many changed their value.
    #[allow(clippy::float_cmp)] // Whether a value changed at all is the question.
    pub fn apply(self, input: &[u8], output: &mut [u8]) -> u64 {
        let (from, to) = self.widths();
        let mut changed = 0;
        for (source, target) in input.chunks_exact(from).zip(output.chunks_exact_mut(to)) {
            let value = read(self.from, source);
            let (bits, exact) = match self.to {
                Dtype::BF16 => {
                    let rounded = round_to_bf16(value as f32);
                    (u32::from(rounded), widen(rounded))
                }
                _ => ((value as f32).to_bits(), value as f32),
            };
            changed += u64::from(f64::from(exact) != value && !value.is_nan());
            target.copy_from_slice(&bits.to_le_bytes()[..to]);
        }
        changed
    }
}

fn read(dtype: Dtype, bytes: &[u8]) -> f64 {
    match (dtype, bytes) {
        (Dtype::BF16, &[a, b]) => f64::from(widen(u16::from_le_bytes([a, b]))),
        (Dtype::F16, &[a, b]) => f64::from(half_to_f32(u16::from_le_bytes([a, b]))),
        (Dtype::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (_, bytes) => bytes.try_into().map_or(0.0, f64::from_le_bytes),
    }
}

fn widen(bf16: u16) -> f32 {
    f32::from_bits(u32::from(bf16) << 16)
}

/// Round to nearest, ties to even. A NaN stays a quiet NaN of the same sign.
fn round_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x0040;
    }
    ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) as u16
}

fn half_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let (exponent, mantissa) = (u32::from(half >> 10) & 0x1F, u32::from(half & 0x3FF));
    match exponent {
        0 => f32::from_bits(sign | (mantissa as f32 / 16_777_216.0).to_bits()),
        0x1F => f32::from_bits(sign | 0x7F80_0000 | mantissa << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bf16(value: f32) -> u16 {
        let mut out = [0; 2];
        Conversion::between(Dtype::F32, Dtype::BF16)
            .unwrap()
            .apply(&value.to_le_bytes(), &mut out);
        u16::from_le_bytes(out)
    }

    #[test]
    fn rounds_to_nearest_even() {
        assert_eq!(bf16(f32::from_bits(0x3F80_8000)), 0x3F80);
        assert_eq!(bf16(f32::from_bits(0x3F81_8000)), 0x3F82);
        assert_eq!(bf16(f32::MAX), 0x7F80);
        assert_eq!(bf16(-0.0), 0x8000);
    }

    #[test]
    fn counts_changed_values() {
        let input: Vec<u8> = [1.0_f32, 1.001]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(
            Conversion::between(Dtype::F32, Dtype::BF16)
                .unwrap()
                .apply(&input, &mut [0; 4]),
            1
        );
    }

    #[test]
    fn widens_halves_exactly() {
        assert_eq!(half_to_f32(0x3C00).to_bits(), 1.0_f32.to_bits());
        assert_eq!(half_to_f32(0x0001).to_bits(), 2.0_f32.powi(-24).to_bits());
        assert_eq!(half_to_f32(0xFBFF).to_bits(), (-65504.0_f32).to_bits());
        assert!(half_to_f32(0x7C00).is_infinite());
    }
}
