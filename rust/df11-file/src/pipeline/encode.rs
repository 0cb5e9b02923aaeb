//! The encoding pass over a unit: pieces in parallel, each written where the survey says; borders and hashes in order.

use std::sync::Arc;

use df11_codec::{BitRun, EncodedPiece, Kernel, encode_piece};
use xxhash_rust::xxh3::xxh3_64;

use super::{survey::SurveyedUnit, unit::ActiveUnit};
use crate::{
    error::Result,
    output::{Output, Region, TensorStream, UnitPlace},
    progress::Progress,
};

/// The ordered side of a unit being written.
pub struct UnitWriter<'a> {
    file: &'a Output,
    progress: &'a Progress,
    unit: Arc<ActiveUnit>,
    tables: Tables,
    encoded_exponent: TensorStream,
    gaps: TensorStream,
    output_positions: TensorStream,
    sign_mantissa: TensorStream,
    appended: usize,
    /// As far as the pieces go.
    front: Front,
    /// As far as the pieces before the last one go, whose last bytes are written too.
    settled: Front,
}

/// How far a unit's stream has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// Kernel chunks that are complete.
    pub chunks: u64,
    /// The first weight behind them.
    pub weight: u64,
}

impl<'a> UnitWriter<'a> {
    /// Begins a unit whose tables are written.
    pub fn new(
        file: &'a Output,
        progress: &'a Progress,
        unit: Arc<ActiveUnit>,
        tables: Tables,
    ) -> Self {
        let place = unit.place;
        Self {
            file,
            progress,
            unit,
            tables,
            encoded_exponent: TensorStream::new(place.encoded_exponent),
            gaps: TensorStream::new(place.gaps),
            output_positions: TensorStream::new(place.output_positions),
            sign_mantissa: TensorStream::new(place.sign_mantissa),
            appended: 0,
            front: Front::default(),
            settled: Front::default(),
        }
    }

    /// The unit.
    pub fn unit(&self) -> &Arc<ActiveUnit> {
        &self.unit
    }

    /// Pieces so far; the next one's index.
    pub fn appended(&self) -> usize {
        self.appended
    }

    /// How far the file can be read back while a span is being encoded.
    pub fn settled(&self) -> Front {
        self.settled
    }

    /// Takes the next piece in order, whose own bytes were written.
    ///
    /// # Errors
    /// Those of the file.
    pub fn append(&mut self, piece: &EncodedPiece) -> Result<()> {
        let bits = &piece.encoded_exponent;
        self.encoded_exponent.append(self.file, bits)?;
        self.gaps.append(self.file, &piece.gaps)?;
        self.output_positions.append_bytes(&piece.output_positions);
        self.sign_mantissa.append_bytes(&piece.sign_mantissa);
        self.appended += 1;
        self.settled = self.front;
        if let [.., a, b, c, d] = piece.output_positions[..] {
            let entries = piece.first_position + piece.output_positions.len() as u64 / 4;
            self.front = Front {
                chunks: entries - 1,
                weight: u64::from(u32::from_le_bytes([a, b, c, d])),
            };
        }
        let bytes = bits.bytes.len()
            + piece.gaps.bytes.len()
            + piece.output_positions.len()
            + piece.sign_mantissa.len();
        self.progress.add_out(bytes as u64);
        self.progress
            .add_stage(piece.sign_mantissa.len() as u64 * 2);
        Ok(())
    }

    /// Ends a span: writes what the next one may still add bits to, and tells how far the file can be read back.
    ///
    /// # Errors
    /// Those of the file.
    pub fn end_span(&mut self) -> Result<Front> {
        self.encoded_exponent.flush(self.file)?;
        self.gaps.flush(self.file)?;
        if self.appended == self.unit.surveyed.starts.len() {
            let layout = self.unit.surveyed.code.layout();
            self.front = Front {
                chunks: layout.chunks,
                weight: layout.weights,
            };
        }
        Ok(self.front)
    }

    /// Ends the unit: its tensors, in the order of their names.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(self) -> Result<[Region; 6]> {
        Ok([
            self.encoded_exponent.finish(self.file)?,
            self.gaps.finish(self.file)?,
            self.tables.luts,
            self.output_positions.finish(self.file)?,
            self.sign_mantissa.finish(self.file)?,
            self.tables.split_positions,
        ])
    }
}

/// A unit's tensors that do not depend on its pieces.
#[derive(Clone, Copy)]
pub struct Tables {
    luts: Region,
    split_positions: Region,
}

/// Writes them.
///
/// # Errors
/// Those of the file.
pub fn write_tables(
    file: &Output,
    progress: &Progress,
    luts: &[u8],
    split_positions: &[u8],
    place: UnitPlace,
) -> Result<Tables> {
    let write = |bytes: &[u8], offset: u64| {
        file.write(bytes, offset)?;
        progress.add_out(bytes.len() as u64);
        Ok(Region {
            offset,
            bytes: bytes.len() as u64,
            hash: xxh3_64(bytes),
        })
    };
    Ok(Tables {
        luts: write(luts, place.luts)?,
        split_positions: write(split_positions, place.split_positions)?,
    })
}

/// Encodes a piece and writes those of its bytes that no neighbour shares.
///
/// # Errors
/// Those of the file.
pub fn encode_and_write(
    file: &Output,
    kernel: Kernel,
    unit: &ActiveUnit,
    index: usize,
    weights: &[u8],
    piece: &mut EncodedPiece,
) -> Result<()> {
    let SurveyedUnit { code, starts } = &unit.surveyed;
    encode_piece(kernel, code, weights, starts[index], piece);
    write_interiors(file, unit.place, piece, starts[index].weight)
}

fn write_interiors(
    file: &Output,
    place: UnitPlace,
    piece: &EncodedPiece,
    first_weight: u64,
) -> Result<()> {
    let run = |offset: u64, run: &BitRun| TensorStream::write_interior(file, offset, run);
    run(place.encoded_exponent, &piece.encoded_exponent)?;
    run(place.gaps, &piece.gaps)?;
    file.write(
        &piece.output_positions,
        place.output_positions + piece.first_position * 4,
    )?;
    file.write(&piece.sign_mantissa, place.sign_mantissa + first_weight)
}
