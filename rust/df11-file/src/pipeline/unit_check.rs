//! Reads written bytes back, decodes them as the kernel does, and compares them with the source that is still in memory.

use super::survey::locate;
use crate::{
    error::{Code, Error, Result},
    output::UnitPlace,
    plan::{Plan, UnitPlan},
    progress::Progress,
};
use df11_codec::{
    CheckBuffers, ChunkRun, DecodeTables, Mismatch, MismatchKind, UnitLayout,
    limits::{CHUNK_BITS, CHUNK_BYTES, GAP_BYTES_PER_CHUNK, MAX_WEIGHTS_PER_CHUNK},
};

/// Kernel chunks that one task reads and decodes.
pub const CHUNKS_PER_RUN: u64 = 16;
/// 17 decode tables and the row of code lengths.
pub const MAX_LUT_ROWS: usize = 18;
/// Bytes behind a run that its last codes may reach into.
const LOOKAHEAD: u64 = 8;

/// Something that reads bytes of the file that holds the unit.
pub type ReadAt<'a> = &'a (dyn Fn(&mut [u8], u64) -> Result<()> + Sync);

/// A unit of a DF11 file, to be compared with its weights.
#[derive(Clone, Copy)]
pub struct UnitCheck<'a> {
    /// Reads the file.
    pub read: ReadAt<'a>,
    /// Told what was checked.
    pub progress: &'a Progress,
    /// The unit, for messages.
    pub plan: &'a Plan,
    /// The unit, for messages.
    pub unit: &'a UnitPlan,
    /// Where it lies.
    pub place: UnitPlace,
    /// Its sizes.
    pub layout: &'a UnitLayout,
}

/// Memory for one run of kernel chunks.
pub struct RunMemory {
    encoded_exponent: Vec<u8>,
    gaps: Vec<u8>,
    output_positions: Vec<u8>,
    sign_mantissa: Vec<u8>,
    check: CheckBuffers,
}

impl Default for RunMemory {
    /// Room for the longest run.
    fn default() -> Self {
        let room =
            |bytes_per_chunk: u64| Vec::with_capacity((CHUNKS_PER_RUN * bytes_per_chunk) as usize);
        Self {
            encoded_exponent: room(CHUNK_BYTES + LOOKAHEAD),
            gaps: room(GAP_BYTES_PER_CHUNK + 1),
            output_positions: room(8),
            sign_mantissa: room(MAX_WEIGHTS_PER_CHUNK),
            check: CheckBuffers::default(),
        }
    }
}

/// The error for bytes of a plan's result that are not what was to be written.
pub fn wrong_bytes(plan: &Plan, message: &str) -> Error {
    Error::new(Code::Verify, message).at_path(&plan.target).hint(
        "The disk or the memory of this machine may be failing: try again, on another disk if there is one.",
    )
}

impl UnitCheck<'_> {
    /// The decode tables, as the file holds them, in the memory of some other unit's where there is one.
    ///
    /// # Errors
    /// `E_VERIFY` where they cannot be decoded with.
    pub fn tables(&self, spare: Option<DecodeTables>) -> Result<DecodeTables> {
        let mut luts = [0; MAX_LUT_ROWS * 256];
        let luts = luts
            .get_mut(..self.layout.lut_rows as usize * 256)
            .ok_or_else(|| self.fault("its luts are too large"))?;
        (self.read)(luts, self.place.luts)?;
        let tables = match spare {
            Some(mut tables) => tables.read(luts).map(|()| tables),
            None => DecodeTables::with_kernel(self.plan.options.kernel, luts),
        };
        tables.map_err(|error| self.fault(&format!("its luts are wrong: {error}")))
    }

    /// First weights of kernel chunks `first..=end`; behind the last chunk, the number of weights.
    ///
    /// # Errors
    /// `E_VERIFY` where they do not rise, leave the unit, or are further apart than any code allows.
    pub fn positions(&self, first: u64, end: u64, bytes: &mut Vec<u8>) -> Result<(u64, u64)> {
        let entries = (end + 1).min(self.layout.position_entries) - first;
        bytes.resize(entries as usize * 4, 0);
        (self.read)(bytes, self.place.output_positions + first * 4)?;
        let entry = |index: u64| {
            let four = bytes.get(index as usize * 4..)?.first_chunk::<4>()?;
            Some(u64::from(u32::from_le_bytes(*four)))
        };
        let range = (
            entry(0).unwrap_or(self.layout.weights),
            entry(end - first).unwrap_or(self.layout.weights),
        );
        let most = (end - first) * CHUNK_BITS;
        if range.0 > range.1 || range.1 > self.layout.weights || range.1 - range.0 > most {
            return Err(self.fault(&format!(
                "output_positions {first} to {end} are out of order"
            )));
        }
        Ok(range)
    }

    /// Checks kernel chunks `first..end` against `source`, the weights from `source_start` on.
    ///
    /// # Errors
    /// `E_VERIFY` at the first difference.
    pub fn run(
        &self,
        tables: &DecodeTables,
        (first, end): (u64, u64),
        (source, source_start): (&[u8], u64),
        buffers: &mut RunMemory,
    ) -> Result<()> {
        self.progress.check_cancelled()?;
        let (from, to) = self.positions(first, end, &mut buffers.output_positions)?;
        let bytes = |from: u64, to: u64| {
            (from.wrapping_sub(source_start).wrapping_mul(2) as usize)
                ..(to.wrapping_sub(source_start).wrapping_mul(2) as usize)
        };
        let expected = (from >= source_start)
            .then(|| source.get(bytes(from, to)))
            .flatten();
        let expected = expected.ok_or_else(|| {
            self.fault(&format!(
                "output_positions {first} to {end} lie outside the weights written"
            ))
        })?;
        let fill = |buffer: &mut Vec<u8>, offset: u64, start: u64, stop: u64| {
            buffer.resize((stop - start) as usize, 0);
            (self.read)(buffer, offset + start)
        };
        let layout = self.layout;
        let stop = |end: u64, unit: u64, more: u64, all: u64| (end * unit + more).min(all);
        let code_end = stop(end, CHUNK_BYTES, LOOKAHEAD, layout.encoded_exponent_bytes);
        fill(
            &mut buffers.encoded_exponent,
            self.place.encoded_exponent,
            first * CHUNK_BYTES,
            code_end,
        )?;
        let gaps_end = stop(end, GAP_BYTES_PER_CHUNK, 1, layout.gaps_bytes);
        fill(
            &mut buffers.gaps,
            self.place.gaps,
            first * GAP_BYTES_PER_CHUNK,
            gaps_end,
        )?;
        fill(
            &mut buffers.sign_mantissa,
            self.place.sign_mantissa,
            from,
            to,
        )?;
        let run = ChunkRun {
            first_chunk: first,
            unit_weights: layout.weights,
            unit_bytes: layout.encoded_exponent_bytes,
            encoded_exponent: &buffers.encoded_exponent,
            gaps: &buffers.gaps,
            output_positions: &buffers.output_positions,
            sign_mantissa: &buffers.sign_mantissa,
        };
        let checked = tables.check_chunks_with(&run, expected, &mut buffers.check);
        checked.map_err(|mismatch| self.mismatch(&mismatch))?;
        self.progress.add_stage((to - from) * 2);
        Ok(())
    }

    /// `E_VERIFY` with the unit.
    pub fn fault(&self, message: &str) -> Error {
        wrong_bytes(self.plan, message).in_unit(&self.unit.name)
    }

    fn mismatch(&self, mismatch: &Mismatch) -> Error {
        let at = mismatch.index;
        let message = match mismatch.kind {
            MismatchKind::Weight { expected, found } => {
                let message =
                    format!("the file decodes to {found:#06x}, the source has {expected:#06x}");
                return locate(self.plan, self.unit, at, wrong_bytes(self.plan, &message));
            }
            MismatchKind::Gap { expected, found } => {
                format!("the gap of window {at} is {found}, the codes say {expected}")
            }
            MismatchKind::Position { expected, found } => {
                format!("output position {at} is {found}, the codes say {expected}")
            }
            MismatchKind::Hang => format!("the decode kernel would never leave window {at}"),
            MismatchKind::Length => format!("the codes should end at byte {at}"),
            MismatchKind::Truncated => format!("kernel chunk {at} is cut short"),
        };
        self.fault(&message)
    }
}
