//! Writing the restored file: copied tensors, decoded units, kept tensors, and the header at the end. Everything is read back and compared with what was
//! to be written, and hashed where the file tells the hash. In the same way a file that is there already is compared.

use std::mem;

use df11_codec::DecodeTables;
use safetensors::Dtype;

use super::Restoration;
use crate::{
    convert::Conversion,
    error::{Code, Error, Result},
    header::TensorInfo,
    ordered::in_order,
    output::{Output, flush::while_flushing},
    plan::target_exists,
    progress::{Phase, Progress},
    source::Source,
    stored::{
        hashes::TensorHashes,
        parts::Member,
        structure,
        unit_bytes::{CHUNKS_PER_RUN, RunMemory},
        units::{StoredUnit, fault},
    },
    turns::Turns,
};

/// Bytes of a copied tensor that one task copies.
const COPY_BYTES: u64 = 1 << 20;

/// Checks what the units' small tensors say, before anything is written.
///
/// # Errors
/// `E_STRUCTURE`; those of the file.
pub fn check_units(job: &Restoration, progress: &Progress) -> Result<()> {
    for (index, members) in &job.outline.parts.units {
        progress.check_cancelled()?;
        let unit = &job.stored.units[*index];
        let wrong = |message: &str| fault(message).in_unit(&unit.name);
        let read = |buffer: &mut [u8], offset| job.stored.file.read(buffer, offset);
        let bytes = unit.bytes(&read, &wrong);
        let (_, weights) = structure::check(unit, &bytes, job.options.kernel)?;
        if !weights
            .into_iter()
            .eq(members.iter().map(|member| member.weights))
        {
            return Err(wrong("its tensors have other sizes than in its source"));
        }
    }
    Ok(())
}

/// Writes everything but the name.
///
/// # Errors
/// `E_VERIFY` where something is not what the source had; those of both files; `E_CANCELLED`.
pub fn write(job: &Restoration, file: &Output, progress: &Progress) -> Result<()> {
    let turns = Turns::new(job.stored.file.path(), &job.target);
    let writer = Writer {
        job,
        place: Place::New(file),
        turns: &turns,
        progress,
    };
    progress.set_phase(Phase::Restoring);
    while_flushing(file, &turns, |flush| {
        writer.all(|bytes| flush.written(progress.add_out(bytes)))
    })?;
    progress.set_phase(Phase::Finishing);
    job.stored.file.check_unchanged()?;
    file.finish(&job.outline.headers())?;
    let mut texts = job.outline.texts.iter().flatten();
    texts.try_for_each(|(name, text)| file.add(name, text.as_bytes()))
}

/// Compares the data of a file that is there already with what would be written.
///
/// # Errors
/// `E_TARGET_EXISTS` where it is another; those of [`write`].
pub fn compare(job: &Restoration, file: &Source, progress: &Progress) -> Result<()> {
    let writer = Writer {
        job,
        place: Place::Existing(file),
        turns: &Turns::default(),
        progress,
    };
    writer.all(|_| Ok(()))
}

fn damaged(message: &str) -> Error {
    Error::new(Code::Verify, message)
        .hint("The file is damaged: make it again, or get a sound copy.")
}

/// What one run of kernel chunks is decoded with.
#[derive(Default)]
struct Memory {
    run: RunMemory,
    /// Of the unit, by its number among the parts, that was decoded last.
    tables: Option<(usize, DecodeTables)>,
    weights: Vec<u8>,
    /// The weights as the restored file has them, while they are made.
    widened: Vec<u8>,
    /// What the restored file has in their place.
    back: Vec<u8>,
}

/// Where the data goes.
enum Place<'a> {
    /// To a file that is being written.
    New(&'a Output),
    /// Nowhere: it should lie there already.
    Existing(&'a Source),
}

struct Writer<'a> {
    job: &'a Restoration,
    place: Place<'a>,
    turns: &'a Turns,
    progress: &'a Progress,
}

impl<'a> Writer<'a> {
    /// All data. `written` is told how many bytes have been added.
    fn all(&self, mut written: impl FnMut(u64) -> Result<()>) -> Result<()> {
        self.copy(&mut written)?;
        self.decode(&mut written)?;
        self.keep()
    }

    /// Copies the tensors that were not compressed.
    fn copy(&self, written: &mut impl FnMut(u64) -> Result<()>) -> Result<()> {
        let stored = &self.job.stored.file;
        let copied = &self.job.outline.parts.copied;
        let tensors = &self.job.outline.header.tensors;
        let ends = running_sum(copied.iter().map(|(_, tensor)| {
            let bytes: u64 = tensors[*tensor].bytes();
            bytes.div_ceil(COPY_BYTES)
        }));
        let mut hashes = self.hashes(copied.iter().map(|(_, tensor)| *tensor));
        in_order(
            ends.last().copied().unwrap_or(0),
            self.job.threads,
            vec![(Vec::new(), Vec::new()); self.job.threads + 2],
            |index, (buffer, back): &mut (Vec<u8>, Vec<u8>)| {
                self.progress.check_cancelled()?;
                let (number, piece) = place_of(&ends, index);
                let (from, tensor) = copied[number];
                let (from, tensor) = (&stored.header().tensors[from], &tensors[tensor]);
                let at = piece * COPY_BYTES;
                buffer.resize(COPY_BYTES.min(tensor.bytes() - at) as usize, 0);
                self.turns
                    .reading(|| stored.read(buffer, from.start + at))?;
                self.put(buffer, tensor, at, back)
            },
            |_, (buffer, _)| {
                if let Some(hashes) = &mut hashes {
                    hashes.add(buffer)?;
                }
                self.progress.add_stage(buffer.len() as u64);
                written(buffer.len() as u64)?;
                Ok(())
            },
        )?;
        hashes.map_or(Ok(()), complete)
    }

    /// Decodes the units, 16 kernel chunks a task.
    fn decode(&self, written: &mut impl FnMut(u64) -> Result<()>) -> Result<()> {
        let units = &self.job.outline.parts.units;
        let stored = |number: usize| &self.job.stored.units[units[number].0];
        let runs = |number: usize| stored(number).layout.chunks.div_ceil(CHUNKS_PER_RUN);
        let ends = running_sum((0..units.len()).map(runs));
        let members = units.iter().flat_map(|(_, members)| members);
        let mut hashes = self.hashes(members.map(|member| member.tensor));
        let memories = (0..self.job.threads + 2).map(|_| Memory::default());
        in_order(
            ends.last().copied().unwrap_or(0),
            self.job.threads,
            memories.collect(),
            |index, memory: &mut Memory| {
                self.progress.check_cancelled()?;
                let (number, run) = place_of(&ends, index);
                self.run(number, stored(number), run, memory)
            },
            |index, memory| {
                let (number, run) = place_of(&ends, index);
                self.progress.enter_unit(number);
                if let Some(hashes) = &mut hashes {
                    let added = hashes.add(&memory.weights);
                    added.map_err(|error| error.in_unit(&stored(number).name))?;
                }
                self.progress.add_stage(memory.weights.len() as u64);
                written(memory.weights.len() as u64)?;
                if run + 1 == runs(number) {
                    self.progress.unit_done();
                }
                Ok(())
            },
        )?;
        self.progress.leave_unit();
        hashes.map_or(Ok(()), complete)
    }

    fn run(&self, number: usize, unit: &StoredUnit, run: u64, memory: &mut Memory) -> Result<()> {
        let wrong = |message: &str| damaged(message).in_unit(&unit.name);
        let read = |buffer: &mut [u8], offset| {
            let read = || self.job.stored.file.read(buffer, offset);
            self.turns.reading(read)
        };
        let bytes = unit.bytes(&read, &wrong);
        let tables = match memory.tables.take() {
            Some((of, tables)) if of == number => tables,
            spare => bytes.tables(self.job.options.kernel, spare.map(|(_, tables)| tables))?,
        };
        let first = run * CHUNKS_PER_RUN;
        let end = (first + CHUNKS_PER_RUN).min(unit.layout.chunks);
        let range = bytes.decode(&tables, (first, end), &mut memory.run, &mut memory.weights)?;
        memory.tables = Some((number, tables));
        self.put_weights(&self.job.outline.parts.units[number].1, range, memory)
    }

    /// Puts decoded weights `from..to` of a unit to the tensors that they belong to, and leaves them as they lie there. They are widened
    /// where rounding them had changed none.
    fn put_weights(
        &self,
        members: &[Member],
        (from, to): (u64, u64),
        memory: &mut Memory,
    ) -> Result<()> {
        let begun = members.partition_point(|member| member.first + member.weights <= from);
        let parts = members[begun..]
            .iter()
            .take_while(|member| member.first < to);
        memory.widened.clear();
        for member in parts {
            let start = member.first.max(from);
            let end = (member.first + member.weights).min(to);
            let tensor = &self.job.outline.header.tensors[member.tensor];
            let part = &memory.weights[(start - from) as usize * 2..(end - from) as usize * 2];
            let width = tensor.dtype.bitsize() as u64 / 8;
            let at = memory.widened.len();
            if let Some(back) = Conversion::between(Dtype::BF16, tensor.dtype) {
                let bytes = (end - start) * width;
                memory.widened.resize(at + bytes as usize, 0);
                back.apply(part, &mut memory.widened[at..]);
            } else {
                memory.widened.extend_from_slice(part);
            }
            let offset = (start - member.first) * width;
            self.put(&memory.widened[at..], tensor, offset, &mut memory.back)?;
        }
        mem::swap(&mut memory.weights, &mut memory.widened);
        Ok(())
    }

    /// Writes the tensors that the model does not have.
    fn keep(&self) -> Result<()> {
        let outline = &self.job.outline;
        for (tensor, range) in &outline.parts.kept {
            let part = outline.kept.get(range.clone()).unwrap_or_default();
            let info = &outline.header.tensors[*tensor];
            self.put(part, info, 0, &mut Vec::new())?;
            // Most have no hash: they were not read when the file was made.
            let known = outline.hashes.get(*tensor).is_some_and(Option::is_some);
            if let Some(mut hashes) = self.hashes([*tensor].into_iter()).filter(|_| known) {
                hashes.add(part)?;
            }
            self.progress.add_stage(part.len() as u64);
        }
        Ok(())
    }

    /// Makes sure that the restored file has `bytes` at an offset in a tensor: written where it is new, and read back into `back`.
    fn put(
        &self,
        bytes: &[u8],
        tensor: &TensorInfo,
        offset: u64,
        back: &mut Vec<u8>,
    ) -> Result<()> {
        back.resize(bytes.len(), 0);
        let offset = tensor.start + offset;
        match self.place {
            Place::New(file) => {
                let at = self.job.outline.address(offset);
                file.write(bytes, at)?;
                file.read(back, at)?;
            }
            Place::Existing(file) => file.read(back, offset)?,
        }
        match self.place {
            _ if back == bytes => Ok(()),
            Place::Existing(_) => Err(target_exists(&self.job.target)),
            Place::New(_) => {
                let message = "what was read back is not what was written";
                Err(Error::new(Code::Verify, message)
                    .in_tensor(&tensor.name)
                    .at_path(&self.job.target)
                    .hint("Check the disk and the memory, and try again."))
            }
        }
    }

    /// The hashes of tensors, which come in this order; none where the file tells none.
    fn hashes(&self, tensors: impl Iterator<Item = usize>) -> Option<TensorHashes<'a>> {
        let outline = &self.job.outline;
        if outline.hashes.is_empty() {
            return None;
        }
        let expected = |index: usize| {
            let tensor = &outline.header.tensors[index];
            (tensor.name.as_str(), tensor.bytes(), outline.hashes[index])
        };
        Some(TensorHashes::new(tensors.map(expected).collect()))
    }
}

/// All tensors have come, those without bytes too.
fn complete(mut hashes: TensorHashes<'_>) -> Result<()> {
    hashes.add(&[])?;
    if hashes.are_complete() {
        return Ok(());
    }
    Err(damaged("it holds fewer weights than its source"))
}

fn running_sum(counts: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sum = 0;
    let sums = counts.map(|count| {
        sum += count;
        sum
    });
    sums.collect()
}

/// The number of the one that task `index` belongs to, and which of its tasks it is.
fn place_of(ends: &[u64], index: u64) -> (usize, u64) {
    let number = ends.partition_point(|&end| end <= index);
    let before = number.checked_sub(1).map_or(0, |before| ends[before]);
    (number, index - before)
}
