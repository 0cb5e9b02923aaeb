//! The decode tables that a unit carries, as the official tool fills them.

use crate::{
    codebook::{Code, Codebook},
    limits::{FIRST_JUMP, MAX_TABLES},
};

/// How the entries before a table's first set one are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Official: with the last value of the table before; table 0, where the official tool crashes, with its own first value.
    Carried,
    /// Two-bit code: with the table's own first value.
    Own,
}

/// Prefix tables and code lengths.
#[derive(Clone, Debug)]
pub struct Luts {
    /// The `luts` tensor: 256 bytes a table, then the code length of each exponent.
    bytes: Vec<u8>,
    /// The table that took leading entries from the table before, and how many.
    ///
    /// There is at most one: the codes leave no bit string to anyone but EOF, so a table without an entry 0 is the one in
    /// which EOF's code ends.
    carried: Option<(usize, usize)>,
    /// Table 0 has no entry 0 of its own.
    headless: bool,
}

/// A table's place: the codes' first `depth` bytes, as a number. The order is by length, then as bit strings.
type Prefix = (u32, u32);

impl Luts {
    /// The tables of a code; `None` where there are more than 17.
    pub fn new(codebook: &Codebook, fill: Fill) -> Option<Self> {
        let codes = || {
            codebook
                .order
                .iter()
                .map(|&exponent| (exponent, codebook.codes[usize::from(exponent)]))
        };
        let mut prefixes: Vec<Prefix> = Vec::with_capacity(MAX_TABLES);
        for prefix in codes().flat_map(|(_, code)| (0..levels(code)).map(move |d| prefix(code, d)))
        {
            if let Err(place) = prefixes.binary_search(&prefix) {
                if prefixes.len() == MAX_TABLES {
                    return None;
                }
                prefixes.insert(place, prefix);
            }
        }

        let mut tables = [[None; 256]; MAX_TABLES];
        let index = |wanted: Prefix| prefixes.partition_point(|&prefix| prefix < wanted);
        let mut lengths = [0; 256];
        for (exponent, code) in codes() {
            lengths[usize::from(exponent)] = code.bits as u8;
            for depth in 0..levels(code) {
                let byte = aligned(code) >> (24 - 8 * depth) & 0xFF;
                let value = if depth + 1 == levels(code) {
                    exponent
                } else {
                    (256 - index(prefix(code, depth + 1))) as u8
                };
                tables[index(prefix(code, depth))][byte as usize] = Some(value);
            }
        }
        Some(Self::fill(&tables[..prefixes.len()], lengths, fill))
    }

    /// Repeats set values forward.
    fn fill(tables: &[[Option<u8>; 256]], lengths: [u8; 256], fill: Fill) -> Self {
        let mut bytes = Vec::with_capacity((tables.len() + 1) * 256);
        let (mut carried, mut headless) = (None, false);
        let mut last = None;
        for (index, table) in tables.iter().enumerate() {
            let unset = table.iter().take_while(|entry| entry.is_none()).count();
            let first = table.get(unset).copied().flatten();
            let inherited = if fill == Fill::Carried { last } else { None };
            if unset > 0 {
                headless |= index == 0;
                carried = inherited.map(|_| (index, unset)).or(carried);
            }
            let mut value = inherited.or(first).unwrap_or(0);
            bytes.extend(table.iter().map(|entry| {
                value = entry.unwrap_or(value);
                value
            }));
            last = Some(value);
        }
        bytes.extend(lengths);
        Self {
            bytes,
            carried,
            headless,
        }
    }

    /// The `luts` tensor.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Rows of 256 bytes: tables and lengths.
    pub fn rows(&self) -> usize {
        self.bytes.len() / 256
    }

    /// Table 0 has no entry 0 of its own: the official tool crashes on it.
    pub fn headless(&self) -> bool {
        self.headless
    }

    /// Looks up the code that begins at the top of `word`, as the kernel does. Returns its length.
    pub fn length(&self, word: u32) -> u8 {
        let (mut table, mut value) = (0, 0);
        for byte in word.to_be_bytes() {
            value = self.bytes[table * 256 + usize::from(byte)];
            if value < FIRST_JUMP {
                break;
            }
            table = 256 - usize::from(value);
        }
        self.bytes[self.bytes.len() - 256 + usize::from(value)]
    }

    /// Gives the carried entries their table's own first value. Returns the table.
    pub fn refill(&mut self) -> Option<usize> {
        let (table, unset) = self.carried.take()?;
        let row = &mut self.bytes[table * 256..][..256];
        let first = row[unset];
        row[..unset].fill(first);
        Some(table)
    }
}

/// The code's bits from bit 31 down.
fn aligned(code: Code) -> u32 {
    code.value << (32 - code.bits)
}

/// Look-ups it takes to decode the code.
fn levels(code: Code) -> u32 {
    code.bits.div_ceil(8)
}

/// The code's first `depth` bytes; `depth` is at most 3.
fn prefix(code: Code, depth: u32) -> Prefix {
    (depth, (u64::from(aligned(code)) >> (32 - 8 * depth)) as u32)
}
