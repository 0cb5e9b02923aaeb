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
    fn weights(&self) -> u64 {
        self.span.bytes().len() as u64 / 2
    }

    /// Index in the unit of the weight behind the last.
    fn end(&self) -> u64 {
        self.start + self.weights()
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
    /// Lets go of a unit.
    pub fn clear(&mut self) {
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

    /// Weights of each span of which some is not handed out yet.
    pub fn unchecked(&self) -> impl ExactSizeIterator<Item = u64> {
        self.spans.iter().map(|span| span.part.weights())
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
            let end = span.front?.weight;
            let part = self.spans.pop_front()?.part;
            self.before = (end < part.end()).then_some(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;
    use proptest::prelude::*;

    use super::*;
    use crate::pipeline::span::SpanMemory;

    /// A span of weights whose bytes nobody looks at.
    fn span(weights: u64) -> Arc<Span> {
        let mut memory = SpanMemory::default();
        memory.bytes.resize(weights as usize * 2).unwrap();
        Arc::new(Span::new(memory, bounded(1).0))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

        /// However long codes are, and wherever spans and pieces end: each kernel chunk comes once, in order, with all its weights.
        #[test]
        fn every_kernel_chunk_once_with_its_weights(
            bits in prop::collection::vec(1_u64..=32, 1..4),
            longer in prop_oneof![Just(0), 0..80_000_u64],
            spans in 1_u64..5,
            last in prop_oneof![1_u64..40, 1..CHUNK_BITS],
            cut in 0.0..1.0_f64,
            ahead in 0_usize..2,
        ) {
            // Code lengths change every 10,000 weights.
            let length = |weight: u64| bits[(weight / 10_000) as usize % bits.len()];
            let full = CHUNK_BITS + longer;
            let weights = spans * full + last;
            // The first weight of each kernel chunk; then the end.
            let (mut starts, mut bit) = (vec![0], 0);
            for weight in 0..weights {
                bit += length(weight);
                if bit / CHUNK_BITS == starts.len() as u64 && weight + 1 < weights {
                    starts.push(weight + 1);
                }
            }
            let chunks = starts.len() as u64;
            starts.push(weights);
            let front = |written: u64| {
                let known = if written == weights { chunks } else { starts.partition_point(|&start| start <= written) as u64 - 1 };
                Front { chunks: known, weight: starts[known as usize] }
            };

            let mut verification = Verification::default();
            let (mut next, mut border) = (0, Vec::new());
            let mut take = |verification: &mut Verification, front: Front| {
                while let Some(due) = verification.next(front) {
                    let (bytes, start) = due.weights.bytes(&mut border);
                    let end = start + bytes.len() as u64 / 2;
                    assert_eq!(due.first, next);
                    assert!(start <= starts[due.first as usize] && starts[due.end as usize] <= end);
                    next = due.end;
                }
                next
            };
            // Two pieces a span. Spans are handed out before the last one is written, or after.
            let sizes: Vec<u64> = (0..spans).map(|_| full).chain([last]).collect();
            let mut added = 0;
            let mut at = 0;
            for (index, size) in sizes.iter().enumerate() {
                while added <= (index + ahead).min(sizes.len() - 1) {
                    verification.add(&span(sizes[added]), added as u64 * full, 2 * added + 1);
                    added += 1;
                }
                let middle = front(at + ((size - 1) as f64 * cut) as u64);
                verification.written(2 * index, middle);
                take(&mut verification, middle);
                at += size;
                verification.written(2 * index + 1, front(at));
                take(&mut verification, front(at));
            }
            prop_assert_eq!(take(&mut verification, front(weights)), chunks);
            prop_assert_eq!(verification.unchecked().len(), 0);
        }
    }
}
