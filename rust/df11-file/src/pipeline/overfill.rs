//! Whether a near-constant unit needs the two-bit code: only encoding shows how full its kernel chunks get.

use df11_codec::{EncodedPiece, Kernel, encode_piece};

use super::survey::SurveyedUnit;

/// Finds out how many weights the fullest kernel chunk of a unit holds, from its pieces in order.
#[derive(Default)]
pub struct OverfillProbe {
    buffer: EncodedPiece,
    last_position: u64,
    most: u64,
}

impl OverfillProbe {
    /// Begins a unit.
    pub fn begin(&mut self) {
        (self.last_position, self.most) = (0, 0);
    }

    /// Encodes one piece for its positions alone.
    pub fn piece(&mut self, kernel: Kernel, unit: &SurveyedUnit, piece: usize, weights: &[u8]) {
        encode_piece(
            kernel,
            &unit.code,
            weights,
            unit.starts[piece],
            &mut self.buffer,
        );
        for entry in self.buffer.output_positions.chunks_exact(4) {
            let position = entry
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte));
            self.most = self.most.max(position - self.last_position);
            self.last_position = position;
        }
    }

    /// The most weights in one kernel chunk.
    pub fn most_weights(&self) -> u64 {
        self.most
    }
}
