//! Where the decode kernel goes behind a unit's last code.
//!
//! Every thread of a launched chunk decodes until it leaves its window, also over padding. Official tables can hold entries that lead to
//! a code length of 0, on which the kernel loops for ever. Whether the padding reaches one depends only on the last code, EOF and the
//! number of bits.

use crate::{
    codebook::Code,
    limits::{WINDOW_BITS, WINDOWS_PER_CHUNK},
    luts::Luts,
};

/// The end of a stream of `bits` bits.
pub struct Tail {
    /// The bits from the start of the window in which the last code starts: at most 96, left-aligned; zeros behind them.
    stream: u128,
    /// In `stream`: where the last code starts, and where it ends.
    start: u64,
    end: u64,
    /// Whether an EOF byte follows, whose start opens a window that is not yet open.
    has_eof: bool,
    /// Windows from that one to the end of the last kernel chunk.
    windows: u64,
}

impl Tail {
    /// The tail of `bits` bits that end with the code `last`.
    pub fn new(bits: u64, last: Code, eof: Code) -> Self {
        let first = bits - u64::from(last.bits);
        let start = first % WINDOW_BITS;
        let end = start + u64::from(last.bits);
        let mut stream = u128::from(last.value)
            .checked_shl(128 - end as u32)
            .unwrap_or(0);
        let has_eof = !bits.is_multiple_of(8);
        if has_eof {
            stream |= u128::from(eof_fill(bits, eof)) << (128 - end.next_multiple_of(8));
        }
        let chunk_bits = WINDOW_BITS * WINDOWS_PER_CHUNK;
        let windows = bits.next_multiple_of(chunk_bits) / WINDOW_BITS - first / WINDOW_BITS;
        Self {
            stream,
            start,
            end,
            has_eof,
            windows,
        }
    }

    /// Walks the tail as the kernel does. True where it would hang.
    pub fn hangs(&self, luts: &Luts) -> bool {
        // The last code reaches into two windows at most. Those behind are zeros, and zeros are looked up in the second already: what
        // it holds of code and EOF ends by its bit 32, and no look-up takes it further than 32 bits.
        for window in 0..self.windows.min(2) {
            let border = window * WINDOW_BITS;
            let opened_by_eof = window > 0 && self.has_eof && self.end / WINDOW_BITS == window;
            let mut bit = match window {
                0 => self.start,
                _ if opened_by_eof => self.end,
                _ => border,
            };
            while bit < border + WINDOW_BITS {
                let word = (self.stream.checked_shl(bit as u32).unwrap_or(0) >> 96) as u32;
                let length = luts.length(word);
                if length == 0 {
                    return true;
                }
                bit += u64::from(length);
            }
        }
        false
    }
}

/// What stands behind the last code in the stream's last byte: the first bits of EOF's code, cut or zero-padded.
/// `bits` is not a multiple of 8.
pub fn eof_fill(bits: u64, eof: Code) -> u8 {
    let room = (8 - bits % 8) as u32;
    let fill = if eof.bits >= room {
        eof.value >> (eof.bits - room)
    } else {
        eof.value << (room - eof.bits)
    };
    fill as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codebook::Codebook, luts::Fill};

    /// Tables of hand-made codes. No Huffman tree of fewer than 2^31 weights has all that is tested here.
    fn codebook(codes: &[(u8, &str)], eof: &str) -> Codebook {
        let code = |bits: &str| Code {
            value: u32::from_str_radix(bits, 2).expect("bits"),
            bits: bits.len() as u32,
        };
        let mut book = Codebook {
            codes: [Code::default(); 256],
            eof: code(eof),
            order: codes.iter().map(|&(exponent, _)| exponent).collect(),
        };
        for &(exponent, bits) in codes {
            book.codes[usize::from(exponent)] = code(bits);
        }
        book
    }

    fn hangs(book: &Codebook, last: u8, bits: u64) -> bool {
        let luts = Luts::new(book, Fill::Carried).expect("few tables");
        Tail::new(bits, book.codes[usize::from(last)], book.eof).hangs(&luts)
    }

    #[test]
    fn zeros_hang_unless_no_thread_sees_them() {
        // Zeros lead through the carried entries of table 1 to table 2 and a fourth jump.
        let codes = [
            (1, "000000001"),
            (2, "10"),
            (3, "1111111100000000000000001"),
        ];
        let book = codebook(&codes, "000000000");
        let chunk = 32_768;
        assert!(hangs(&book, 2, chunk - 1));
        assert!(hangs(&book, 2, chunk - 64));
        assert!(
            !hangs(&book, 2, chunk),
            "the stream fills its chunk: no window behind it is launched"
        );
        assert!(hangs(&book, 2, chunk + 2));
        assert!(hangs(&book, 2, chunk + 64));
    }

    #[test]
    fn eof_opens_the_window_that_the_last_code_reaches() {
        // 10000000 0... belongs to EOF, and is dead as above.
        let codes = [
            (4, "0"),
            (1, "100000001"),
            (5, "110"),
            (3, "1111111100000000000000001"),
        ];
        let book = codebook(&codes, "100000000");
        // Nine bits of the last code, then EOF's first seven. From the border on: 0 eight times, 110, zeros.
        assert!(hangs(&book, 3, 64 + 9));
    }

    #[test]
    fn eof_is_cut_or_padded() {
        let eof = Code {
            value: 0b1_0110_0111,
            bits: 9,
        };
        assert_eq!(
            [1, 5, 7].map(|bits| eof_fill(bits, eof)),
            [0b101_1001, 0b101, 1]
        );
        let short = Code {
            value: 0b10,
            bits: 2,
        };
        assert_eq!(
            [1, 6, 7].map(|bits| eof_fill(bits, short)),
            [0b100_0000, 0b10, 1]
        );
    }
}
