//! Which kernel chunks of a unit can be checked, as it is written span by span.

use std::{mem, sync::Arc};

use df11_codec::limits::CHUNK_BITS;

use super::{span::Span, writer::Front};
use crate::stored::unit_bytes::CHUNKS_PER_RUN;

/// Kernel chunks that are written and not yet checked, and the weights to compare them with.
pub struct Due {
    /// The first kernel chunk.
    pub first: u64,
    /// The one behind the last.
    pub end: u64,
    /// The weights.
    pub weights: Weights,
    /// Index in the unit of the first of these.
    pub start: u64,
}

/// Weights of the source that are still in memory.
pub enum Weights {
    /// Those of a span.
    Span(Arc<Span>),
    /// Those of a kernel chunk that straddles two spans.
    Carry(Vec<u8>),
}

impl Weights {
    /// BF16, little-endian.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Span(span) => span.bytes(),
            Self::Carry(bytes) => bytes,
        }
    }
}

/// The progress of one unit's verification.
#[derive(Default)]
pub struct Verification {
    checked: u64,
    /// Weights of the first unchecked kernel chunk that earlier spans held, and the index of the first.
    carry: Vec<u8>,
    carry_start: u64,
    /// Memory for the next carry.
    spare: Option<Vec<u8>>,
}

impl Verification {
    /// Begins a unit.
    pub fn begin(&mut self) {
        self.checked = 0;
        self.carry.clear();
    }

    /// Takes memory back.
    pub fn take(&mut self, carry: Vec<u8>) {
        self.spare = Some(carry);
    }

    /// The next run of chunks to check while `span`, the weights from `start` on, is in memory. Fewer than [`CHUNKS_PER_RUN`] only where
    /// there are no more to come in this span.
    pub fn next(
        &mut self,
        span: &Arc<Span>,
        start: u64,
        front: Front,
        is_all: bool,
    ) -> Option<Due> {
        // A source that changed between its passes can make the stream fall behind what was checked.
        let ready = front.chunks.saturating_sub(self.checked);
        let straddles = !self.carry.is_empty();
        let chunks = match ready {
            0 => return None,
            _ if straddles => 1,
            CHUNKS_PER_RUN.. => CHUNKS_PER_RUN,
            _ if is_all => ready,
            _ => return None,
        };
        let first = self.checked;
        self.checked += chunks;
        let (weights, start) = if straddles {
            // Behind the straddling chunk everything lies in this span; a chunk has at most 32,768 weights.
            let head = span.bytes().len().min(CHUNK_BITS as usize * 2);
            let mut carry = mem::replace(&mut self.carry, self.spare.take().unwrap_or_default());
            self.carry.clear();
            carry.extend_from_slice(&span.bytes()[..head]);
            (Weights::Carry(carry), self.carry_start)
        } else {
            (Weights::Span(Arc::clone(span)), start)
        };
        Some(Due {
            first,
            end: self.checked,
            weights,
            start,
        })
    }

    /// Keeps what the next span's first chunk needs of this one.
    pub fn end_span(&mut self, span: &Span, start: u64, front: Front) {
        if self.carry.is_empty() {
            self.carry_start = front.weight;
        }
        let fresh = (self.carry_start.max(start) - start) as usize * 2;
        let bytes = span.bytes();
        // No more than a kernel chunk has: a source that changed between its passes may never come to the end of one.
        let room = (CHUNK_BITS as usize * 2).saturating_sub(self.carry.len());
        let rest = &bytes[fresh.min(bytes.len())..];
        self.carry.extend_from_slice(&rest[..room.min(rest.len())]);
    }
}
