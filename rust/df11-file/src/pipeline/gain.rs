//! Whether a file gets smaller at all.

use crate::{
    error::{Code, Error, Result},
    plan::{Plan, UnitPlan},
};

/// Files whose units have fewer bytes are written as they come: tables and header decide there, and nobody compresses them for their size.
const MIN_BYTES: u64 = 1 << 20;

/// What the units of a plan take, as far as they are known.
pub struct Gain<'a> {
    plan: &'a Plan,
    /// Bytes of all units as they are.
    before: u64,
    /// As DF11, of those that are known.
    known: u64,
    /// The least that the others can take.
    rest: u64,
    /// The unit that grows most: bytes as DF11, and as it is.
    worst: Option<(&'a UnitPlan, u64, u64)>,
}

impl<'a> Gain<'a> {
    /// No unit is known yet.
    pub fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            before: plan.units.iter().map(|unit| plan.left_bytes(unit)).sum(),
            known: 0,
            rest: plan.units.iter().map(least).sum(),
            worst: None,
        }
    }

    /// Takes the size of a unit as DF11.
    ///
    /// # Errors
    /// `E_NO_GAIN` once nothing can be gained any more.
    pub fn add(&mut self, unit: &'a UnitPlan, df11_bytes: u64) -> Result<()> {
        self.known += df11_bytes;
        self.rest -= least(unit);
        let left_bytes = self.plan.left_bytes(unit);
        let growth = |df11: u64, left: u64| df11 as f64 / left as f64;
        let is_worse = self
            .worst
            .is_none_or(|(_, df11, left)| growth(df11_bytes, left_bytes) > growth(df11, left));
        if is_worse {
            self.worst = Some((unit, df11_bytes, left_bytes));
        }
        let after = self.known + self.rest;
        let Some((unit, df11, left)) = self.worst else {
            return Ok(());
        };
        if self.before < MIN_BYTES || after < self.before {
            return Ok(());
        }
        let message = format!(
            "nothing would be gained: the model's units have {} bytes, as DF11 at least {after}; this one has {left}, as DF11 {df11}",
            self.before
        );
        Err(Error::new(Code::NoGain, message)
            .in_unit(&unit.name)
            .at_path(self.plan.source.path())
            .hint("Use the file as it is. Where only some units grow, leave those as they are ('keep uncompressed')."))
    }
}

/// The least bytes that a unit can take: sign and mantissa, and a code of one bit.
fn least(unit: &UnitPlan) -> u64 {
    unit.weights + unit.weights / 8
}
