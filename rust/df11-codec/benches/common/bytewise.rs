//! What the kernels are measured against: a straightforward encoder, one table look-up and at most four byte pushes a weight, each
//! tensor in a pass of its own. Buffers are reused.

use df11_codec::{CodeError, ExponentHistogram, UnitCode, bf16};

/// The tensors of a unit, but for its tables.
#[derive(Default)]
pub struct Bytewise {
    exponents: Vec<u8>,
    window_gaps: Vec<u8>,
    pub sign_mantissa: Vec<u8>,
    /// Without the EOF's bits in the last byte.
    pub encoded_exponent: Vec<u8>,
    pub gaps: Vec<u8>,
    pub output_positions: Vec<u8>,
}

/// Value and length by exponent.
type CodeWords = [(u32, u32); 256];

impl Bytewise {
    /// Encodes a whole unit.
    pub fn encode(&mut self, weights: &[u8]) -> Result<(), CodeError> {
        let words = || {
            weights
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        };
        self.exponents.clear();
        self.exponents.extend(words().map(bf16::exponent));
        self.sign_mantissa.clear();
        self.sign_mantissa.extend(words().map(bf16::sign_mantissa));
        let mut counts = [0; 256];
        for &exponent in &self.exponents {
            counts[usize::from(exponent)] += 1;
        }
        let last = self.exponents.last().copied().unwrap_or(0);
        let code = UnitCode::new(&ExponentHistogram::from_counts(counts), last)?;
        let mut exponent = 0..=u8::MAX;
        let code_words = [(); 256].map(|()| code.code_word(exponent.next().unwrap_or(0)));
        self.pack_stream(&code_words);
        self.open_entries(&code_words, code.layout().chunks as usize);
        self.pack_gaps();
        Ok(())
    }

    fn pack_stream(&mut self, code_words: &CodeWords) {
        self.encoded_exponent.clear();
        let (mut pending, mut bits) = (0u64, 0);
        for &exponent in &self.exponents {
            let (value, length) = code_words[usize::from(exponent)];
            pending = pending << length | u64::from(value);
            bits += length;
            while bits >= 8 {
                bits -= 8;
                self.encoded_exponent.push((pending >> bits) as u8);
            }
        }
        if bits > 0 {
            self.encoded_exponent.push((pending << (8 - bits)) as u8);
        }
    }

    /// Gaps and positions, as the official encoder finds them: by looking before each code.
    fn open_entries(&mut self, code_words: &CodeWords, chunks: usize) {
        self.window_gaps.clear();
        self.output_positions.clear();
        let (mut bit, mut next_window, mut next_chunk) = (0, 0, 0);
        let mut index = 0u32;
        for length in self
            .exponents
            .iter()
            .map(|&exponent| code_words[usize::from(exponent)].1)
            .chain([0])
        {
            let has_start = length > 0 || bit % 8 != 0;
            if has_start && bit >= next_window {
                self.window_gaps.push((bit % 64) as u8);
                next_window += 64;
            }
            if has_start && bit >= next_chunk {
                self.output_positions.extend(index.to_le_bytes());
                next_chunk += 32_768;
            }
            bit += u64::from(length);
            index += u32::from(length > 0);
        }
        self.output_positions.extend(index.to_le_bytes());
        self.window_gaps.resize(512 * chunks, 0);
    }

    fn pack_gaps(&mut self) {
        self.gaps.clear();
        let (mut pending, mut bits) = (0u32, 0);
        for &gap in &self.window_gaps {
            pending = pending << 5 | u32::from(gap);
            bits += 5;
            if bits >= 8 {
                bits -= 8;
                self.gaps.push((pending >> bits) as u8);
            }
        }
    }
}
