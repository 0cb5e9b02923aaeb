//! Where most exponents lie, by a sample.

/// Weights that are counted with one sample: it costs about 1 % of them, and rows of other scales get their own.
pub const SEGMENT_WEIGHTS: usize = 1 << 17;
/// Exponents next to each other that a kernel with vectors counts.
pub const WINDOW: usize = 16;

/// Places of the sample, and weights at each: a cache line.
const PLACES: usize = 32;
const RUN_WEIGHTS: usize = 32;
/// With no more weights than two samples, a sample costs more than it brings.
const FEW_WEIGHTS: usize = 2 * PLACES * RUN_WEIGHTS;
/// Most sampled weights outside window and hole, out of 16. With more, counting them one by one costs more than the others gain.
const MOST_OUTSIDE: u32 = 2;

/// The best [`WINDOW`] exponents and the most frequent other one, the *hole*: usually exponent 0, of exact zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub base: u8,
    pub hole: u8,
}

impl Window {
    /// `None` where a window would hold too few of the weights, or they are few.
    pub fn choose(weights: &[u8]) -> Option<Self> {
        if weights.len() <= 2 * FEW_WEIGHTS {
            return None;
        }
        let mut counts = [0; 256];
        let stride = (weights.len() / PLACES).next_multiple_of(2);
        for place in weights.chunks(stride) {
            super::reference::count(&mut counts, &place[..place.len().min(2 * RUN_WEIGHTS)]);
        }
        let mut below = [0u64; 257];
        for exponent in 0..256 {
            below[exponent + 1] = below[exponent] + counts[exponent];
        }
        let held = |base: usize| below[base + WINDOW] - below[base];
        let base = (0..=256 - WINDOW).max_by_key(|&base| held(base))?;
        let hole = (0..256)
            .filter(|e| !(base..base + WINDOW).contains(e))
            .max_by_key(|&e| counts[e])?;
        let total = below[256];
        let outside = total - held(base) - counts[hole];
        (16 * outside <= u64::from(MOST_OUTSIDE) * total).then_some(Self {
            base: base as u8,
            hole: hole as u8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(exponents: impl Iterator<Item = u8>) -> Vec<u8> {
        exponents
            .flat_map(|e| (u16::from(e) << 7).to_le_bytes())
            .collect()
    }

    #[test]
    fn window_and_hole() {
        let few = weights((0..4000u16).map(|i| if i % 20 == 0 { 0 } else { 105 + (i % 16) as u8 }));
        assert_eq!(Window::choose(&few), Some(Window { base: 105, hole: 0 }));
        let high = weights((0..9000u16).map(|i| 240 + (i % 16) as u8));
        assert_eq!(Window::choose(&high).map(|window| window.base), Some(240));
        let flat = weights((0..4000u16).map(|i| (i % 256) as u8));
        assert_eq!(Window::choose(&flat), None);
        assert_eq!(Window::choose(&few[..2 * FEW_WEIGHTS]), None);
    }
}
