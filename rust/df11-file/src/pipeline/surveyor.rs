//! Counts a unit's exponents, span by span as they come from the reader, until its code is known.

use std::collections::VecDeque;

use crossbeam_channel::RecvError;
use df11_codec::{CodeKind, PieceStart, limits::MAX_WEIGHTS_PER_CHUNK};

use super::{
    facts::SourceFacts,
    overfill::OverfillProbe,
    reader::read_weights,
    span::{Span, SpanMemory},
    survey::{Survey, SurveyedUnit},
};
use crate::{
    budget::PIECE_WEIGHTS, error::Result, journal::Counted, plan::Plan, progress::Progress,
    task::stopped,
};

/// Surveys the units of a plan, one after the other.
pub struct Surveyor<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    facts: &'a SourceFacts,
    survey: Survey,
    probe: OverfillProbe,
}

/// The span that came from the reader.
///
/// # Errors
/// Those of reading; `E_CANCELLED`.
pub fn received(
    span: std::result::Result<Result<Span>, RecvError>,
    progress: &Progress,
) -> Result<Span> {
    // The reader of a job that is to stop ends without a word.
    let ended = |_| progress.check_cancelled().err().unwrap_or_else(stopped);
    span.map_err(ended)?
}

impl<'a> Surveyor<'a> {
    /// For the units of a plan.
    ///
    /// # Errors
    /// `E_NO_MEMORY`.
    pub fn new(plan: &'a Plan, progress: &'a Progress, facts: &'a SourceFacts) -> Result<Self> {
        Ok(Self {
            plan,
            progress,
            facts,
            survey: Survey::for_units_of(plan)?,
            probe: OverfillProbe::default(),
        })
    }

    /// Takes all spans of a unit, also where it cannot be encoded. They stay in memory where there is a list to `keep` them. `starts` is
    /// memory for the result.
    ///
    /// # Errors
    /// `E_EXPONENT`, `E_UNIT_SIZE`; those of reading; `E_CANCELLED`.
    pub fn unit(
        &mut self,
        index: usize,
        mut next_span: impl FnMut() -> Result<Span>,
        mut keep: Option<&mut VecDeque<Span>>,
        starts: Vec<PieceStart>,
    ) -> Result<SurveyedUnit> {
        let unit = &self.plan.units[index];
        self.progress.enter_unit(unit.number);
        self.survey.clear();
        let (mut counted, mut outcome) = (0, Ok(()));
        while counted < unit.weights {
            self.progress.check_cancelled()?;
            let span = next_span()?;
            outcome = outcome.and_then(|()| self.survey.add(self.plan, unit, &span));
            if outcome.is_err() && !self.plan.options.keep_uncompressed {
                break;
            }
            counted += span.bytes().len() as u64 / 2;
            match &mut keep {
                Some(keep) => keep.push_back(span),
                None => self.progress.skip_stages(span.bytes().len() as u64),
            }
        }
        outcome?;
        let mut surveyed = self.survey.code(unit, starts)?;
        if surveyed.code.may_overfill_chunk()
            && self.fullest_chunk(index, &surveyed, keep.as_deref())? > MAX_WEIGHTS_PER_CHUNK
        {
            surveyed = self.survey.two_bit_code(unit, surveyed.starts)?;
        }
        self.progress.leave_unit();
        Ok(surveyed)
    }

    /// The record of the unit that was surveyed last.
    pub fn record(&self, index: usize, surveyed: &SurveyedUnit) -> Counted {
        let unit = &self.plan.units[index];
        let members = unit.members.iter();
        Counted {
            unit: unit.name.clone(),
            exponents: self.survey.exponents(),
            last: self.survey.last_exponent(),
            two_bit: matches!(surveyed.code.kind(), CodeKind::TwoBit { .. }),
            bits: surveyed.bits_of_pieces().collect(),
            source: members.map(|member| self.facts.of(member.tensor)).collect(),
        }
    }

    /// Most weights in one kernel chunk of a near-constant unit. Rare, so it may read the unit once more.
    fn fullest_chunk(
        &mut self,
        index: usize,
        surveyed: &SurveyedUnit,
        kept: Option<&VecDeque<Span>>,
    ) -> Result<u64> {
        self.probe.begin();
        let mut memory = SpanMemory::default();
        for (piece, start) in surveyed.starts.iter().enumerate() {
            self.progress.check_cancelled()?;
            let weights = PIECE_WEIGHTS.min(self.plan.units[index].weights - start.weight);
            let mut kept = kept.into_iter().flatten().flat_map(Span::pieces);
            let weights = if let Some(kept) = kept.nth(piece) {
                kept
            } else {
                read_weights(self.plan, index, start.weight, weights, &mut memory)?;
                &memory.bytes
            };
            self.probe
                .piece(self.plan.options.kernel, surveyed, piece, weights);
        }
        Ok(self.probe.most_weights())
    }
}
