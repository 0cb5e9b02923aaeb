//! How often each exponent occurs in a run of weights.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(has_avx512)]
pub(crate) mod avx512;
#[cfg(has_neon)]
pub(crate) mod neon;
pub(crate) mod reference;
#[cfg(any(target_arch = "x86_64", has_neon))]
mod sample;
pub(crate) mod scalar;

use crate::kernel::Kernel;

/// Counts of the 256 exponents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExponentHistogram {
    counts: [u64; 256],
}

impl Default for ExponentHistogram {
    fn default() -> Self {
        Self { counts: [0; 256] }
    }
}

impl ExponentHistogram {
    /// Adds the exponents of `weights`, little-endian BF16. `weights.len()` must be even.
    pub fn count(&mut self, kernel: Kernel, weights: &[u8]) {
        (kernel.stages().count)(&mut self.counts, weights);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
    }

    /// Number of weights counted.
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The counts by exponent.
    pub fn counts(&self) -> &[u64; 256] {
        &self.counts
    }

    /// From counts by exponent.
    pub fn from_counts(counts: [u64; 256]) -> Self {
        Self { counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn counts_every_weight_once_whatever_the_length() {
        let words: Vec<u16> = (0..1003u16).map(|i| i.wrapping_mul(0x9E37)).collect();
        for kernel in Kernel::available() {
            for n in [0, 1, 2, 3, 4, 5, 7, 1003] {
                let mut histogram = ExponentHistogram::default();
                histogram.count(kernel, &bytes(&words[..n]));
                let mut expected = [0; 256];
                for word in &words[..n] {
                    expected[usize::from(word >> 7 & 0xFF)] += 1;
                }
                assert_eq!(histogram.counts(), &expected, "{kernel}");
                assert_eq!(histogram.total(), n as u64);
            }
        }
    }

    #[test]
    fn merge_adds_and_does_not_overflow() {
        let mut one = ExponentHistogram::default();
        one.count(Kernel::Reference, &bytes(&[0x3F80, 0x3F80, 0]));
        let mut full = ExponentHistogram::from_counts([u64::MAX; 256]);
        full.merge(&one);
        assert_eq!(full.counts()[127], u64::MAX);
        assert_eq!(full.total(), u64::MAX);
        one.merge(&one.clone());
        assert_eq!((one.counts()[127], one.counts()[0], one.total()), (4, 2, 6));
    }
}
