//! Whether tensors are those that the model takes them from, before one of two is left out.

use super::existing::COMPARE_BYTES;
use crate::{
    error::Result,
    plan::{Plan, not_tied},
    progress::Progress,
};

/// Compares each of a plan's tied tensors with the other.
///
/// # Errors
/// `E_TIED` with the first byte that differs; those of the source; `E_CANCELLED`.
pub fn check(plan: &Plan, progress: &Progress) -> Result<()> {
    let tensors = &plan.source.header().tensors;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for tied in &plan.tied {
        let (tensor, other) = (&tensors[tied.tensor], &tensors[tied.other]);
        let mut at = 0;
        while at < tensor.bytes() {
            progress.check_cancelled()?;
            let length = COMPARE_BYTES.min(tensor.bytes() - at) as usize;
            a.resize(length, 0);
            b.resize(length, 0);
            plan.source.read(&mut a, tensor.start + at)?;
            plan.source.read(&mut b, other.start + at)?;
            if a != b {
                let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count() as u64;
                let index = (at + same) * 8 / tensor.dtype.bitsize() as u64;
                return Err(not_tied(&tensor.name, &other.name)
                    .at_index(index)
                    .at_path(plan.source.path()));
            }
            at += length as u64;
        }
    }
    Ok(())
}
