//! Verification of a unit while it is written.

use df11_codec::{DecodeTables, limits::CHUNK_BITS};

use super::{encode::Front, unit_check::UnitCheck};
use crate::error::Result;

/// Verification of a unit span by span. A kernel chunk that straddles two spans is checked with the second.
pub struct Verification<'a> {
    check: UnitCheck<'a>,
    tables: DecodeTables,
    checked: u64,
    /// Weights of the first unchecked kernel chunk that earlier spans held.
    carry: Vec<u8>,
    carry_start: u64,
}

impl<'a> Verification<'a> {
    /// Reads the decode tables of a unit that is about to be written.
    ///
    /// # Errors
    /// `E_VERIFY` where the file does not hold usable ones.
    pub fn new(check: UnitCheck<'a>) -> Result<Self> {
        let tables = check.tables()?;
        Ok(Self {
            check,
            tables,
            checked: 0,
            carry: Vec::new(),
            carry_start: 0,
        })
    }

    /// Checks what has become complete with `span`, the weights from `start` on.
    ///
    /// # Errors
    /// `E_VERIFY` at the first difference.
    pub fn span(&mut self, span: &[u8], start: u64, front: Front) -> Result<()> {
        if !self.carry.is_empty() && front.chunks > self.checked {
            // Behind the straddling chunk everything lies in this span; a chunk has at most 32,768 weights.
            let head = span.len().min(CHUNK_BITS as usize * 2);
            self.carry.extend_from_slice(&span[..head]);
            self.check.chunks(
                &self.tables,
                self.checked,
                self.checked + 1,
                &self.carry,
                self.carry_start,
            )?;
            self.checked += 1;
            self.carry.clear();
        }
        self.check
            .chunks(&self.tables, self.checked, front.chunks, span, start)?;
        self.checked = front.chunks;
        if self.carry.is_empty() {
            self.carry_start = front.weight;
        }
        let fresh = self.carry_start.max(start) - start;
        self.carry
            .extend_from_slice(&span[(fresh as usize * 2).min(span.len())..]);
        Ok(())
    }
}
