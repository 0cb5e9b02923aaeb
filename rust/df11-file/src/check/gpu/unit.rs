//! One unit on the GPU: there, decoded, and back.

#![allow(unsafe_code)]

use std::ops::Range;

use df11_codec::{
    UnitLayout,
    limits::{CHUNK_BYTES, WINDOWS_PER_CHUNK},
};
use df11_cuda::{Argument, GpuError, Launch, Memory};

use super::{Decoder, failure};
use crate::{
    check::decode::{Chosen, Work, damaged},
    error::{Code, Error, Result},
    ordered::in_order,
    pipeline::SpanMemory,
    stored::{
        unit_bytes::{RunMemory, UnitBytes},
        units::StoredUnit,
    },
};

/// Bytes that are copied to the GPU at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// Shared memory of a launch besides two bytes for each weight of its fullest kernel chunk: a word for each thread, and one more.
const SHARED_BYTES: u64 = 4 * WINDOWS_PER_CHUNK + 4;
/// What the output holds before the launch: weights with an exponent that no DF11 unit has.
const UNWRITTEN: u8 = 0xFF;

/// The arguments' sizes in bytes, in their order: luts, codes, signs and mantissas, positions, gaps, weights. The kernel reads the position
/// behind the last kernel chunk, and the byte behind the last gap, which the file may not have.
fn sizes(layout: &UnitLayout) -> [u64; 6] {
    [
        layout.lut_rows * 256,
        layout.encoded_exponent_bytes,
        layout.weights,
        (layout.chunks + 1) * 4,
        layout.gaps_bytes + 1,
        layout.weights * 2,
    ]
}

/// Bytes of GPU memory that decoding a unit takes.
pub fn bytes_needed(layout: &UnitLayout) -> u64 {
    sizes(layout).iter().sum()
}

/// What the weights of a run should be.
#[derive(Default)]
struct Expected {
    run: RunMemory,
    positions: Vec<u8>,
    decoded: Vec<u8>,
    source: SpanMemory,
    /// Which they are.
    range: (u64, u64),
}

impl Decoder<'_> {
    /// Decodes a unit on the GPU and compares it with the source, or with what our own decoder gives. The unit must have passed
    /// [`Work::unit`]: the kernel may never end on one that is damaged.
    ///
    /// # Errors
    /// `E_VERIFY` at the first weight that differs; `E_GPU`, `E_NO_MEMORY`; those of the file.
    pub fn unit(&self, work: &Work<'_>, unit: &StoredUnit, chosen: &Chosen) -> Result<()> {
        let failed = |error: GpuError| failure(&error).in_unit(&unit.name);
        let wrong = |message: &str| damaged(message, unit);
        let read = |buffer: &mut [u8], offset| work.stored.file.read(buffer, offset);
        let bytes = unit.bytes(&read, &wrong);
        let mut memories = Vec::new();
        for size in sizes(&unit.layout) {
            memories.push(self.gpu.memory(size as usize).map_err(failed)?);
        }
        let outputs = self.launch(work, &bytes, &memories, &failed)?;
        self.gpu.wait().map_err(failed)?;
        let mut found = Vec::new();
        in_order(
            chosen.runs.len() as u64,
            work.threads,
            (0..work.threads + 2).map(|_| Expected::default()).collect(),
            |index, expected: &mut Expected| {
                expected.fill(
                    work,
                    unit,
                    &bytes,
                    chosen,
                    chosen.runs[index as usize].clone(),
                )
            },
            |_, expected| {
                let (from, to) = expected.range;
                found.resize((to - from) as usize * 2, 0);
                outputs
                    .download(from as usize * 2, &mut found)
                    .map_err(failed)?;
                compare(work, unit, chosen, expected, &found)?;
                work.progress.add_stage((to - from) * 2);
                Ok(())
            },
        )
    }

    /// Copies a unit to the GPU and starts the kernel. Returns where the weights will be.
    fn launch<'m>(
        &self,
        work: &Work<'_>,
        bytes: &UnitBytes<'_>,
        memories: &'m [Memory<'m>],
        failed: &dyn Fn(GpuError) -> Error,
    ) -> Result<&'m Memory<'m>> {
        let [luts, codes, sign_mantissa, positions, gaps, outputs] = memories else {
            return Err(Error::new(Code::Internal, "the kernel takes six memories"));
        };
        let (layout, place) = (bytes.layout, &bytes.place);
        for memory in [positions, gaps, outputs] {
            memory.fill(UNWRITTEN).map_err(failed)?;
        }
        let mut rising = Rising::default();
        let parts = [
            (luts, place.luts, layout.lut_rows * 256),
            (codes, place.encoded_exponent, layout.encoded_exponent_bytes),
            (sign_mantissa, place.sign_mantissa, layout.weights),
            (gaps, place.gaps, layout.gaps_bytes),
            (
                positions,
                place.output_positions,
                layout.position_entries * 4,
            ),
        ];
        let mut piece = Vec::new();
        for (memory, start, size) in parts {
            for offset in (0..size).step_by(PIECE_BYTES as usize) {
                work.progress.check_cancelled()?;
                piece.resize(PIECE_BYTES.min(size - offset) as usize, 0);
                (bytes.read)(&mut piece, start + offset)?;
                memory.upload(offset as usize, &piece).map_err(failed)?;
                if start == place.output_positions {
                    rising.add(&piece);
                }
            }
        }
        if rising.is_broken || rising.last != layout.weights {
            return Err((bytes.fault)(
                "its output_positions do not rise to the number of weights",
            ));
        }
        let launch = Launch {
            grid: layout.encoded_exponent_bytes.div_ceil(CHUNK_BYTES) as u32,
            block: WINDOWS_PER_CHUNK as u32,
            shared: (SHARED_BYTES + 2 * rising.widest) as u32,
        };
        let numbers = [
            layout.lut_rows,
            layout.encoded_exponent_bytes,
            layout.weights,
        ];
        let arguments: Vec<_> = memories
            .iter()
            .map(Argument::Memory)
            .chain(numbers.map(|number| Argument::Number(number as u32)))
            .collect();
        // SAFETY: the kernel writes to the last memory alone, the weights from each position to the next; the positions that were just
        // copied rise to the number of weights, for which there is room. It reads the others as far as `sizes` says, and jumps from
        // table to table as the check before has seen it. That the file holds this kernel, whoever named it vouches for.
        unsafe { self.kernel.launch(launch, &arguments) }.map_err(failed)?;
        Ok(outputs)
    }
}

/// Positions as they go to the GPU, entry by entry.
#[derive(Default)]
struct Rising {
    last: u64,
    /// Most weights of a kernel chunk.
    widest: u64,
    is_broken: bool,
}

impl Rising {
    fn add(&mut self, entries: &[u8]) {
        for four in entries.chunks_exact(4) {
            let position = four
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte));
            match position.checked_sub(self.last) {
                Some(weights) => self.widest = self.widest.max(weights),
                None => self.is_broken = true,
            }
            self.last = position;
        }
    }
}

impl Expected {
    fn fill(
        &mut self,
        work: &Work<'_>,
        unit: &StoredUnit,
        bytes: &UnitBytes<'_>,
        chosen: &Chosen,
        run: Range<u64>,
    ) -> Result<()> {
        work.progress.check_cancelled()?;
        let chunks = (run.start, run.end);
        self.range = match work.against {
            None => bytes.decode(&chosen.tables, chunks, &mut self.run, &mut self.decoded)?,
            Some(against) => {
                let range = bytes.positions(run.start, run.end, &mut self.positions)?;
                against.read(unit, range, &mut self.source)?;
                range
            }
        };
        Ok(())
    }
}

/// An error for the first weight that differs.
fn compare(
    work: &Work<'_>,
    unit: &StoredUnit,
    chosen: &Chosen,
    expected: &Expected,
    found: &[u8],
) -> Result<()> {
    let (wanted, whose): (&[u8], _) = match work.against {
        None => (&expected.decoded, "the decoder of this program gives"),
        Some(_) => (&expected.source.bytes, "the source has"),
    };
    if wanted == found {
        return Ok(());
    }
    let bits = |two: &[u8]| {
        two.iter()
            .rev()
            .fold(0, |bits, &byte| bits << 8 | u16::from(byte))
    };
    let pairs = wanted
        .chunks_exact(2)
        .zip(found.chunks_exact(2))
        .zip(expected.range.0..);
    let mut different = pairs.filter(|((wanted, found), _)| wanted != found);
    let Some(((wanted, found), index)) = different.next() else {
        return Err(Error::new(
            Code::Internal,
            "runs of other lengths were compared",
        ));
    };
    let (wanted, found) = (bits(wanted), bits(found));
    let message = format!("the decode kernel on the GPU gives {found:#06x}, {whose} {wanted:#06x}");
    let error = Error::new(Code::Verify, message).hint(
        "On the processor the unit decodes right: check the GPU, its driver and the kernel's file.",
    );
    Err(work.locate(unit, chosen, index, error))
}
