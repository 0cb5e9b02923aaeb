//! Float conversions that the official node does when it loads a model in BF16.

use safetensors::Dtype;

use crate::changes::Changes;

/// A conversion of every element of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    from: Dtype,
    to: Dtype,
}

impl Conversion {
    /// The conversion between two float dtypes; none where there is nothing to do or it does not exist.
    pub fn between(from: Dtype, to: Dtype) -> Option<Self> {
        let is_float =
            |dtype: Dtype| matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16);
        let known = match to {
            Dtype::BF16 | Dtype::F32 => is_float(from),
            // The way back of what was exact in BF16.
            Dtype::F64 | Dtype::F16 => from == Dtype::BF16,
            _ => false,
        };
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

    /// Whether a value may become another one: not where each fits into the wider type.
    pub fn rounds(self) -> bool {
        !matches!((self.from, self.to), (Dtype::BF16 | Dtype::F16, Dtype::F32))
    }

    /// Converts whole elements of `input` (little-endian) into `output` and tells what that did to their values.
    pub fn apply(self, input: &[u8], output: &mut [u8]) -> Changes {
        match (self.from, self.to) {
            (Dtype::F32, Dtype::BF16) => round_all(input, output, f32::from_le_bytes),
            (Dtype::F16, Dtype::BF16) => round_all(input, output, |bytes| {
                half_to_f32(u16::from_le_bytes(bytes))
            }),
            (Dtype::BF16, Dtype::F32) => widen_all(input, output),
            _ => self.one_by_one(input, output),
        }
    }

    /// The conversion as its definition says it, for the types that are rare.
    fn one_by_one(self, input: &[u8], output: &mut [u8]) -> Changes {
        let (from, to) = self.widths();
        let mut changes = Changes::default();
        for (source, target) in input.chunks_exact(from).zip(output.chunks_exact_mut(to)) {
            let value = read(self.from, source);
            let (bits, after) = match self.to {
                Dtype::BF16 => {
                    let rounded = round_to_bf16(value as f32);
                    (u64::from(rounded), f64::from(widen(rounded)))
                }
                Dtype::F16 => (u64::from(f32_to_half(value as f32)), value),
                Dtype::F64 => (value.to_bits(), value),
                _ => {
                    let rounded = value as f32;
                    (u64::from(rounded.to_bits()), f64::from(rounded))
                }
            };
            changes.count(value, after);
            target.copy_from_slice(&bits.to_le_bytes()[..to]);
        }
        changes
    }
}

fn widen_all(input: &[u8], output: &mut [u8]) -> Changes {
    for (source, target) in input.chunks_exact(2).zip(output.chunks_exact_mut(4)) {
        target[..2].fill(0);
        target[2..].copy_from_slice(source);
    }
    Changes {
        values: input.len() as u64 / 2,
        ..Changes::default()
    }
}

/// Rounds to BF16 what `read` makes of each `WIDTH` bytes. Without a branch, so that several go through at once.
fn round_all<const WIDTH: usize>(
    input: &[u8],
    output: &mut [u8],
    read: impl Fn([u8; WIDTH]) -> f32,
) -> Changes {
    // Short enough for counters of 32 bits, and for the cache.
    const RUN: usize = 4096;
    let mut all = Changes::default();
    let runs = input.chunks(RUN * WIDTH).zip(output.chunks_mut(RUN * 2));
    for (input, output) in runs {
        let (mut changed, mut to_infinity, mut to_zero, mut largest) = (0_u32, 0_u32, 0_u32, 0_u32);
        for (source, target) in input.chunks_exact(WIDTH).zip(output.chunks_exact_mut(2)) {
            let value = read(source.try_into().unwrap_or([0; WIDTH]));
            let rounded = round_to_bf16(value);
            target.copy_from_slice(&rounded.to_le_bytes());
            let after = widen(rounded);
            let is_other = (after.to_bits() != value.to_bits()) & !value.is_nan();
            let (is_infinite, is_zero) = (after.abs() == f32::INFINITY, after == 0.0);
            let share = ((after - value) / value).abs();
            let counts = is_other && !is_infinite && !is_zero;
            changed += u32::from(is_other);
            to_infinity += u32::from(is_other & is_infinite);
            to_zero += u32::from(is_other & is_zero);
            // Of what is not negative the bits compare as the numbers do.
            largest = largest.max(if counts { share.to_bits() } else { 0 });
        }
        all.add(&Changes {
            values: (input.len() / WIDTH) as u64,
            changed: u64::from(changed),
            to_infinity: u64::from(to_infinity),
            to_zero: u64::from(to_zero),
            largest: f64::from(f32::from_bits(largest)),
        });
    }
    all
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
    let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1));
    let kept = bits | 0x0040_0000;
    ((if value.is_nan() { kept } else { rounded }) >> 16) as u16
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

/// The F16 of a number that is one.
fn f32_to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = (bits >> 23 & 0xFF).saturating_sub(112);
    let magnitude = if exponent == 0 {
        (value.abs() * 16_777_216.0) as u32
    } else {
        exponent << 10 | bits >> 13 & 0x3FF
    };
    sign | magnitude as u16
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

    fn changes(from: Dtype, input: &[u8]) -> (Vec<u8>, Changes) {
        let conversion = Conversion::between(from, Dtype::BF16).unwrap();
        let mut output = vec![0; conversion.converted_bytes(input.len() as u64) as usize];
        let changes = conversion.apply(input, &mut output);
        (output, changes)
    }

    fn of_f32(values: &[f32]) -> Changes {
        let input: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        changes(Dtype::F32, &input).1
    }

    #[test]
    fn counts_changed_values() {
        let exact = of_f32(&[1.0, -0.0, f32::INFINITY, f32::NAN, 2.0_f32.powi(-133)]);
        let none = Changes {
            values: 5,
            ..Changes::default()
        };
        assert_eq!(exact, none);
        // A tie, half of the last digit's worth.
        let tie = of_f32(&[1.0, 1.0 + 1.0 / 256.0, 1.001]);
        assert_eq!((tie.values, tie.changed, tie.to_infinity), (3, 2, 0));
        assert!((tie.largest - (1.0 / 257.0)).abs() < 1e-9, "{tie:?}");
    }

    /// What becomes infinite or 0 is counted by itself: as a share of the value it would hide all others.
    #[test]
    fn counts_ends_of_the_range() {
        let ends = of_f32(&[f32::MAX, -f32::MAX, 1e-45, -1e-41, 1.0]);
        let counts = (ends.changed, ends.to_infinity, ends.to_zero);
        assert_eq!(counts, (4, 2, 2));
        assert!(ends.largest == 0.0);
        // Between the smallest numbers of BF16, 2^-133, lie those that lose most and yet are not 0.
        let denormal = of_f32(&[1.5 * 2.0_f32.powi(-133)]);
        assert!((denormal.largest - 1.0 / 3.0).abs() < 1e-6, "{denormal:?}");
    }

    /// The fast loop against the definition, over every exponent, both signs, and all kinds of last digits.
    #[test]
    fn fast_and_plain_agree() {
        let lows = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF];
        let mut input = Vec::new();
        for high in 0..=u16::MAX {
            for low in lows {
                input.extend_from_slice(&(u32::from(high) << 16 | low).to_le_bytes());
            }
        }
        let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        for (from, input) in [(Dtype::F32, input), (Dtype::F16, halves)] {
            let (fast, found) = changes(from, &input);
            let conversion = Conversion::between(from, Dtype::BF16).unwrap();
            let mut plain = vec![0; fast.len()];
            let expected = conversion.one_by_one(&input, &mut plain);
            assert!(fast == plain, "{from}");
            assert!((found.largest - expected.largest).abs() < 1e-7);
            let largest = expected.largest;
            assert_eq!(Changes { largest, ..found }, expected, "{from}");
        }
    }

    /// Whatever rounding did not change comes back, bit for bit.
    #[test]
    fn exact_values_come_back() {
        let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let singles = halves.chunks(2).flat_map(|high| [0, 0, high[0], high[1]]);
        let singles: Vec<u8> = singles.collect();
        let doubles = singles.chunks(4).map(|single| read(Dtype::F32, single));
        let doubles: Vec<u8> = doubles.flat_map(f64::to_le_bytes).collect();
        for (dtype, all) in [
            (Dtype::F16, halves),
            (Dtype::F32, singles),
            (Dtype::F64, doubles),
        ] {
            let mut compared = 0;
            for before in all.chunks_exact(dtype.bitsize() / 8) {
                let (rounded, changes) = changes(dtype, before);
                if changes.changed > 0 || !read(dtype, before).is_finite() {
                    continue;
                }
                let mut after = vec![0; before.len()];
                let back = Conversion::between(Dtype::BF16, dtype).unwrap();
                back.apply(&rounded, &mut after);
                assert_eq!(after, before, "{dtype}");
                compared += 1;
            }
            assert!(compared > 8000, "{dtype}: {compared}");
        }
    }

    #[test]
    fn widens_halves_exactly() {
        assert_eq!(half_to_f32(0x3C00).to_bits(), 1.0_f32.to_bits());
        assert_eq!(half_to_f32(0x0001).to_bits(), 2.0_f32.powi(-24).to_bits());
        assert_eq!(half_to_f32(0xFBFF).to_bits(), (-65504.0_f32).to_bits());
        assert!(half_to_f32(0x7C00).is_infinite());
    }
}
