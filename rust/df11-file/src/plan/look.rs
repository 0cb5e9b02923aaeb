//! Whether rounding would change weights that are refused because of their dtype. The header cannot tell, so some of them are read.

use safetensors::Dtype;

use crate::{changes::Changes, convert::Conversion, source::Source};

/// Most bytes that are read, over all tensors: a part of a second, a few of them on a slow disk.
const MOST_BYTES: u64 = 64 << 20;
/// Least bytes of each tensor.
const LEAST_BYTES: u64 = 4096;
/// Bytes of one read.
const READ_BYTES: u64 = 1 << 20;

/// A sentence on what rounding these tensors to BF16 would do, from the first values of each. None where they cannot be read.
pub fn look(source: &Source, tensors: &[usize]) -> Option<String> {
    let all = &source.header().tensors;
    let share = (MOST_BYTES / tensors.len().max(1) as u64 / 8 * 8).max(LEAST_BYTES);
    let (mut seen, mut bytes, mut of) = (Changes::default(), 0, 0);
    let (mut input, mut output) = (Vec::new(), Vec::new());
    for tensor in tensors.iter().map(|&tensor| &all[tensor]) {
        let conversion = Conversion::between(tensor.dtype, Dtype::BF16)?;
        of += tensor.bytes();
        let end = tensor.start + tensor.bytes().min(share);
        let mut at = tensor.start;
        // One change is enough to know; the tensors behind it are only counted.
        while at < end && seen.changed == 0 && bytes < MOST_BYTES {
            input.resize(READ_BYTES.min(end - at) as usize, 0);
            source.read(&mut input, at).ok()?;
            output.resize(conversion.converted_bytes(input.len() as u64) as usize, 0);
            seen.add(&conversion.apply(&input, &mut output));
            at += input.len() as u64;
            bytes += input.len() as u64;
        }
    }
    let values = seen.values;
    Some(match seen.changed {
        0 if values == 0 => return None,
        0 if bytes == of => {
            format!("All {values} values of such tensors are exact in BF16: to-bf16 loses nothing.")
        }
        0 => format!(
            "The {values} values of such tensors that were looked at are exact in BF16, so to-bf16 may lose nothing; its report tells."
        ),
        changed => {
            format!(
                "Of the first {values} values that were looked at, to-bf16 would change {changed}."
            )
        }
    })
}
