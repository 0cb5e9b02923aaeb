//! A unit in work, as its tasks see it, and the memory that goes from unit to unit.

use std::{mem, sync::Arc};

use df11_codec::{DecodeTables, PieceStart};

use super::{survey::SurveyedUnit, verify::Verification};
use crate::{
    options::{Options, Verify},
    output::UnitPlace,
};

/// A `luts` tensor by which nothing can be decoded.
const NO_CODES: [u8; 512] = [0; 512];

/// A unit that is being encoded or checked.
pub struct ActiveUnit {
    /// Index of the unit in the plan.
    pub index: usize,
    /// Its code and pieces.
    pub surveyed: SurveyedUnit,
    /// Where it lies in the file.
    pub place: UnitPlace,
    /// Its tensor of this name.
    pub split_positions: Vec<u8>,
    /// The decode tables; none where nothing is verified.
    pub tables: Option<DecodeTables>,
}

impl ActiveUnit {
    /// Its tensors that do not depend on pieces, and where they lie: `luts` and `split_positions`.
    pub fn small_tensors(&self) -> [(&[u8], u64); 2] {
        [
            (self.surveyed.code.luts(), self.place.luts),
            (&self.split_positions, self.place.split_positions),
        ]
    }
}

/// Memory of finished units.
pub struct Spares {
    units: Vec<Arc<ActiveUnit>>,
    tables: Vec<DecodeTables>,
    starts: Vec<Vec<PieceStart>>,
    verifications: Vec<Verification>,
}

impl Spares {
    /// For so many units at a time.
    pub fn new(options: &Options, units: usize) -> Self {
        let checked = match options.verify {
            Verify::Full => units,
            Verify::Off => 0,
        };
        let kernel = options.kernel;
        let tables = (0..checked).map_while(|_| DecodeTables::with_kernel(kernel, &NO_CODES).ok());
        Self {
            units: Vec::with_capacity(units),
            tables: tables.collect(),
            starts: Vec::with_capacity(units),
            verifications: (0..units).map(|_| Verification::default()).collect(),
        }
    }

    /// Decode tables to be read anew.
    pub fn tables(&mut self) -> Option<DecodeTables> {
        self.tables.pop()
    }

    /// A list of piece starts to be overwritten.
    pub fn starts(&mut self) -> Vec<PieceStart> {
        self.starts.pop().unwrap_or_default()
    }

    /// The verification of a unit that begins.
    pub fn verification(&mut self) -> Verification {
        self.verifications.pop().unwrap_or_default()
    }

    /// Makes a unit known to its tasks.
    pub fn share(&mut self, unit: ActiveUnit) -> Arc<ActiveUnit> {
        if let Some(mut spare) = self.units.pop()
            && let Some(slot) = Arc::get_mut(&mut spare)
        {
            *slot = unit;
            return spare;
        }
        Arc::new(unit)
    }

    /// Takes a finished unit, which no task knows any more.
    pub fn take(&mut self, mut unit: Arc<ActiveUnit>, mut verification: Verification) {
        verification.clear();
        self.verifications.push(verification);
        if let Some(slot) = Arc::get_mut(&mut unit) {
            self.tables.extend(slot.tables.take());
            self.starts.push(mem::take(&mut slot.surveyed.starts));
            self.units.push(unit);
        }
    }
}
