//! Writing the restored file: copied tensors, decoded units, kept tensors, and the header at the end. Everything is read back for its hash.

use std::mem;

use df11_codec::DecodeTables;
use safetensors::Dtype;

use super::Restoration;
use crate::{
    convert::Conversion,
    error::{Code, Error, Result},
    ordered::in_order,
    output::{
        PartialFile,
        flush::{FlushRequests, while_flushing},
    },
    progress::{Phase, Progress},
    stored::{
        hashes::TensorHashes,
        parts::Member,
        structure,
        unit_bytes::{CHUNKS_PER_RUN, RunMemory},
        units::{StoredUnit, fault},
    },
};

/// Bytes of a copied tensor that one task copies.
const COPY_BYTES: u64 = 1 << 20;

/// Checks what the units' small tensors say, before anything is written.
///
/// # Errors
/// `E_STRUCTURE`; those of the file.
pub fn check_units(job: &Restoration, progress: &Progress) -> Result<()> {
    for (index, members) in &job.parts.units {
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
pub fn write(job: &Restoration, file: &PartialFile, progress: &Progress) -> Result<()> {
    let header = &job.description.header_json;
    let writer = Writer {
        job,
        file,
        progress,
        data_start: 8 + header.len() as u64,
    };
    progress.set_phase(Phase::Restoring);
    while_flushing(file, |flush| {
        writer.copy(flush)?;
        writer.decode(flush)?;
        writer.keep()
    })?;
    progress.set_phase(Phase::Finishing);
    job.stored.file.check_unchanged()?;
    // The header replaces the marker, so by then little may be left to flush: killed in between, the file would not be known as ours.
    file.sync()?;
    let length = (header.len() as u64).to_le_bytes();
    file.write(&[&length, header.as_slice()].concat(), 0)
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
    /// As they lie in the restored file.
    weights: Vec<u8>,
    /// The same, while it is made.
    widened: Vec<u8>,
}

struct Writer<'a> {
    job: &'a Restoration,
    file: &'a PartialFile,
    progress: &'a Progress,
    /// Where the data begins in the restored file.
    data_start: u64,
}

impl<'a> Writer<'a> {
    /// Copies the tensors that were not compressed.
    fn copy(&self, flush: &mut FlushRequests) -> Result<()> {
        let stored = &self.job.stored.file;
        let copied = &self.job.parts.copied;
        let tensors = &self.job.description.header.tensors;
        let ends = running_sum(copied.iter().map(|(_, tensor)| {
            let bytes: u64 = tensors[*tensor].bytes();
            bytes.div_ceil(COPY_BYTES)
        }));
        let mut hashes = self.hashes(copied.iter().map(|(_, tensor)| *tensor));
        in_order(
            ends.last().copied().unwrap_or(0),
            self.job.threads,
            vec![Vec::new(); self.job.threads + 2],
            |index, buffer: &mut Vec<u8>| {
                self.progress.check_cancelled()?;
                let (number, piece) = place_of(&ends, index);
                let (from, tensor) = copied[number];
                let (from, tensor) = (&stored.header().tensors[from], &tensors[tensor]);
                let at = piece * COPY_BYTES;
                buffer.resize(COPY_BYTES.min(tensor.bytes() - at) as usize, 0);
                stored.read(buffer, from.start + at)?;
                self.put(buffer, tensor.start + at)
            },
            |_, buffer| {
                hashes.add(buffer)?;
                self.written(buffer, flush);
                Ok(())
            },
        )?;
        complete(hashes)
    }

    /// Decodes the units, 16 kernel chunks a task.
    fn decode(&self, flush: &mut FlushRequests) -> Result<()> {
        let units = &self.job.parts.units;
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
                let added = hashes.add(&memory.weights);
                added.map_err(|error| error.in_unit(&stored(number).name))?;
                self.written(&memory.weights, flush);
                if run + 1 == runs(number) {
                    self.progress.unit_done();
                }
                Ok(())
            },
        )?;
        self.progress.leave_unit();
        complete(hashes)
    }

    fn run(&self, number: usize, unit: &StoredUnit, run: u64, memory: &mut Memory) -> Result<()> {
        let wrong = |message: &str| damaged(message).in_unit(&unit.name);
        let read = |buffer: &mut [u8], offset| self.job.stored.file.read(buffer, offset);
        let bytes = unit.bytes(&read, &wrong);
        let tables = match memory.tables.take() {
            Some((of, tables)) if of == number => tables,
            spare => bytes.tables(self.job.options.kernel, spare.map(|(_, tables)| tables))?,
        };
        let first = run * CHUNKS_PER_RUN;
        let end = (first + CHUNKS_PER_RUN).min(unit.layout.chunks);
        let range = bytes.decode(&tables, (first, end), &mut memory.run, &mut memory.weights)?;
        memory.tables = Some((number, tables));
        self.put_weights(&self.job.parts.units[number].1, range, memory)
    }

    /// Writes decoded weights `from..to` of a unit to the tensors that they belong to, and reads them back in their place. They are widened
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
            let tensor = &self.job.description.header.tensors[member.tensor];
            let part = &mut memory.weights[(start - from) as usize * 2..(end - from) as usize * 2];
            let width = tensor.dtype.bitsize() as u64 / 8;
            let place = tensor.start + (start - member.first) * width;
            if let Some(back) = Conversion::between(Dtype::BF16, tensor.dtype) {
                let at = memory.widened.len();
                let bytes = (end - start) * width;
                memory.widened.resize(at + bytes as usize, 0);
                back.apply(part, &mut memory.widened[at..]);
                self.put(&mut memory.widened[at..], place)?;
            } else {
                self.put(part, place)?;
                memory.widened.extend_from_slice(part);
            }
        }
        mem::swap(&mut memory.weights, &mut memory.widened);
        Ok(())
    }

    /// Writes the tensors that the model does not have.
    fn keep(&self) -> Result<()> {
        let bytes = self.job.description.dropped.as_deref().unwrap_or_default();
        for (tensor, range) in &self.job.parts.kept {
            let mut part = bytes.get(range.clone()).unwrap_or_default().to_vec();
            let info = &self.job.description.header.tensors[*tensor];
            self.put(&mut part, info.start)?;
            let mut hashes = self.hashes([*tensor].into_iter());
            // Most have none: they were not read when the file was made.
            if self.job.description.source[*tensor].is_some() {
                hashes.add(&part)?;
            }
            self.progress.add_stage(part.len() as u64);
        }
        Ok(())
    }

    /// Writes `bytes` at an offset in the data, and reads them back.
    fn put(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.write(bytes, self.data_start + offset)?;
        self.file.read(bytes, self.data_start + offset)
    }

    fn written(&self, bytes: &[u8], flush: &mut FlushRequests) {
        self.progress.add_stage(bytes.len() as u64);
        self.progress.add_out(bytes.len() as u64);
        flush.written(self.progress.snapshot().bytes_out);
    }

    /// The hashes of tensors of the source, which come in this order.
    fn hashes(&self, tensors: impl Iterator<Item = usize>) -> TensorHashes<'a> {
        let description = &self.job.description;
        let expected = |index: usize| {
            let tensor = &description.header.tensors[index];
            (
                tensor.name.as_str(),
                tensor.bytes(),
                description.source[index],
            )
        };
        TensorHashes::new(tensors.map(expected).collect())
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
