//! How records lie in a journal: a mark, then each record with its length and a hash. What was torn, or never was a journal, ends the list.

use std::io::Read;

use crate::hash::xxh3_64_with_seed;

/// First bytes of every journal of this version.
pub const MARK: &[u8; 16] = b"DF11-JOURNAL/1\r\n";
/// First bytes of a journal of any version.
const ANY_MARK: &[u8] = b"DF11-JOURNAL/";
/// Before each record: its length (u32) and its hash (u64), little-endian.
const HEAD_BYTES: usize = 12;
/// No record is longer: the largest unit's counts take a tenth of it.
pub const MAX_RECORD: usize = 4 << 20;

/// What the first bytes of a file show it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A journal that can be read.
    Ours,
    /// A journal of another version; or an empty file, which holds nothing that could be lost.
    Unreadable,
    /// Something else.
    Foreign,
}

/// What a file that begins with these bytes is.
pub fn kind(start: &[u8]) -> Kind {
    if start.starts_with(MARK) {
        Kind::Ours
    } else if start.is_empty() || start.starts_with(ANY_MARK) {
        Kind::Unreadable
    } else {
        Kind::Foreign
    }
}

/// Makes `frame` the record that goes to `offset` of the journal and holds what `write` writes.
///
/// # Errors
/// Those of `write`.
pub fn frame<E>(
    offset: u64,
    frame: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    frame.clear();
    frame.extend([0; HEAD_BYTES]);
    write(frame)?;
    let (head, payload) = frame.split_at_mut(HEAD_BYTES);
    let (length, hashed) = head.split_at_mut(4);
    length.copy_from_slice(&(payload.len() as u32).to_le_bytes());
    hashed.copy_from_slice(&hash(payload, offset).to_le_bytes());
    Ok(())
}

/// Reads the records of a journal behind its mark.
pub struct Frames<R> {
    reader: R,
    payload: Vec<u8>,
    /// Where the next record begins.
    pub end: u64,
}

impl<R: Read> Frames<R> {
    /// Of a journal whose mark was read.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            payload: Vec::new(),
            end: MARK.len() as u64,
        }
    }

    /// The next record; none where the journal ends, or where it is torn, damaged, or cannot be read.
    pub fn next(&mut self) -> Option<&[u8]> {
        let (mut length, mut expected) = ([0; 4], [0; 8]);
        self.reader.read_exact(&mut length).ok()?;
        self.reader.read_exact(&mut expected).ok()?;
        let length = u32::from_le_bytes(length) as usize;
        // A run of zeros, which a disk may show after a power cut, is no record.
        if !(1..=MAX_RECORD).contains(&length) {
            return None;
        }
        self.payload.resize(length, 0);
        self.reader.read_exact(&mut self.payload).ok()?;
        (hash(&self.payload, self.end) == u64::from_le_bytes(expected)).then_some(&self.payload[..])
    }

    /// The record was taken: the next one lies behind it.
    pub fn taken(&mut self) {
        self.end += (HEAD_BYTES + self.payload.len()) as u64;
    }
}

/// A record at another place is another one.
fn hash(payload: &[u8], offset: u64) -> u64 {
    xxh3_64_with_seed(payload, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(payloads: &[&[u8]]) -> Vec<u8> {
        let (mut bytes, mut record) = (MARK.to_vec(), Vec::new());
        for payload in payloads {
            let written = frame(bytes.len() as u64, &mut record, |out| {
                out.extend_from_slice(payload);
                Ok::<_, ()>(())
            });
            written.unwrap();
            bytes.extend_from_slice(&record);
        }
        bytes
    }

    fn payloads(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Frames::new(&bytes[MARK.len()..]);
        let mut found = Vec::new();
        while let Some(payload) = frames.next() {
            found.push(payload.to_vec());
            frames.taken();
        }
        found
    }

    const RECORDS: [&[u8]; 4] = [b"one", b"a second one", b"x", b"the last"];

    #[test]
    fn a_torn_journal_has_its_first_records() {
        let whole = journal(&RECORDS);
        for cut in MARK.len()..=whole.len() {
            let found = payloads(&whole[..cut]);
            let complete = (0..=RECORDS.len()).rev();
            let mut complete = complete.filter(|&count| journal(&RECORDS[..count]).len() <= cut);
            assert_eq!(found, RECORDS[..complete.next().unwrap()]);
        }
    }

    #[test]
    fn a_damaged_record_and_all_behind_it_are_not_there() {
        let whole = journal(&RECORDS);
        for at in MARK.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            let found = payloads(&damaged);
            assert!(found.len() < RECORDS.len() && found == RECORDS[..found.len()]);
        }
    }

    #[test]
    fn a_record_counts_at_its_place_only() {
        let whole = journal(&RECORDS);
        let second = journal(&RECORDS[..1]).len();
        let moved = [MARK, &whole[second..]].concat();
        assert!(payloads(&moved).is_empty());
        let zeros = [&whole[..], &[0; 100]].concat();
        assert_eq!(payloads(&zeros), RECORDS);
    }

    #[test]
    fn files_are_told_apart_by_their_first_bytes() {
        for (start, expected) in [
            (&MARK[..], Kind::Ours),
            (b"DF11-JOURNAL/2\r\n", Kind::Unreadable),
            (b"", Kind::Unreadable),
            (&MARK[..12], Kind::Foreign),
            (b"dear diary", Kind::Foreign),
        ] {
            assert_eq!(kind(start), expected);
        }
    }
}
