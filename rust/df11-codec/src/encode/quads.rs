//! Codes of four neighbours by one look-up.

use std::fmt;

use super::classes::{Classes, NO_CODE};
use crate::codebook::Code;

/// Entries: every four classes.
const QUADS: usize = 1 << 16;
/// Where the joined codes stand in an entry, above their length.
const CODES_AT: u32 = 6;
/// Most bits of joined codes.
const MOST_BITS: u32 = 26;
/// The length of what has no joined codes: with any others it is more than a run may have.
const NOT_JOINED: u32 = 63;

/// Joined codes by four classes, the first one in the lowest four bits. Half a megabyte, of which little is touched often; kept from
/// piece to piece as long as the code is the same.
#[derive(Clone, Default)]
pub struct QuadTable {
    codes: Vec<Code>,
    entries: Vec<Quad>,
}

/// Entries for a code.
pub struct Quads<'a>(&'a [Quad; QUADS]);

/// An entry.
#[derive(Clone, Copy)]
struct Quad {
    /// The codes, right-aligned above their length.
    codes: u32,
    /// The same with nothing set but the last bit of each code, and without length.
    ends: u32,
}

/// Joined codes, right-aligned.
#[derive(Clone, Copy)]
pub struct Joined {
    pub codes: u64,
    /// The same with nothing set but the last bit of each code.
    pub ends: u64,
    /// How many bits.
    pub bits: u32,
}

impl Joined {
    /// What has no joined codes.
    const NONE: Self = Self {
        codes: 0,
        ends: 0,
        bits: NOT_JOINED,
    };

    /// Right where both together have at most 64 bits; the length always is.
    #[inline]
    pub fn followed_by(self, next: Self) -> Self {
        Self {
            codes: self.codes.wrapping_shl(next.bits) | next.codes,
            ends: self.ends.wrapping_shl(next.bits) | next.ends,
            bits: self.bits + next.bits,
        }
    }
}

impl From<Joined> for Quad {
    fn from(joined: Joined) -> Self {
        let joined = if joined.bits > MOST_BITS {
            Joined::NONE
        } else {
            joined
        };
        Self {
            codes: (joined.codes as u32) << CODES_AT | joined.bits,
            ends: joined.ends as u32,
        }
    }
}

impl fmt::Debug for QuadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuadTable").finish_non_exhaustive()
    }
}

impl QuadTable {
    /// Whether the table for these codes is there.
    pub fn is_for(&self, codes: &[Code; 256]) -> bool {
        self.codes == codes
    }

    /// The table for these codes, whose classes are given.
    pub fn of(&mut self, codes: &[Code; 256], classes: &Classes) -> Option<Quads<'_>> {
        if !self.is_for(codes) {
            self.make(classes);
            self.codes.clear();
            self.codes.extend_from_slice(codes);
        }
        self.entries.first_chunk().map(Quads)
    }

    fn make(&mut self, classes: &Classes) {
        // Of two classes, the first one in the lower four bits.
        let mut pairs = [Joined::NONE; 256];
        for (index, pair) in pairs.iter_mut().enumerate() {
            let [first, second] = [index % 16, index / 16].map(|class| single(classes, class));
            *pair = first.followed_by(second);
        }
        self.entries.clear();
        self.entries.reserve(QUADS);
        for second in pairs {
            let quads = pairs
                .iter()
                .map(|first| Quad::from(first.followed_by(second)));
            self.entries.extend(quads);
        }
    }
}

/// The code of one class.
fn single(classes: &Classes, class: usize) -> Joined {
    let bits = classes.lengths[class];
    if bits == NO_CODE {
        return Joined::NONE;
    }
    Joined {
        codes: u16::from_le_bytes([classes.low[class], classes.high[class]]).into(),
        ends: 1,
        bits: bits.into(),
    }
}

impl Quads<'_> {
    /// The joined codes of four weights with these classes.
    #[inline]
    pub fn get(&self, classes: u16) -> Joined {
        let Quad { codes, ends } = self.0[usize::from(classes)];
        Joined {
            codes: (codes >> CODES_AT).into(),
            ends: ends.into(),
            bits: codes % (1 << CODES_AT),
        }
    }
}
