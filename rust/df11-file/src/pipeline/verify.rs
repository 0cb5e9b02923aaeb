//! Which kernel chunks of a unit can be checked, as it is written span by span.

use std::{collections::VecDeque, sync::Arc};

use df11_codec::limits::CHUNK_BITS;

use super::{span::Span, writer::Front};
use crate::stored::unit_bytes::CHUNKS_PER_RUN;

/// Most bytes of weights that one kernel chunk has: its codes have a bit at least.
const CHUNK_WEIGHT_BYTES: usize = CHUNK_BITS as usize * 2;
/// Bytes in which two parts of a kernel chunk are put together.
pub const BORDER_BYTES: usize = 2 * CHUNK_WEIGHT_BYTES;

/// Kernel chunks that are written and not yet checked, and the weights to compare them with.
pub struct Due {
    /// The first kernel chunk.
    pub first: u64,
    /// The one behind the last.
    pub end: u64,
    /// The weights.
    pub weights: Weights,
}

/// Weights of the source that are still in memory.
pub enum Weights {
    /// Those of a span.
    Span(Part),
    /// Those of a kernel chunk that straddles two spans.
    Border(Part, Part),
}

/// Consecutive weights of a unit.
#[derive(Clone)]
pub struct Part {
    /// What holds them.
    span: Arc<Span>,
    /// Index in the unit of the first.
    start: u64,
}

impl Part {
    /// Index in the unit of the weight behind the last.
    fn end(&self) -> u64 {
        self.start + self.span.bytes().len() as u64 / 2
    }
}

impl Weights {
    /// BF16, little-endian, and the index in the unit of the first; `border` is memory to put two parts together.
    pub fn bytes<'a>(&'a self, border: &'a mut Vec<u8>) -> (&'a [u8], u64) {
        match self {
            Self::Span(part) => (part.span.bytes(), part.start),
            Self::Border(part, next) => {
                let (before, behind) = (part.span.bytes(), next.span.bytes());
                let tail = before.len().min(CHUNK_WEIGHT_BYTES);
                border.clear();
                border.extend_from_slice(&before[before.len() - tail..]);
                border.extend_from_slice(&behind[..behind.len().min(CHUNK_WEIGHT_BYTES)]);
                (border, part.end() - tail as u64 / 2)
            }
        }
    }
}

/// The progress of one unit's verification.
#[derive(Default)]
pub struct Verification {
    /// Spans whose kernel chunks are not all handed out.
    spans: VecDeque<Encoded>,
    /// The span before these, where a kernel chunk begins in it that goes on in the first of them.
    before: Option<Part>,
    /// Kernel chunks that were handed out.
    checked: u64,
}

/// A span that is being encoded and written.
struct Encoded {
    part: Part,
    /// Index in the unit of its last piece.
    last_piece: usize,
    /// How far the unit went with that piece, once it is written.
    front: Option<Front>,
}

impl Verification {
    /// Begins a unit.
    pub fn begin(&mut self) {
        self.spans.clear();
        self.before = None;
        self.checked = 0;
    }

    /// Takes the unit's next span, the weights from `start` on, which ends with piece `last_piece`.
    pub fn add(&mut self, span: &Arc<Span>, start: u64, last_piece: usize) {
        let part = Part {
            span: Arc::clone(span),
            start,
        };
        self.spans.push_back(Encoded {
            part,
            last_piece,
            front: None,
        });
    }

    /// Told that a piece is written, with which the unit goes as far as `front`.
    pub fn written(&mut self, piece: usize, front: Front) {
        let ended = self.spans.iter_mut().find(|span| span.last_piece == piece);
        if let Some(span) = ended {
            span.front = Some(front);
        }
    }

    /// Spans of which some is not handed out yet.
    pub fn spans(&self) -> usize {
        self.spans.len()
    }

    /// The next run of chunks to check where the unit goes as far as `front`. Fewer than [`CHUNKS_PER_RUN`] only where no more come in a span.
    pub fn next(&mut self, front: Front) -> Option<Due> {
        loop {
            let span = self.spans.front()?;
            let reached = span.front.unwrap_or(front);
            // A source that changed between its passes can make the stream fall behind what was checked.
            let ready = reached.chunks.saturating_sub(self.checked);
            let chunks = match ready {
                0 => 0,
                _ if self.before.is_some() => 1,
                CHUNKS_PER_RUN.. => CHUNKS_PER_RUN,
                _ if span.front.is_some() => ready,
                _ => 0,
            };
            if chunks > 0 {
                let (first, part) = (self.checked, span.part.clone());
                self.checked += chunks;
                return Some(Due {
                    first,
                    end: self.checked,
                    weights: match self.before.take() {
                        Some(before) => Weights::Border(before, part),
                        None => Weights::Span(part),
                    },
                });
            }
            let front = span.front?;
            let part = self.spans.pop_front()?.part;
            self.before = (front.weight < part.end()).then_some(part);
        }
    }
}
