//! Where the bits and gaps of a step go.
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::{octets::Octets, tables::Tables};
use crate::{
    encode::{
        block::{self, BLOCK_WEIGHTS, Block, Cursor, STREAM_BYTES},
        runs::STEP,
    },
    limits::{MAX_CODE_BITS, WINDOW_BITS},
};

/// Windows whose gaps are stored at once. Fewer are right: a step's octets and the bits before them in a window do not fill eight windows.
const WINDOWS: usize = 8;
const WINDOW_BYTES: usize = WINDOW_BITS as usize / 8;
/// Bytes of two octets, stored at once.
const TWO: usize = 16;
/// Any place that a byte can name, and a store there.
const ROOM: usize = 256 + TWO;
/// The last step of a block has room for them, whatever the codes before it.
const _: () = {
    let longest = (BLOCK_WEIGHTS - STEP) * MAX_CODE_BITS as usize;
    let window = longest.div_ceil(WINDOW_BITS as usize);
    assert!(window * WINDOW_BYTES + ROOM <= STREAM_BYTES);
    assert!(window + WINDOWS < block::GAPS);
};
/// The first and the second numbers of two.
const FIRST: u8 = 0x55;
const SECOND: u8 = 0xAA;

/// A [`Cursor`] for octets.
#[derive(Clone, Copy)]
pub struct OctetCursor {
    /// As the cursor's.
    pub bit: usize,
    /// In the last of the eight numbers: the bits before it in its byte, left-aligned; zeros behind them.
    begun: __m512i,
}

impl OctetCursor {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn at(cursor: Cursor) -> Self {
        let begun = cursor.pending << 1 << (63 - cursor.bit % 8);
        Self {
            bit: cursor.bit,
            begun: _mm512_set1_epi64(begun as i64),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn cursor(self) -> Cursor {
        let last = _mm512_alignr_epi64::<7>(self.begun, self.begun);
        let begun = _mm_cvtsi128_si64(_mm512_castsi512_si128(last)) as u64;
        Cursor {
            bit: self.bit,
            pending: begun >> 1 >> (63 - self.bit % 8),
        }
    }

    /// Puts the codes of a step, and the gaps of the windows that they reach. The octets must have a total.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    pub fn put(&mut self, octets: &Octets, tables: &Tables, block: &mut Block) {
        let window = self.bit / WINDOW_BITS as usize;
        // Bits from that window's border to each octet.
        let in_window = _mm512_set1_epi64((self.bit % WINDOW_BITS as usize) as i64);
        let starts = _mm512_add_epi64(octets.bits_before, in_window);
        put_gaps(octets, starts, tables, window, block);
        self.put_bits(octets, starts, tables, window, block);
        self.bit += octets.total;
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn put_bits(
        &mut self,
        octets: &Octets,
        starts: __m512i,
        tables: &Tables,
        window: usize,
        block: &mut Block,
    ) {
        let in_byte = _mm512_and_si512(starts, _mm512_set1_epi64(7));
        let codes = _mm512_srlv_epi64(octets.codes, in_byte);
        // From the byte in which an octet starts to its end. What stands behind the last whole byte is begun; each octet ends behind
        // the byte in which it starts, so nothing that others have begun.
        let ends = _mm512_add_epi64(in_byte, octets.bits);
        let whole_bytes = _mm512_and_si512(ends, _mm512_set1_epi64(56));
        let begun = _mm512_sllv_epi64(codes, whole_bytes);
        let begun_before = _mm512_alignr_epi64::<7>(begun, self.begun);
        self.begun = begun;

        // First octets with what was begun before them, from the byte in which they start; and second ones, behind their ends. Of the
        // latter, a shift of 128 bits brings what they have in the first 64 bits, or in the last.
        let first = _mm512_or_si512(codes, begun_before);
        let above = _mm512_maskz_unpackhi_epi64(FIRST, octets.codes, octets.codes);
        let below = _mm512_maskz_mov_epi64(SECOND, octets.codes);
        let second = _mm512_shrdv_epi64(above, below, _mm512_unpacklo_epi64(ends, ends));
        let both = _mm512_mask_or_epi64(second, FIRST, second, first);
        let both = _mm512_shuffle_epi8(both, tables.highest_first);

        let places = _mm512_cvtepi64_epi8(_mm512_srli_epi64::<3>(starts));
        let places = (_mm_cvtsi128_si64(places) as u64).to_le_bytes();
        let from = window * WINDOW_BYTES;
        let Some(room) = block.stream.get_mut(from..from + ROOM) else {
            return;
        };
        let both = [
            _mm512_castsi512_si128(both),
            _mm512_extracti32x4_epi32::<1>(both),
            _mm512_extracti32x4_epi32::<2>(both),
            _mm512_extracti32x4_epi32::<3>(both),
        ];
        for (both, place) in both.into_iter().zip(places.into_iter().step_by(2)) {
            let place = usize::from(place);
            let room = &mut room[place..place + TWO];
            // SAFETY: there is room for 16 bytes.
            unsafe { _mm_storeu_si128(room.as_mut_ptr().cast(), both) };
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
fn put_gaps(octets: &Octets, starts: __m512i, tables: &Tables, window: usize, block: &mut Block) {
    // In bytes: only where in a window a code ends is asked for, so it does not matter that they hold no more than four windows.
    let starts = _mm512_shuffle_epi8(starts, tables.lowest);
    let ends = _mm512_add_epi8(octets.ends, starts);
    let ends = _mm512_and_si512(ends, _mm512_set1_epi8(WINDOW_BITS as i8 - 1));
    // A code that ends less than its length behind a border reaches it.
    let reaches = _mm512_cmplt_epu8_mask(ends, octets.lengths);
    let gaps = _mm512_maskz_compress_epi8(reaches, ends);
    let gaps = _mm_cvtsi128_si64(_mm512_castsi512_si128(gaps)) as u64;
    if let Some(room) = block.gaps.get_mut(window + 1..=window + WINDOWS) {
        room.copy_from_slice(&gaps.to_le_bytes());
    }
}
