//! Numbers and weights out of a fuzzer's bytes. Zeros stand behind them.

/// Sizes from a fuzzer's bytes.
pub struct Sizes(Vec<usize>);

impl Sizes {
    /// For pieces of a unit. The last one takes the rest: many small pieces would take seconds.
    pub fn of_pieces(&self, weights: usize) -> Vec<usize> {
        let mut sizes = self.0.clone();
        sizes.push(weights);
        sizes
    }

    /// For runs of kernel chunks.
    pub fn of_runs(&self) -> Vec<usize> {
        self.0.iter().map(|size| 1 + size % 16).collect()
    }
}

/// The bytes that are left.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    /// Small, large, or up to a power of two.
    pub fn number(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => u64::from(self.byte() % 8),
            1 => u64::from(self.u16()),
            2 => u64::from(self.u32()),
            _ => (1u64 << (self.byte() % 64)).wrapping_sub(u64::from(self.byte() % 16)),
        }
    }

    /// Up to this many bytes.
    pub fn slice(&mut self, most: usize) -> &'a [u8] {
        let (slice, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        slice
    }

    /// A few bytes, again and again.
    pub fn cycled(&mut self, bytes: usize) -> Vec<u8> {
        let few = usize::from(self.byte());
        let few = self.slice(few);
        if few.is_empty() {
            return vec![0; bytes];
        }
        few.iter().copied().cycle().take(bytes).collect()
    }

    /// Sizes of pieces, or lengths of runs: at least one, each at least 1.
    pub fn sizes(&mut self) -> Sizes {
        let count = 1 + self.byte() % 8;
        Sizes((0..count).map(|_| 1 + usize::from(self.u16())).collect())
    }

    /// What is left, as weights with exponents that have a code, several times over: a unit of several kernel chunks takes few bytes.
    pub fn weights(&mut self) -> Vec<u8> {
        let times = 1 + usize::from(self.byte() % 16);
        let words: Vec<u16> = self
            .0
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .map(|word| word & 0x807F | ((word >> 7 & 0xFF) % 240) << 7)
            .collect();
        self.0 = &[];
        // Each time from elsewhere on, so that the repetition meets other places of a window.
        let copies = (0..times).flat_map(|copy| words.iter().cycle().skip(copy).take(words.len()));
        copies.flat_map(|word| word.to_le_bytes()).collect()
    }
}
