//! A unit of which something is still to be done.

use std::sync::Arc;

use super::{
    unit::ActiveUnit,
    unit_stream::UnitStream,
    verify::{Due, Verification},
    writer::Front,
};
use crate::report::UnitReport;

/// What is known of its pieces and checks.
pub struct Open {
    /// The unit.
    pub unit: Arc<ActiveUnit>,
    /// Its pieces, put in order.
    pub stream: UnitStream,
    /// Pieces that were handed out and are not written.
    pub pieces: usize,
    /// Checks under way.
    pub checks: usize,
    /// How far it can be read back.
    front: Front,
    /// What of it can be checked.
    pub verification: Verification,
    /// There once all pieces are handed out.
    pub ended: Option<UnitReport>,
}

impl Open {
    /// A unit that begins.
    pub fn new(unit: Arc<ActiveUnit>, verification: Verification) -> Self {
        Self {
            stream: UnitStream::new(&unit.place),
            unit,
            pieces: 0,
            checks: 0,
            front: Front::default(),
            verification,
            ended: None,
        }
    }

    /// Told that a piece is written, and how far the unit can be read back, where that has changed.
    pub fn written(&mut self, piece: usize, front: Option<Front>) {
        self.pieces -= 1;
        self.front = front.unwrap_or(self.front);
        self.verification.written(piece, self.front);
    }

    /// The next check, which is under way then.
    pub fn next_check(&mut self) -> Option<Due> {
        let due = self.verification.next(self.front)?;
        self.checks += 1;
        Some(due)
    }

    /// Whether nothing is left to encode, write or check.
    pub fn is_done(&self) -> bool {
        let is_checked = self.checks == 0 && self.verification.unchecked().len() == 0;
        self.ended.is_some() && self.pieces == 0 && is_checked
    }
}
