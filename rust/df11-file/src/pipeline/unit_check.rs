//! Decodes written bytes as the kernel does and compares them with the source that is still in memory.

use df11_codec::{DecodeTables, Mismatch, MismatchKind};

use super::survey::locate;
use crate::{
    error::{Code, Error, Result},
    plan::{Plan, UnitPlan},
    progress::Progress,
    stored::unit_bytes::{RunMemory, UnitBytes, sentence},
};

/// A unit of a DF11 file, to be compared with its weights.
#[derive(Clone, Copy)]
pub struct UnitCheck<'a> {
    /// The unit in the file.
    pub bytes: UnitBytes<'a>,
    /// Told what was checked.
    pub progress: &'a Progress,
    /// The unit, for messages.
    pub plan: &'a Plan,
    /// The unit, for messages.
    pub unit: &'a UnitPlan,
}

/// The error for bytes of a plan's result that are not what was to be written.
pub fn wrong_bytes(plan: &Plan, message: &str) -> Error {
    Error::new(Code::Verify, message).at_path(&plan.target).hint(
        "The disk or the memory of this machine may be failing: try again, on another disk if there is one.",
    )
}

impl UnitCheck<'_> {
    /// Checks kernel chunks `first..end` against `source`, the weights from `source_start` on.
    ///
    /// # Errors
    /// `E_VERIFY` at the first difference.
    pub fn run(
        &self,
        tables: &DecodeTables,
        (first, end): (u64, u64),
        (source, source_start): (&[u8], u64),
        memory: &mut RunMemory,
    ) -> Result<()> {
        self.progress.check_cancelled()?;
        let (from, to) = self.bytes.codes((first, end), memory)?;
        let range = |from: u64, to: u64| {
            (from.wrapping_sub(source_start).wrapping_mul(2) as usize)
                ..(to.wrapping_sub(source_start).wrapping_mul(2) as usize)
        };
        let expected = (from >= source_start)
            .then(|| source.get(range(from, to)))
            .flatten();
        let expected = expected.ok_or_else(|| {
            (self.bytes.fault)(&format!(
                "output_positions {first} to {end} lie outside the weights written"
            ))
        })?;
        self.bytes.sign_mantissa((from, to), memory)?;
        let (run, buffers) = memory.run(first, self.bytes.layout);
        let checked = tables.check_chunks_with(&run, expected, buffers);
        checked.map_err(|mismatch| self.mismatch(&mismatch))?;
        self.progress.add_stage((to - from) * 2);
        Ok(())
    }

    fn mismatch(&self, mismatch: &Mismatch) -> Error {
        let message = sentence(mismatch);
        match mismatch.kind {
            MismatchKind::Weight { .. } => {
                let error = wrong_bytes(self.plan, &message);
                locate(self.plan, self.unit, mismatch.index, error)
            }
            _ => (self.bytes.fault)(&message),
        }
    }
}
