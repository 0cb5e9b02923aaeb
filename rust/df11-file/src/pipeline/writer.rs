//! The thread that writes encoded pieces, in order. The system lets one thread at a time write into a file: several would wait for each
//! other, and meanwhile not encode.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use df11_codec::EncodedPiece;

use super::{
    crew::{Done, guarded},
    unit::ActiveUnit,
};
use crate::{
    error::Result,
    fault,
    output::{Output, flush::FlushRequests},
    progress::Progress,
};

/// A piece to write: its bytes are those of the file, but for bits that the next one may add to the last.
pub struct Finished {
    /// Its unit.
    pub unit: Arc<ActiveUnit>,
    /// Its index in the unit.
    pub index: usize,
    /// The piece.
    pub piece: EncodedPiece,
}

/// How far a unit can be read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// Kernel chunks that are complete.
    pub chunks: u64,
    /// The first weight behind them.
    pub weight: u64,
}

/// Writes what it is given until nobody can give it more.
pub fn run(
    (file, progress, flush): (&Output, &Progress, &FlushRequests<'_>),
    pieces: &Receiver<Finished>,
    done: &Sender<Done>,
) {
    for finished in pieces {
        let outcome = guarded(|| {
            fault::here("write");
            progress.check_cancelled()?;
            let written = progress.add_out(write(file, &finished)?);
            progress.add_stage(finished.piece.sign_mantissa.len() as u64 * 2);
            flush.written(written)?;
            Ok(front(&finished))
        });
        let (unit, piece) = (finished.unit.index, finished.index);
        // Whoever hears of the end finds the unit no longer shared with this thread.
        drop(finished.unit);
        let written = Done::Written {
            unit,
            piece,
            memory: finished.piece,
            outcome,
        };
        if done.send(written).is_err() {
            break;
        }
    }
}

/// Writes a piece, and with the first one what belongs to none. Returns how many bytes.
fn write(file: &Output, finished: &Finished) -> Result<u64> {
    let Finished { unit, index, piece } = finished;
    let (place, weight) = (unit.place, unit.surveyed.starts[*index].weight);
    let (bits, gaps) = (&piece.encoded_exponent, &piece.gaps);
    let first_byte = place.encoded_exponent + bits.first_bit / 8;
    let first_entry = place.output_positions + piece.first_position * 4;
    let parts: [(&[u8], u64); 4] = [
        (&bits.bytes, first_byte),
        (&gaps.bytes, place.gaps + gaps.first_bit / 8),
        (&piece.output_positions, first_entry),
        (&piece.sign_mantissa, place.sign_mantissa + weight),
    ];
    let small = unit.small_tensors();
    let small = if *index == 0 { &small[..] } else { &[] };
    let mut written = 0;
    for (bytes, offset) in small.iter().chain(&parts) {
        file.write(bytes, *offset)?;
        written += bytes.len() as u64;
    }
    Ok(written)
}

/// How far the unit goes with this piece; none where it ends in the kernel chunk in which it begins.
fn front(finished: &Finished) -> Option<Front> {
    let Finished { unit, index, piece } = finished;
    if index + 1 == unit.surveyed.starts.len() {
        let layout = unit.surveyed.code.layout();
        return Some(Front {
            chunks: layout.chunks,
            weight: layout.weights,
        });
    }
    let [.., a, b, c, d] = piece.output_positions[..] else {
        return None;
    };
    let entries = piece.first_position + piece.output_positions.len() as u64 / 4;
    Some(Front {
        chunks: entries - 1,
        weight: u64::from(u32::from_le_bytes([a, b, c, d])),
    })
}
