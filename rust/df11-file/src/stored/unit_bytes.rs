//! The tensors of one unit, as a file has them, read run by run.

use df11_codec::{
    CheckBuffers, ChunkRun, DecodeTables, Kernel, LutError, Mismatch, MismatchKind, UnitLayout,
    limits::{CHUNK_BITS, CHUNK_BYTES, GAP_BYTES_PER_CHUNK, MAX_WEIGHTS_PER_CHUNK},
};

use crate::{
    error::{Error, Result},
    output::UnitPlace,
};

/// Kernel chunks that one task reads and decodes.
pub const CHUNKS_PER_RUN: u64 = 16;
/// 17 decode tables and the row of code lengths.
pub const MAX_LUT_ROWS: usize = 18;
/// Bytes behind a run that its last codes may reach into.
const LOOKAHEAD: u64 = 8;

/// Something that reads bytes of the file that holds the unit.
pub type ReadAt<'a> = &'a (dyn Fn(&mut [u8], u64) -> Result<()> + Sync);
/// Makes the error for a fault of the unit.
pub type Fault<'a> = &'a (dyn Fn(&str) -> Error + Sync);

/// A unit of a file.
#[derive(Clone, Copy)]
pub struct UnitBytes<'a> {
    /// Reads the file.
    pub read: ReadAt<'a>,
    /// Where the unit lies.
    pub place: UnitPlace,
    /// Its sizes.
    pub layout: &'a UnitLayout,
    /// Says what is wrong with it.
    pub fault: Fault<'a>,
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

impl RunMemory {
    /// What was read last, which begins with kernel chunk `first` of a unit of these sizes; and the memory for its check.
    pub fn run(&mut self, first: u64, layout: &UnitLayout) -> (ChunkRun<'_>, &mut CheckBuffers) {
        let run = ChunkRun {
            first_chunk: first,
            unit_weights: layout.weights,
            unit_bytes: layout.encoded_exponent_bytes,
            encoded_exponent: &self.encoded_exponent,
            gaps: &self.gaps,
            output_positions: &self.output_positions,
            sign_mantissa: &self.sign_mantissa,
        };
        (run, &mut self.check)
    }
}

impl UnitBytes<'_> {
    /// The `luts` tensor.
    ///
    /// # Errors
    /// The unit's fault where it is too large; those of the file.
    pub fn luts<'m>(&self, memory: &'m mut [u8; MAX_LUT_ROWS * 256]) -> Result<&'m [u8]> {
        let luts = memory
            .get_mut(..self.layout.lut_rows as usize * 256)
            .ok_or_else(|| (self.fault)("its luts are too large"))?;
        (self.read)(luts, self.place.luts)?;
        Ok(luts)
    }

    /// The decode tables, in the memory of some other unit's where there is one.
    ///
    /// # Errors
    /// The unit's fault where they cannot be decoded with; those of the file.
    pub fn tables(&self, kernel: Kernel, spare: Option<DecodeTables>) -> Result<DecodeTables> {
        let mut luts = [0; MAX_LUT_ROWS * 256];
        let luts = self.luts(&mut luts)?;
        decode_tables(kernel, spare, luts)
            .map_err(|error| (self.fault)(&format!("its luts are wrong: {error}")))
    }

    /// Whether the file has these bytes at an offset.
    ///
    /// # Errors
    /// Those of the file.
    pub fn has(&self, bytes: &[u8], offset: u64, memory: &mut RunMemory) -> Result<bool> {
        let found = &mut memory.encoded_exponent;
        found.resize(bytes.len(), 0);
        (self.read)(found, offset)?;
        Ok(found == bytes)
    }

    /// First weights of kernel chunks `first..=end`; behind the last chunk, the number of weights.
    ///
    /// # Errors
    /// The unit's fault where they do not rise, leave the unit, or are further apart than any code allows; those of the file.
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
            return Err((self.fault)(&format!(
                "output_positions {first} to {end} are out of order"
            )));
        }
        Ok(range)
    }

    /// Reads all of kernel chunks `first..end` but their weights' halves. Returns the range of weights.
    ///
    /// # Errors
    /// As for [`Self::positions`].
    pub fn codes(&self, (first, end): (u64, u64), memory: &mut RunMemory) -> Result<(u64, u64)> {
        let range = self.positions(first, end, &mut memory.output_positions)?;
        let layout = self.layout;
        let stop = |unit: u64, more: u64, all: u64| (end * unit + more).min(all);
        let code_end = stop(CHUNK_BYTES, LOOKAHEAD, layout.encoded_exponent_bytes);
        self.fill(
            &mut memory.encoded_exponent,
            self.place.encoded_exponent,
            (first * CHUNK_BYTES, code_end),
        )?;
        let gaps_end = stop(GAP_BYTES_PER_CHUNK, 1, layout.gaps_bytes);
        self.fill(
            &mut memory.gaps,
            self.place.gaps,
            (first * GAP_BYTES_PER_CHUNK, gaps_end),
        )?;
        Ok(range)
    }

    /// Reads the sign and mantissa bytes of weights `from..to`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn sign_mantissa(&self, range: (u64, u64), memory: &mut RunMemory) -> Result<()> {
        self.fill(&mut memory.sign_mantissa, self.place.sign_mantissa, range)
    }

    /// Reads kernel chunks `first..end` and decodes them into `weights`; every gap and position is compared with what the codes say.
    /// Returns the range of weights.
    ///
    /// # Errors
    /// As for [`Self::positions`].
    pub fn decode(
        &self,
        tables: &DecodeTables,
        (first, end): (u64, u64),
        memory: &mut RunMemory,
        weights: &mut Vec<u8>,
    ) -> Result<(u64, u64)> {
        let range = self.codes((first, end), memory)?;
        self.sign_mantissa(range, memory)?;
        weights.resize((range.1 - range.0) as usize * 2, 0);
        let (chunks, check) = memory.run(first, self.layout);
        let decoded = tables.decode_chunks(&chunks, weights);
        let checked = decoded.and_then(|()| tables.check_chunks_with(&chunks, weights, check));
        checked.map_err(|mismatch| (self.fault)(&sentence(&mismatch)))?;
        Ok(range)
    }

    fn fill(&self, buffer: &mut Vec<u8>, offset: u64, (start, end): (u64, u64)) -> Result<()> {
        buffer.resize((end - start) as usize, 0);
        (self.read)(buffer, offset + start)
    }
}

/// The decode tables of a `luts` tensor, in the memory of some other unit's where there is one.
///
/// # Errors
/// What keeps it from being decoded with.
pub fn decode_tables(
    kernel: Kernel,
    spare: Option<DecodeTables>,
    luts: &[u8],
) -> std::result::Result<DecodeTables, LutError> {
    match spare {
        Some(mut tables) => tables.read(luts).map(|()| tables),
        None => DecodeTables::with_kernel(kernel, luts),
    }
}

/// A mismatch as a sentence.
pub fn sentence(mismatch: &Mismatch) -> String {
    let at = mismatch.index;
    match mismatch.kind {
        MismatchKind::Weight { expected, found } => {
            format!("the file decodes to {found:#06x}, the source has {expected:#06x}")
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
    }
}
