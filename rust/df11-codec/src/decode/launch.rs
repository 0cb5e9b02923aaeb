//! What the kernel makes of a run, without a source to compare with.

use super::{
    ChunkRun, DecodeTables, Mismatch, MismatchKind,
    run::{Slices, WINDOWS},
    tables::MAX_WINDOW_CODES,
};
use crate::bf16;

impl DecodeTables {
    /// Decodes the run as the kernel does (each window from its gap, counts, prefix sum from `output_positions`) into `out`
    /// (little-endian BF16), without comparing anything. Bytes of `out` behind the run's weights are left alone.
    ///
    /// # Errors
    /// A [`Mismatch`] where the kernel would hang or leave its buffers.
    pub fn decode_chunks(&self, run: &ChunkRun<'_>, out: &mut [u8]) -> Result<(), Mismatch> {
        let slices = Slices::new(run)?;
        let first = slices.position(0).unwrap_or(run.unit_weights);
        for chunk in 0..slices.chunks {
            let start = slices.position(chunk).unwrap_or(run.unit_weights);
            let end = slices.position(chunk + 1).unwrap_or(run.unit_weights);
            // The kernel would clamp, and read or write beside its shared memory: no encoder's file does that.
            if end < start || end > run.unit_weights {
                let expected = if end < start { start } else { run.unit_weights };
                let kind = MismatchKind::Position {
                    expected,
                    found: end,
                };
                return Err(Mismatch::new(kind, slices.chunk_index(chunk + 1)));
            }
            let (from, to) = ((start - first) as usize, (end - first) as usize);
            let (Some(sm), Some(out)) = (
                run.sign_mantissa.get(from..to),
                out.get_mut(2 * from..2 * to),
            ) else {
                return Err(Mismatch::new(
                    MismatchKind::Truncated,
                    slices.chunk_index(chunk),
                ));
            };
            let decoded = self.decode_chunk(&slices, chunk, sm, out)?;
            // Codes behind the unit's last weight are padding. Everywhere else a chunk holds what its positions say.
            let found = start + decoded as u64;
            if found < end || (found > end && end < run.unit_weights) {
                let kind = MismatchKind::Position {
                    expected: found,
                    found: end,
                };
                return Err(Mismatch::new(kind, slices.chunk_index(chunk + 1)));
            }
        }
        Ok(())
    }

    /// Writes a chunk's weights as far as `out` has room for them; returns how many codes start in it.
    fn decode_chunk(
        &self,
        slices: &Slices<'_>,
        chunk: usize,
        sm: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Mismatch> {
        let mut exponents = [0; MAX_WINDOW_CODES];
        let mut decoded = 0;
        for window in chunk * WINDOWS..(chunk + 1) * WINDOWS {
            let Some((count, _)) =
                self.walk(slices.window(window), slices.gap(window), &mut exponents)
            else {
                return Err(Mismatch::new(
                    MismatchKind::Hang,
                    slices.window_index(window),
                ));
            };
            let from = decoded.min(sm.len());
            for ((out, &sm), &exponent) in out[2 * from..]
                .chunks_exact_mut(2)
                .zip(&sm[from..])
                .zip(&exponents[..count])
            {
                out.copy_from_slice(&bf16::join(exponent, sm).to_le_bytes());
            }
            decoded += count;
        }
        Ok(decoded)
    }
}
