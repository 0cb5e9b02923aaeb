//! The `luts` tensor, and decoding one thread window with it.

use super::symbols::Symbols;
use crate::{
    error::LutError,
    kernel::Kernel,
    limits::{FIRST_JUMP, MAX_CODE_BITS, MAX_TABLES, WINDOW_BITS},
};

/// Bits that index the first-level table.
pub const QUICK_BITS: u32 = 12;
/// Most codes that can start in one window.
pub const MAX_WINDOW_CODES: usize = WINDOW_BITS as usize;

/// Decode tables read from a `luts` tensor.
#[derive(Clone, Debug)]
pub struct DecodeTables {
    /// 256 entries a table.
    tables: Vec<u8>,
    /// Code length by looked-up value.
    lengths: [u8; 256],
    /// One code, or several, by the next 12 bits.
    pub(super) symbols: Symbols,
    /// Does the fast half of a check.
    pub(super) kernel: Kernel,
}

impl DecodeTables {
    /// Reads `(tables + 1) * 256` bytes.
    ///
    /// # Errors
    /// [`LutError`] where a table cannot be decoded with. Dead entries (leading to length 0) are legal.
    pub fn new(luts: &[u8]) -> Result<Self, LutError> {
        Self::with_kernel(Kernel::default(), luts)
    }

    /// [`Self::new`], to be checked with by `kernel`. All find the same.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_kernel(kernel: Kernel, luts: &[u8]) -> Result<Self, LutError> {
        let mut tables = Self {
            tables: Vec::new(),
            lengths: [0; 256],
            symbols: Symbols::default(),
            kernel,
        };
        tables.read(luts)?;
        Ok(tables)
    }

    /// Reads the tables of another unit into the same memory.
    ///
    /// # Errors
    /// As for [`Self::new`]; then the tables are those of before.
    pub fn read(&mut self, luts: &[u8]) -> Result<(), LutError> {
        let size = LutError::Size { bytes: luts.len() };
        let (tables, lengths) = luts.split_last_chunk::<256>().ok_or(size)?;
        let count = tables.len() / 256;
        if tables.len() % 256 != 0 || count == 0 || count > MAX_TABLES {
            return Err(size);
        }
        for (table, row) in tables.chunks_exact(256).enumerate() {
            if let Some(entry) = row
                .iter()
                .position(|&v| v >= FIRST_JUMP && 256 - usize::from(v) >= count)
            {
                return Err(LutError::Jump { table, entry });
            }
        }
        for (exponent, &bits) in (0..=u8::MAX).zip(lengths) {
            if u32::from(bits) > MAX_CODE_BITS {
                return Err(LutError::Length { exponent, bits });
            }
        }
        self.tables.clear();
        self.tables.extend_from_slice(tables);
        self.lengths = *lengths;
        self.symbols
            .fill(|prefix| decided(tables, lengths, prefix << (32 - QUICK_BITS)));
        Ok(())
    }

    /// The kernel's look-up of the code at the top of `word`: at most four tables deep. Returns value and length.
    fn look_up(&self, word: u32) -> (u8, u8) {
        let (mut table, mut value) = (0, 0);
        for byte in word.to_be_bytes() {
            value = self.tables[table * 256 + usize::from(byte)];
            if value < FIRST_JUMP {
                break;
            }
            table = 256 - usize::from(value);
        }
        (value, self.lengths[usize::from(value)])
    }

    /// Exponent and length of the code at the top of `buffer`; `None` where the length is 0.
    #[inline]
    pub fn next(&self, buffer: u64) -> Option<(u8, u32)> {
        let quick = self.symbols.first(buffer);
        let (exponent, bits) = if quick == 0 {
            self.look_up((buffer >> 32) as u32)
        } else {
            (quick as u8, (quick >> 8) as u8)
        };
        (bits > 0).then_some((exponent, u32::from(bits)))
    }

    /// Decodes every code that starts in a window, from bit `gap` on, as one GPU thread does. `high` and `low` are the window's 64
    /// bits and the 32 behind them. Returns the number of codes and the bit behind the last, or `None` where the thread would hang.
    #[inline]
    pub fn walk(
        &self,
        (high, low): (u64, u32),
        gap: u8,
        exponents: &mut [u8; MAX_WINDOW_CODES],
    ) -> Option<(usize, u32)> {
        let mut bit = u32::from(gap);
        let mut count = 0;
        let mut buffer = high << bit;
        while bit < 32 {
            let (exponent, bits) = self.next(buffer)?;
            exponents[count] = exponent;
            count += 1;
            buffer <<= bits;
            bit += bits;
        }
        buffer |= u64::from(low) << (bit - 32);
        while bit < WINDOW_BITS as u32 {
            let (exponent, bits) = self.next(buffer)?;
            exponents[count] = exponent;
            count += 1;
            buffer <<= bits;
            bit += bits;
        }
        Some((count, bit))
    }

    /// Code length of a decoded value.
    pub fn length(&self, value: u8) -> u32 {
        u32::from(self.lengths[usize::from(value)])
    }
}

/// The code decided by the 12 bits at the top of `word`: exponent, and length in the high byte; 0 where they do not decide or the length is 0.
fn decided(tables: &[u8], lengths: &[u8; 256], word: u32) -> u16 {
    let first = tables[(word >> 24) as usize];
    let exponent = if first < FIRST_JUMP {
        first
    } else {
        // The second table is asked for a byte of which four bits are known.
        let known = (word >> 16 & 0xF0) as usize;
        let candidates = &tables[(256 - usize::from(first)) * 256 + known..][..16];
        if candidates[0] >= FIRST_JUMP || candidates.iter().any(|&v| v != candidates[0]) {
            return 0;
        }
        candidates[0]
    };
    match lengths[usize::from(exponent)] {
        0 => 0,
        bits => u16::from(bits) << 8 | u16::from(exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExponentHistogram, UnitCode};

    fn luts(frequent: u8, symbols: u8) -> Vec<u8> {
        let mut counts = [0; 256];
        for (count, power) in counts[usize::from(frequent)..].iter_mut().zip(1..=symbols) {
            *count = 1 << power;
        }
        let code = UnitCode::new(&ExponentHistogram::from_counts(counts), frequent);
        code.expect("encodable").luts().to_vec()
    }

    #[test]
    fn nothing_of_an_earlier_unit_stays() {
        let (earlier, later) = (luts(3, 24), luts(100, 5));
        let mut tables = DecodeTables::new(&earlier).expect("sound");
        tables.read(&later).expect("sound");
        let fresh = DecodeTables::new(&later).expect("sound");
        assert_eq!(format!("{tables:?}"), format!("{fresh:?}"));

        tables.read(&later[..255]).expect_err("too short");
        let mut broken = later.clone();
        broken[7] = FIRST_JUMP;
        tables.read(&broken).expect_err("a jump to nowhere");
        assert_eq!(format!("{tables:?}"), format!("{fresh:?}"));
    }
}
