//! What rounding does to values.

use serde::{Deserialize, Serialize};

/// Changes of values by a conversion. A NaN stays one and counts as unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Values that were converted.
    pub values: u64,
    /// Of these, the ones that are others now.
    pub changed: u64,
    /// Of those, finite values that became infinite.
    pub to_infinity: u64,
    /// Of those, values that became 0.
    pub to_zero: u64,
    /// The largest change of all others, as a share of the value before.
    pub largest: f64,
}

impl Changes {
    /// Takes note of one value.
    #[allow(clippy::float_cmp)] // Whether it changed at all is the question.
    pub fn count(&mut self, before: f64, after: f64) {
        self.values += 1;
        if before == after || before.is_nan() {
            return;
        }
        self.changed += 1;
        if after.is_infinite() {
            self.to_infinity += 1;
        } else if after == 0.0 {
            self.to_zero += 1;
        } else {
            self.largest = self.largest.max(((after - before) / before).abs());
        }
    }

    /// Takes those of further values.
    pub fn add(&mut self, other: &Self) {
        self.values += other.values;
        self.changed += other.changed;
        self.to_infinity += other.to_infinity;
        self.to_zero += other.to_zero;
        self.largest = self.largest.max(other.largest);
    }
}
