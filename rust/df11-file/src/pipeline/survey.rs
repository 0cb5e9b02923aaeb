//! What counting a unit's exponents tells: code, sizes, and the bit at which each piece begins.

use df11_codec::{CodeError, ExponentHistogram, PieceStart, UnitCode, bf16, limits::FIRST_JUMP};

use super::{no_memory, span::Span};
use crate::{
    budget::PIECE_WEIGHTS,
    error::{Code, Error, Result},
    plan::{Plan, UnitPlan},
};

/// What encoding a unit needs to know beforehand.
#[derive(Debug)]
pub struct SurveyedUnit {
    /// Code, tables, sizes.
    pub code: UnitCode,
    /// Where each piece of [`PIECE_WEIGHTS`] weights begins.
    pub starts: Vec<PieceStart>,
}

impl SurveyedUnit {
    /// Bits of each piece's codes.
    pub fn bits_of_pieces(&self) -> impl Iterator<Item = u64> {
        let next = self.starts.iter().skip(1).map(|start| start.bit);
        let ends = next.chain([self.code.layout().bits]);
        self.starts
            .iter()
            .zip(ends)
            .map(|(start, end)| end - start.bit)
    }
}

/// The counts of a unit, span by span.
pub struct Survey {
    pieces: Vec<ExponentHistogram>,
    last_exponent: u8,
}

impl Survey {
    /// Room for the largest unit of a plan, asked for at once: growing, it would take up to three times that.
    ///
    /// # Errors
    /// `E_NO_MEMORY`.
    pub fn for_units_of(plan: &Plan) -> Result<Self> {
        let largest = plan.units.iter().map(|unit| unit.weights).max();
        let mut pieces = Vec::new();
        pieces
            .try_reserve_exact(largest.unwrap_or(0).div_ceil(PIECE_WEIGHTS) as usize)
            .map_err(|error| no_memory(&error))?;
        Ok(Self {
            pieces,
            last_exponent: 0,
        })
    }

    /// Forgets the unit before.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Takes the counts of the next span, whole pieces of a unit but for its end.
    ///
    /// # Errors
    /// `E_EXPONENT` for a weight that DF11 cannot hold, with tensor and index.
    pub fn add(&mut self, plan: &Plan, unit: &UnitPlan, span: &Span) -> Result<()> {
        let too_large = |histogram: &ExponentHistogram| {
            histogram.counts()[usize::from(FIRST_JUMP)..]
                .iter()
                .any(|&count| count > 0)
        };
        if span.counts().iter().any(too_large) {
            let first = self.pieces.len() as u64 * PIECE_WEIGHTS;
            return Err(first_too_large(plan, unit, first, span.bytes()));
        }
        self.pieces.extend_from_slice(span.counts());
        if let [.., low, high] = span.bytes() {
            self.last_exponent = bf16::exponent(u16::from_le_bytes([*low, *high]));
        }
        Ok(())
    }

    /// The unit's code, once every span was counted. `starts` is memory for the result.
    ///
    /// # Errors
    /// `E_UNIT_SIZE` where the kernel could not index it.
    pub fn code(&self, unit: &UnitPlan, starts: Vec<PieceStart>) -> Result<SurveyedUnit> {
        let code = UnitCode::new(&self.total(), self.last_exponent);
        self.surveyed(unit, code, starts)
    }

    /// The unit's two-bit code.
    ///
    /// # Errors
    /// As for [`Self::code`].
    pub fn two_bit_code(&self, unit: &UnitPlan, starts: Vec<PieceStart>) -> Result<SurveyedUnit> {
        let code = UnitCode::two_bit(&self.total(), self.last_exponent);
        self.surveyed(unit, code, starts)
    }

    fn surveyed(
        &self,
        unit: &UnitPlan,
        code: std::result::Result<UnitCode, CodeError>,
        mut starts: Vec<PieceStart>,
    ) -> Result<SurveyedUnit> {
        let no_code = |error| {
            Error::new(Code::UnitSize, format!("DF11 cannot hold it: {error}")).in_unit(&unit.name)
        };
        let code = code.map_err(no_code)?;
        starts.clear();
        starts.extend(self.starts(&code));
        Ok(SurveyedUnit { code, starts })
    }

    /// How often each exponent occurs, of those that do.
    pub fn exponents(&self) -> Vec<(u8, u64)> {
        let total = self.total();
        let counts = (0..=u8::MAX).zip(total.counts().iter().copied());
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// The exponent of the last weight.
    pub fn last_exponent(&self) -> u8 {
        self.last_exponent
    }

    fn total(&self) -> ExponentHistogram {
        let mut total = ExponentHistogram::default();
        self.pieces.iter().for_each(|piece| total.merge(piece));
        total
    }

    fn starts(&self, code: &UnitCode) -> impl Iterator<Item = PieceStart> {
        let mut next = PieceStart {
            weight: 0,
            bit: 0,
            is_last: false,
        };
        let last = self.pieces.len() - 1;
        self.pieces.iter().enumerate().map(move |(index, piece)| {
            let start = PieceStart {
                is_last: index == last,
                ..next
            };
            next.weight += piece.total();
            next.bit += code.bits_of(piece);
            start
        })
    }
}

/// The error for the first weight of a span whose exponent collides with the jump codes.
fn first_too_large(plan: &Plan, unit: &UnitPlan, first: u64, weights: &[u8]) -> Error {
    let words = weights
        .chunks_exact(2)
        .map(|word| u16::from_le_bytes([word[0], word[1]]));
    let found = words
        .enumerate()
        .find(|&(_, word)| bf16::exponent(word) >= FIRST_JUMP);
    let (at, word) = found.unwrap_or_default();
    let value = f32::from_bits(u32::from(word) << 16);
    let error = locate(
        plan,
        unit,
        first + at as u64,
        Error::new(
            Code::Exponent,
            format!("the weight {value:e} is too large for DF11, whose exponents end below 2^113"),
        ),
    );
    let way_out = if plan.architecture.needs(&unit.name) {
        "The loader tells the model by this unit, so it cannot be left as it is."
    } else {
        "The unit can be left as it is ('keep uncompressed')."
    };
    error.at_path(plan.source.path()).hint(format!(
        "The checkpoint is damaged or was trained into overflow. {way_out}"
    ))
}

/// Adds unit, tensor, and index within the tensor of a unit's weight to an error.
pub fn locate(plan: &Plan, unit: &UnitPlan, weight: u64, error: Error) -> Error {
    let mut index = weight;
    for member in &unit.members {
        if index < member.weights {
            let tensor = &plan.source.header().tensors[member.tensor].name;
            return error.in_unit(&unit.name).in_tensor(tensor).at_index(index);
        }
        index -= member.weights;
    }
    error.in_unit(&unit.name)
}
