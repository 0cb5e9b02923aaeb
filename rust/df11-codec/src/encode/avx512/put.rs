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

/// Windows whose gaps are stored at once: more are not reached by eight octets and the bits before them in a window.
const WINDOWS: usize = 8;
const WINDOW_BYTES: usize = WINDOW_BITS as usize / 8;
/// Bytes of two octets, stored at once.
const SIXTEEN: usize = 16;
/// Any place that a byte can name, and a store there.
const ROOM: usize = 256 + SIXTEEN;
/// The last step of a block has room for them, whatever the codes before it.
const _: () = {
    let longest = (BLOCK_WEIGHTS - STEP) * MAX_CODE_BITS as usize;
    let window = longest.div_ceil(WINDOW_BITS as usize);
    assert!(window * WINDOW_BYTES + ROOM <= STREAM_BYTES);
    assert!(window + WINDOWS < block::GAPS);
};

/// A [`Cursor`] for octets.
#[derive(Clone, Copy)]
pub struct OctetCursor {
    /// As the cursor's.
    pub bit: usize,
    /// What it has pending, in the last of eight numbers.
    last: __m512i,
}

impl OctetCursor {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn at(cursor: Cursor) -> Self {
        Self {
            bit: cursor.bit,
            last: _mm512_set1_epi64(cursor.pending as i64),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn cursor(self) -> Cursor {
        let last = _mm512_alignr_epi64::<7>(self.last, self.last);
        Cursor {
            bit: self.bit,
            pending: _mm_cvtsi128_si64(_mm512_castsi512_si128(last)) as u64,
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

        // Both numbers of a sixteen move by as many bits, and the bits before them come in.
        let in_byte = _mm512_and_si512(starts, _mm512_set1_epi64(7));
        let in_byte = _mm512_unpacklo_epi64(in_byte, in_byte);
        let before = _mm512_alignr_epi64::<7>(octets.last, self.last);
        let moved = _mm512_shrdv_epi64(octets.sixteens, before, in_byte);
        let moved = _mm512_shuffle_epi8(moved, tables.highest_first);
        store(moved, starts, window, block);
        self.last = octets.last;
        self.bit += octets.total;
    }
}

/// Stores two numbers each from the byte on in which the first octet starts. What is stored behind their octets is overwritten by the next
/// ones, which also have the bits that are lost behind the 128th.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(sixteens: __m512i, starts: __m512i, window: usize, block: &mut Block) {
    let places = _mm512_cvtepi64_epi8(_mm512_srli_epi64::<3>(starts));
    let places = (_mm_cvtsi128_si64(places) as u64).to_le_bytes();
    let from = window * WINDOW_BYTES;
    let Some(room) = block.stream.get_mut(from..from + ROOM) else {
        return;
    };
    let sixteens = [
        _mm512_castsi512_si128(sixteens),
        _mm512_extracti32x4_epi32::<1>(sixteens),
        _mm512_extracti32x4_epi32::<2>(sixteens),
        _mm512_extracti32x4_epi32::<3>(sixteens),
    ];
    for (sixteen, place) in sixteens.into_iter().zip(places.into_iter().step_by(2)) {
        let place = usize::from(place);
        let room = &mut room[place..place + SIXTEEN];
        // SAFETY: there is room for 16 bytes.
        unsafe { _mm_storeu_si128(room.as_mut_ptr().cast(), sixteen) };
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
