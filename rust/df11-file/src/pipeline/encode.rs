//! The encoding pass over a unit: pieces in parallel, each written where the survey says; borders and hashes in order.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
};

use df11_codec::{BitRun, EncodedPiece, Kernel, encode_piece};
use rayon::ThreadPool;
use xxhash_rust::xxh3::xxh3_64;

use super::survey::SurveyedUnit;
use crate::{
    budget::PIECE_WEIGHTS,
    error::{Code, Error, Result},
    output::{PartialFile, TensorStream, UnitPlace},
    progress::Progress,
};

/// Hashes of a unit's six tensors, in the order of their names.
pub type UnitHashes = [u64; 6];

/// A unit being written.
pub struct UnitWriter<'a> {
    file: &'a PartialFile,
    progress: &'a Progress,
    unit: &'a SurveyedUnit,
    place: UnitPlace,
    hashes: UnitHashes,
    encoded_exponent: TensorStream,
    gaps: TensorStream,
    output_positions: TensorStream,
    sign_mantissa: TensorStream,
    next_piece: usize,
    /// Bits and first weight behind the last whole kernel chunk so far.
    front: Front,
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
    /// Begins a surveyed unit at its place: writes `luts` and `split_positions`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn new(
        file: &'a PartialFile,
        progress: &'a Progress,
        unit: &'a SurveyedUnit,
        place: UnitPlace,
        split_positions: &[u8],
    ) -> Result<Self> {
        let luts = unit.code.luts();
        file.write(luts, place.luts)?;
        file.write(split_positions, place.split_positions)?;
        progress.add_out((luts.len() + split_positions.len()) as u64);
        Ok(Self {
            hashes: [0, 0, xxh3_64(luts), 0, 0, xxh3_64(split_positions)],
            file,
            progress,
            unit,
            place,
            encoded_exponent: TensorStream::new(place.encoded_exponent),
            gaps: TensorStream::new(place.gaps),
            output_positions: TensorStream::new(place.output_positions),
            sign_mantissa: TensorStream::new(place.sign_mantissa),
            next_piece: 0,
            front: Front::default(),
        })
    }

    /// Encodes and writes the next span, whole pieces but for the unit's end, and tells how far the stream is complete.
    ///
    /// # Errors
    /// `E_CANCELLED`, or those of the file.
    pub fn span(
        &mut self,
        pool: &ThreadPool,
        kernel: Kernel,
        buffers: &mut Vec<EncodedPiece>,
        weights: &[u8],
    ) -> Result<Front> {
        let pieces: Vec<_> = weights.chunks(PIECE_WEIGHTS as usize * 2).collect();
        let (file, unit, place) = (self.file, self.unit, self.place);
        pool.in_place_scope(|scope| {
            let (done, results) = mpsc::channel();
            let mut waiting = BTreeMap::new();
            let mut sent = 0;
            let mut taken = 0;
            while taken < pieces.len() {
                self.progress.check_cancelled()?;
                // A piece gets its buffer before it starts and in order, so the oldest one can always finish.
                while let Some(buffer) = (sent < pieces.len()).then(|| buffers.pop()).flatten() {
                    let (piece, start, done) = (
                        pieces[sent],
                        unit.starts[self.next_piece + sent],
                        done.clone(),
                    );
                    let index = sent;
                    scope.spawn(move |_| {
                        let mut buffer = buffer;
                        // A fault in here must not keep the receiver waiting.
                        let written = catch_unwind(AssertUnwindSafe(|| {
                            encode_piece(kernel, &unit.code, piece, start, &mut buffer);
                            write_interiors(file, place, &buffer, start.weight)
                        }));
                        let fault = |_| Err(Error::new(Code::Internal, "a worker thread stopped"));
                        let written = written.unwrap_or_else(fault);
                        // The receiver is gone only where another piece failed.
                        let _ = done.send((index, written, buffer));
                    });
                    sent += 1;
                }
                let (index, written, buffer) = results
                    .recv()
                    .map_err(|_| Error::new(Code::Internal, "a worker thread stopped"))?;
                written?;
                waiting.insert(index, buffer);
                while let Some(buffer) = waiting.remove(&taken) {
                    self.append(&buffer)?;
                    buffers.push(buffer);
                    taken += 1;
                }
            }
            Ok(())
        })?;
        // The last codes of a complete kernel chunk may reach into a byte that the next span finishes.
        self.encoded_exponent.flush(file)?;
        self.gaps.flush(file)?;
        self.next_piece += pieces.len();
        if self.next_piece == self.unit.starts.len() {
            let layout = self.unit.code.layout();
            self.front = Front {
                chunks: layout.chunks,
                weight: layout.weights,
            };
        }
        Ok(self.front)
    }

    /// Takes the next piece in order.
    fn append(&mut self, piece: &EncodedPiece) -> Result<()> {
        let bits = &piece.encoded_exponent;
        self.encoded_exponent.append(self.file, bits)?;
        self.gaps.append(self.file, &piece.gaps)?;
        self.output_positions.append_bytes(&piece.output_positions);
        self.sign_mantissa.append_bytes(&piece.sign_mantissa);
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

    /// Ends the unit and gives the hashes.
    ///
    /// # Errors
    /// Those of the file; `E_INTERNAL` where a size is not the announced one.
    pub fn finish(self) -> Result<UnitHashes> {
        let layout = self.unit.code.layout();
        let mut hashes = self.hashes;
        let streams = [
            (0, self.encoded_exponent, layout.encoded_exponent_bytes),
            (1, self.gaps, layout.gaps_bytes),
            (3, self.output_positions, layout.position_entries * 4),
            (4, self.sign_mantissa, layout.weights),
        ];
        for (field, stream, announced) in streams {
            let (bytes, hash) = stream.finish(self.file)?;
            if bytes != announced {
                let message =
                    format!("field {field} has {bytes} bytes, {announced} were announced");
                return Err(Error::new(Code::Internal, message));
            }
            hashes[field] = hash;
        }
        Ok(hashes)
    }
}

fn write_interiors(
    file: &PartialFile,
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

/// Finds out how many weights the fullest kernel chunk of a unit holds, from its pieces in order.
#[derive(Default)]
pub struct OverfillProbe {
    buffer: EncodedPiece,
    last_position: u64,
    most: u64,
}

impl OverfillProbe {
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
