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
        let has_eof = bits % 8 != 0;
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
        // The last code reaches into at most two windows. The third is all zeros, as are those behind it.
        for window in 0..self.windows.min(3) {
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
