//! Kernel chunks decoded as the kernel does, and what comes out compared with all that is known about it.

use std::{
    collections::HashMap,
    ops::Range,
    time::{SystemTime, UNIX_EPOCH},
};

use df11_codec::{DecodeTables, MismatchKind};
use safetensors::Dtype;

use super::{Against, CheckOptions, Level};
use crate::{
    error::{Code, Error, Result},
    ordered::in_order,
    pipeline::SpanMemory,
    progress::Progress,
    stored::{
        Stored,
        hashes::TensorHashes,
        structure,
        unit_bytes::{CHUNKS_PER_RUN, RunMemory, UnitBytes, sentence},
        units::{StoredUnit, fault},
    },
    system,
};

/// The kernel chunks of a unit that are to be decoded.
pub struct Chosen {
    pub tables: DecodeTables,
    /// Weights of each member.
    members: Vec<u64>,
    /// Runs of kernel chunks.
    pub runs: Vec<Range<u64>>,
    /// Weights in them, nearly.
    pub weights: u64,
}

/// The decoding part of a check.
pub struct Work<'a> {
    pub stored: &'a Stored,
    pub against: Option<&'a Against>,
    pub options: &'a CheckOptions,
    pub threads: usize,
    pub progress: &'a Progress,
    /// What the file says about the tensors of its source: dtype, hash.
    source: HashMap<&'a str, (Dtype, Option<u64>)>,
    /// Of the choice of samples.
    pub seed: u64,
    random: u64,
    /// Kernel chunks decoded.
    pub chunks: u64,
}

/// What one run is decoded with.
#[derive(Default)]
struct Memory {
    run: RunMemory,
    /// The decoded weights.
    weights: Vec<u8>,
    source: SpanMemory,
}

impl<'a> Work<'a> {
    /// Nothing done yet.
    pub fn new(
        stored: &'a Stored,
        against: Option<&'a Against>,
        options: &'a CheckOptions,
        progress: &'a Progress,
    ) -> Self {
        let description = stored.description.as_ref();
        let source = description.map(|description| {
            let tensors = description.header.tensors.iter().zip(&description.source);
            tensors
                .map(|(tensor, &hash)| (tensor.name.as_str(), (tensor.dtype, hash)))
                .collect()
        });
        let clock = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(1, |now| now.as_nanos() as u64)
        };
        let seed = options.seed.unwrap_or_else(|| clock() >> 8 & 0xFFFF_FFFF);
        Self {
            stored,
            against,
            options,
            threads: system::threads(options.threads),
            progress,
            source: source.unwrap_or_default(),
            seed,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            chunks: 0,
        }
    }

    /// Checks what can be seen without decoding, and chooses what is decoded.
    ///
    /// # Errors
    /// `E_STRUCTURE`, `E_VERIFY`.
    pub fn chosen(&mut self, unit: &StoredUnit) -> Result<Chosen> {
        self.progress.check_cancelled()?;
        let read = |buffer: &mut [u8], offset| self.stored.file.read(buffer, offset);
        let wrong = |message: &str| fault(message).in_unit(&unit.name);
        let bytes = unit.bytes(&read, &wrong);
        let (tables, members) = structure::check(unit, &bytes, self.options.kernel)?;
        if self
            .against
            .is_some_and(|against| !against.has_members(unit, &members))
        {
            return Err(Error::new(
                Code::Verify,
                "its tensors have other sizes than in the source",
            )
            .in_unit(&unit.name)
            .hint("Compare with the checkpoint that the file was made from."));
        }
        let chunks = unit.layout.chunks;
        let runs = match self.options.level {
            Level::Structure | Level::Hash => Vec::new(),
            Level::Full | Level::Kernel => (0..chunks.div_ceil(CHUNKS_PER_RUN))
                .map(|run| run * CHUNKS_PER_RUN..((run + 1) * CHUNKS_PER_RUN).min(chunks))
                .collect(),
            Level::Sample => self.sample(unit, &members)?,
        };
        let decoded: u64 = runs.iter().map(|run| run.end - run.start).sum();
        Ok(Chosen {
            tables,
            members,
            runs,
            weights: unit.layout.weights * decoded / chunks,
        })
    }

    /// First and last kernel chunk, those that hold a member's first weight, and some others.
    fn sample(&mut self, unit: &StoredUnit, members: &[u64]) -> Result<Vec<Range<u64>>> {
        let chunks = unit.layout.chunks;
        let mut wanted = vec![0, chunks - 1];
        let mut first = 0;
        for member in members {
            first += member;
            if first < unit.layout.weights {
                wanted.push(self.chunk_of(unit, first)?);
            }
        }
        let total: u64 = self
            .stored
            .units
            .iter()
            .map(|unit| unit.layout.chunks)
            .sum();
        let share = u128::from(self.options.samples) * u128::from(chunks);
        let share = share.div_ceil(u128::from(total)).min(u128::from(chunks));
        for _ in 0..share {
            wanted.push(next_random(&mut self.random) % chunks);
        }
        wanted.sort_unstable();
        wanted.dedup();
        Ok(wanted.into_iter().map(|chunk| chunk..chunk + 1).collect())
    }

    /// The kernel chunk in which a weight starts.
    fn chunk_of(&self, unit: &StoredUnit, weight: u64) -> Result<u64> {
        let (mut low, mut high) = (0, unit.layout.chunks);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let mut four = [0; 4];
            self.stored
                .file
                .read(&mut four, unit.place.output_positions + middle * 4)?;
            if u64::from(u32::from_le_bytes(four)) <= weight {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Decodes what was chosen of a unit.
    ///
    /// # Errors
    /// `E_VERIFY` at the first difference.
    pub fn unit(&mut self, unit: &StoredUnit, chosen: &Chosen) -> Result<()> {
        let wrong = |message: &str| damaged(message, unit);
        let read = |buffer: &mut [u8], offset| self.stored.file.read(buffer, offset);
        let bytes = unit.bytes(&read, &wrong);
        let memories = (0..self.threads + 2).map(|_| Memory::default()).collect();
        let mut hashes = (self.options.level >= Level::Full && self.against.is_none())
            .then(|| self.source_hashes(unit, &chosen.members))
            .flatten();
        in_order(
            chosen.runs.len() as u64,
            self.threads,
            memories,
            |index, memory: &mut Memory| {
                self.run(
                    unit,
                    &bytes,
                    chosen,
                    chosen.runs[index as usize].clone(),
                    memory,
                )
            },
            |_, memory| match &mut hashes {
                Some(hashes) => hashes
                    .add(&memory.weights)
                    .map_err(|error| error.in_unit(&unit.name)),
                None => Ok(()),
            },
        )?;
        self.chunks += chosen
            .runs
            .iter()
            .map(|run| run.end - run.start)
            .sum::<u64>();
        Ok(())
    }

    /// Adds unit, tensor, and index within the tensor of a unit's weight to an error; the index in the unit where the file does not name its
    /// tensors.
    pub fn locate(&self, unit: &StoredUnit, chosen: &Chosen, weight: u64, error: Error) -> Error {
        if let Some(against) = self.against {
            return against.locate(unit, weight, error);
        }
        let error = error.in_unit(&unit.name).at_index(weight);
        let units = self
            .stored
            .description
            .iter()
            .flat_map(|description| &description.names.units);
        let Some((_, names)) = units.into_iter().find(|(name, _)| *name == unit.name) else {
            return error;
        };
        let mut first = 0;
        for ((_, name), weights) in names.iter().zip(&chosen.members) {
            if weight - first < *weights {
                return error.in_tensor(name).at_index(weight - first);
            }
            first += weights;
        }
        error
    }

    /// The hashes of a unit's tensors in the source. None where the file does not tell them: it is not self-describing, or its source was
    /// rounded.
    fn source_hashes(&self, unit: &StoredUnit, members: &[u64]) -> Option<TensorHashes<'a>> {
        let units = &self.stored.description.as_ref()?.names.units;
        let (_, names) = units.iter().find(|(name, _)| *name == unit.name)?;
        let members = names.iter().zip(members).map(|((_, name), &weights)| {
            let (dtype, hash) = *self.source.get(name.as_str())?;
            (dtype == Dtype::BF16).then_some((name.as_str(), weights * 2, hash))
        });
        Some(TensorHashes::new(members.collect::<Option<_>>()?))
    }

    fn run(
        &self,
        unit: &StoredUnit,
        bytes: &UnitBytes<'_>,
        chosen: &Chosen,
        run: Range<u64>,
        memory: &mut Memory,
    ) -> Result<()> {
        self.progress.check_cancelled()?;
        let (tables, chunks) = (&chosen.tables, (run.start, run.end));
        let range = match self.against {
            None => bytes.decode(tables, chunks, &mut memory.run, &mut memory.weights)?,
            Some(against) => {
                let range = bytes.codes(chunks, &mut memory.run)?;
                bytes.sign_mantissa(range, &mut memory.run)?;
                against.read(unit, range, &mut memory.source)?;
                let (found, check) = memory.run.run(run.start, &unit.layout);
                let checked = tables.check_chunks_with(&found, &memory.source.bytes, check);
                checked.map_err(|mismatch| {
                    let error = (bytes.fault)(&sentence(&mismatch));
                    match mismatch.kind {
                        MismatchKind::Weight { .. } => against.locate(unit, mismatch.index, error),
                        _ => error,
                    }
                })?;
                range
            }
        };
        self.progress.add_stage((range.1 - range.0) * 2);
        Ok(())
    }
}

/// A unit that does not decode to what it should.
pub fn damaged(message: &str, unit: &StoredUnit) -> Error {
    Error::new(Code::Verify, message)
        .in_unit(&unit.name)
        .hint("The file is damaged: make it again, or get a sound copy.")
}

/// A step of the xorshift generator.
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 16
}
