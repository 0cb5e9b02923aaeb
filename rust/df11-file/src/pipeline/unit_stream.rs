//! A unit whose pieces are encoded in parallel, put together in order.

use df11_codec::EncodedPiece;

use super::unit::ActiveUnit;
use crate::{
    hash::xxh3_64,
    output::{Region, TensorStream, UnitPlace},
};

/// The pieces of a unit, in order.
pub struct UnitStream {
    encoded_exponent: TensorStream,
    gaps: TensorStream,
    output_positions: TensorStream,
    sign_mantissa: TensorStream,
    appended: usize,
}

impl UnitStream {
    /// Begins a unit that lies there.
    pub fn new(place: &UnitPlace) -> Self {
        Self {
            encoded_exponent: TensorStream::new(place.encoded_exponent),
            gaps: TensorStream::new(place.gaps),
            output_positions: TensorStream::new(place.output_positions),
            sign_mantissa: TensorStream::new(place.sign_mantissa),
            appended: 0,
        }
    }

    /// Pieces so far; the next one's index.
    pub fn appended(&self) -> usize {
        self.appended
    }

    /// Takes the next piece in order. Then its bytes are those of the file, but for bits that the one behind it may add to the last.
    pub fn append(&mut self, piece: &mut EncodedPiece) {
        self.encoded_exponent.append(&mut piece.encoded_exponent);
        self.gaps.append(&mut piece.gaps);
        self.output_positions.append_bytes(&piece.output_positions);
        self.sign_mantissa.append_bytes(&piece.sign_mantissa);
        self.appended += 1;
    }

    /// Ends the unit: its tensors, in the order of their names.
    pub fn finish(self, unit: &ActiveUnit) -> [Region; 6] {
        let region = |(bytes, offset): (&[u8], u64)| Region {
            offset,
            bytes: bytes.len() as u64,
            hash: xxh3_64(bytes),
        };
        let [luts, split_positions] = unit.small_tensors().map(region);
        [
            self.encoded_exponent.finish(),
            self.gaps.finish(),
            luts,
            self.output_positions.finish(),
            self.sign_mantissa.finish(),
            split_positions,
        ]
    }
}
