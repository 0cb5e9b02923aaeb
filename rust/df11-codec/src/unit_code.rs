//! Everything that is fixed once a unit's histogram and last exponent are known: code, tables, sizes.

use crate::{
    codebook::{self, Code, Codebook, Counts},
    error::CodeError,
    histogram::ExponentHistogram,
    layout::UnitLayout,
    limits::{FIRST_JUMP, MAX_UNIT_WEIGHTS, MAX_WEIGHTS_PER_CHUNK},
    luts::{Fill, Luts},
    tail::Tail,
};

/// Which code a unit got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// The official tool's code.
    Official,
    /// More than 17 tables: counts raised to `floor` and rebuilt.
    Flattened {
        /// The smallest count used.
        floor: u64,
    },
    /// Near-constant unit: no code shorter than two bits, so that the kernel can launch.
    TwoBit {
        /// The smallest count used, where the code also had to be flattened.
        floor: Option<u64>,
    },
}

/// Code, decode tables and sizes of one unit.
#[derive(Clone, Debug)]
pub struct UnitCode {
    codebook: Codebook,
    luts: Luts,
    layout: UnitLayout,
    kind: CodeKind,
    limited: bool,
    limiter_tie: bool,
    repaired_table: Option<usize>,
}

impl UnitCode {
    /// The official code, or the flattened one where the official tool would need more than 17 tables.
    /// `last_exponent` is the exponent of the unit's last weight: it decides the end of the stream. It must occur in the histogram.
    ///
    /// # Errors
    /// [`CodeError`] where no code exists.
    pub fn new(histogram: &ExponentHistogram, last_exponent: u8) -> Result<Self, CodeError> {
        let counts = encodable(histogram)?;
        let official = codebook::official(counts);
        if let Some(luts) = Luts::new(&official.codebook, Fill::Carried) {
            let mut code = Self::with(
                official.codebook,
                luts,
                CodeKind::Official,
                counts,
                last_exponent,
            )?;
            code.limited = official.limited;
            code.limiter_tie = official.tie;
            return Ok(code);
        }
        let (floor, (codebook, luts)) = codebook::flatten(counts, |raised| {
            with_luts(codebook::huffman(raised)?, Fill::Carried)
        });
        Self::with(
            codebook,
            luts,
            CodeKind::Flattened { floor },
            counts,
            last_exponent,
        )
    }

    /// The two-bit code, for a unit that [`Self::may_overfill_chunk`] and, when encoded, does.
    /// `last_exponent` as in [`Self::new`].
    ///
    /// # Errors
    /// [`CodeError`] where no code exists.
    pub fn two_bit(histogram: &ExponentHistogram, last_exponent: u8) -> Result<Self, CodeError> {
        let counts = encodable(histogram)?;
        let build = |counts: &Counts| with_luts(codebook::two_bit(counts)?, Fill::Own);
        let (floor, (codebook, luts)) = if let Some(built) = build(counts) {
            (None, built)
        } else {
            let (floor, code) = codebook::flatten(counts, build);
            (Some(floor), code)
        };
        Self::with(
            codebook,
            luts,
            CodeKind::TwoBit { floor },
            counts,
            last_exponent,
        )
    }

    /// Fixes the sizes and makes sure that the kernel survives the tail.
    fn with(
        codebook: Codebook,
        mut luts: Luts,
        kind: CodeKind,
        counts: &Counts,
        last: u8,
    ) -> Result<Self, CodeError> {
        let bits = codebook.bits_of(counts);
        let last = codebook.codes[usize::from(last)];
        let layout = UnitLayout::new(counts.iter().sum(), bits, last.bits, luts.rows() as u64);
        within_limit(layout.encoded_exponent_bytes)?;
        let tail = Tail::new(bits, last, codebook.eof);
        let repaired_table = if tail.hangs(&luts) {
            luts.refill()
        } else {
            None
        };
        Ok(Self {
            codebook,
            luts,
            layout,
            kind,
            limited: false,
            limiter_tie: false,
            repaired_table,
        })
    }

    /// Sizes of the six tensors.
    pub fn layout(&self) -> &UnitLayout {
        &self.layout
    }

    /// The `luts` tensor: `(tables + 1) * 256` bytes.
    pub fn luts(&self) -> &[u8] {
        self.luts.bytes()
    }

    /// Which code this is.
    pub fn kind(&self) -> CodeKind {
        self.kind
    }

    /// True where the 32-bit limiter had a tie above 1 at its last step, so that two official outputs exist.
    pub fn limiter_tie(&self) -> bool {
        self.limiter_tie
    }

    /// True where the 32-bit limiter was needed.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// The table whose leading entries were refilled because the unit's own tail would have reached a dead entry.
    pub fn repaired_table(&self) -> Option<usize> {
        self.repaired_table
    }

    /// True where table 0 has no entry 0, the case in which the official encoder crashes.
    pub fn official_crashes(&self) -> bool {
        self.kind == CodeKind::Official && self.luts.headless()
    }

    /// True where a kernel chunk could hold more than 23,550 weights: a code of 1 bit exists and there are that many weights.
    pub fn may_overfill_chunk(&self) -> bool {
        self.layout.weights > MAX_WEIGHTS_PER_CHUNK
            && self.codebook.codes.iter().any(|code| code.bits == 1)
    }

    /// Bits that weights with this histogram take in this code.
    pub fn bits_of(&self, histogram: &ExponentHistogram) -> u64 {
        self.codebook.bits_of(histogram.counts())
    }

    /// Value and length in bits of an exponent's code; length 0 where the exponent does not occur.
    pub fn code_word(&self, exponent: u8) -> (u32, u32) {
        let code = self.codebook.codes[usize::from(exponent)];
        (code.value, code.bits)
    }

    /// Code words by exponent.
    pub(crate) fn codes(&self) -> &[Code; 256] {
        &self.codebook.codes
    }

    /// EOF's code word.
    pub(crate) fn eof(&self) -> Code {
        self.codebook.eof
    }
}

/// The counts, where DF11 can hold them.
fn encodable(histogram: &ExponentHistogram) -> Result<&Counts, CodeError> {
    let counts = histogram.counts();
    let largest = (0..=u8::MAX)
        .rfind(|&e| counts[usize::from(e)] > 0)
        .ok_or(CodeError::Empty)?;
    if largest >= FIRST_JUMP {
        return Err(CodeError::ExponentTooLarge { exponent: largest });
    }
    within_limit(histogram.total())?;
    Ok(counts)
}

fn within_limit(found: u64) -> Result<(), CodeError> {
    if found > MAX_UNIT_WEIGHTS {
        return Err(CodeError::TooLarge {
            found,
            limit: MAX_UNIT_WEIGHTS,
        });
    }
    Ok(())
}

fn with_luts(codebook: Codebook, fill: Fill) -> Option<(Codebook, Luts)> {
    let luts = Luts::new(&codebook, fill)?;
    Some((codebook, luts))
}
