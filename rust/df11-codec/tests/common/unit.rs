//! A whole unit, encoded in pieces and joined.

use df11_codec::{
    BitRun, ChunkRun, DecodeTables, EncodedPiece, ExponentHistogram, Kernel, Mismatch, PieceStart,
    UnitCode, encode_piece,
};

/// The six tensors, without `split_positions`, and what the unit is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub weights: Vec<u8>,
    pub luts: Vec<u8>,
    pub stream: Vec<u8>,
    pub sign_mantissa: Vec<u8>,
    pub positions: Vec<u8>,
    pub gaps: Vec<u8>,
}

/// By every kernel.
pub fn histogram(weights: &[u8]) -> ExponentHistogram {
    same_by_every_kernel(|kernel| {
        let mut histogram = ExponentHistogram::default();
        histogram.count(kernel, weights);
        histogram
    })
}

/// What every kernel makes, after checking that it is the same.
pub fn same_by_every_kernel<T: PartialEq>(make: impl Fn(Kernel) -> T) -> T {
    let expected = make(Kernel::Reference);
    for kernel in Kernel::available() {
        assert!(
            make(kernel) == expected,
            "the kernel {kernel} differs from the reference"
        );
    }
    expected
}

pub fn last_exponent(weights: &[u8]) -> u8 {
    let last = weights.last_chunk::<2>().expect("a unit is not empty");
    (u16::from_le_bytes(*last) >> 7) as u8
}

/// What every kernel's check of one run says.
pub fn check_run(luts: &[u8], run: &ChunkRun<'_>, source: &[u8]) -> Result<(), Mismatch> {
    same_by_every_kernel(|kernel| {
        let tables = DecodeTables::with_kernel(kernel, luts).expect("readable tables");
        tables.check_chunks(run, source)
    })
}

pub fn official(weights: &[u8]) -> UnitCode {
    UnitCode::new(&histogram(weights), last_exponent(weights)).expect("encodable")
}

pub fn two_bit(weights: &[u8]) -> UnitCode {
    UnitCode::two_bit(&histogram(weights), last_exponent(weights)).expect("encodable")
}

/// ORs a run into its tensor, after checking the promises of [`BitRun`].
fn join(tensor: &mut [u8], run: &BitRun) {
    if run.bit_len == 0 {
        assert!(run.bytes.is_empty());
        return;
    }
    let from = (run.first_bit / 8) as usize;
    let to = ((run.first_bit + run.bit_len - 1) / 8 + 1) as usize;
    assert_eq!(run.bytes.len(), to - from);
    let before = (run.first_bit % 8) as u32;
    let behind = (to as u64 * 8 - run.first_bit - run.bit_len) as u32;
    assert_eq!(
        run.bytes[0].checked_shr(8 - before).unwrap_or(0),
        0,
        "bits before the run"
    );
    assert_eq!(
        u32::from(*run.bytes.last().expect("bytes")) & ((1 << behind) - 1),
        0,
        "bits behind the run"
    );
    for (byte, more) in tensor[from..to].iter_mut().zip(&run.bytes) {
        *byte |= more;
    }
}

/// Encodes by every kernel, in pieces of the given sizes (repeated as often as needed), the last piece first.
pub fn encode(weights: &[u8], code: &UnitCode, sizes: &[usize]) -> Unit {
    same_by_every_kernel(|kernel| encode_by(kernel, weights, code, sizes))
}

/// Encodes by one kernel.
pub fn encode_by(kernel: Kernel, weights: &[u8], code: &UnitCode, sizes: &[usize]) -> Unit {
    let layout = code.layout();
    let zeros = |bytes: u64| vec![0; usize::try_from(bytes).expect("small")];
    let mut unit = Unit {
        weights: weights.to_vec(),
        luts: code.luts().to_vec(),
        stream: zeros(layout.encoded_exponent_bytes),
        sign_mantissa: zeros(layout.weights),
        positions: zeros(4 * layout.position_entries),
        gaps: zeros(layout.gaps_bytes),
    };
    assert_eq!(unit.luts.len() as u64, 256 * layout.lut_rows);
    let mut pieces = Vec::new();
    let mut start = PieceStart {
        weight: 0,
        bit: 0,
        is_last: false,
    };
    let mut rest = weights;
    for &size in sizes.iter().cycle() {
        let (piece, behind) = rest.split_at(rest.len().min(2 * size));
        start.is_last = behind.is_empty();
        pieces.push((piece, start));
        start.weight += piece.len() as u64 / 2;
        start.bit += code.bits_of(&histogram(piece));
        rest = behind;
        if start.is_last {
            break;
        }
    }
    assert_eq!(start.bit, layout.bits);
    let mut out = EncodedPiece::default();
    let mut written = vec![false; unit.positions.len()];
    for (piece, start) in pieces.into_iter().rev() {
        encode_piece(kernel, code, piece, start, &mut out);
        let first = start.weight as usize;
        unit.sign_mantissa[first..first + out.sign_mantissa.len()]
            .copy_from_slice(&out.sign_mantissa);
        join(&mut unit.stream, &out.encoded_exponent);
        join(&mut unit.gaps, &out.gaps);
        let range = 4 * out.first_position as usize
            ..4 * out.first_position as usize + out.output_positions.len();
        assert!(
            written[range.clone()].iter().all(|w| !w),
            "an entry is written twice"
        );
        written[range.clone()].fill(true);
        unit.positions[range].copy_from_slice(&out.output_positions);
    }
    assert!(written.into_iter().all(|w| w), "an entry is not written");
    unit
}

impl Unit {
    pub fn n(&self) -> usize {
        self.weights.len() / 2
    }

    pub fn chunks(&self) -> usize {
        self.stream.len().div_ceil(4096)
    }

    pub fn position(&self, entry: usize) -> usize {
        let bytes = self.positions.get(4 * entry..4 * entry + 4);
        bytes.map_or(self.n(), |b| {
            u32::from_le_bytes(b.try_into().expect("4 bytes")) as usize
        })
    }

    /// The run of `count` chunks from `first` on, with exactly the bytes that it must have, and its weights.
    pub fn run(&self, first: usize, count: usize) -> (ChunkRun<'_>, &[u8]) {
        let end = first + count;
        let is_end = end == self.chunks();
        let stream_end = (4096 * end + 4).min(self.stream.len());
        let gaps_end = if is_end {
            self.gaps.len()
        } else {
            320 * end + 1
        };
        let positions_end = (4 * (end + 1)).min(self.positions.len());
        // Positions may have been changed by the test.
        let from = self.position(first).min(self.n());
        let weights = from..self.position(end).clamp(from, self.n());
        let run = ChunkRun {
            first_chunk: first as u64,
            unit_weights: self.n() as u64,
            unit_bytes: self.stream.len() as u64,
            encoded_exponent: &self.stream[4096 * first..stream_end],
            gaps: &self.gaps[320 * first..gaps_end],
            output_positions: &self.positions[4 * first..positions_end],
            sign_mantissa: &self.sign_mantissa[weights.clone()],
        };
        (run, &self.weights[2 * weights.start..2 * weights.end])
    }

    pub fn tables(&self) -> DecodeTables {
        DecodeTables::new(&self.luts).expect("own tables")
    }

    /// Checks by every kernel, in runs of the given lengths, repeated as often as needed.
    pub fn check(&self, lengths: &[usize]) -> Result<(), Mismatch> {
        same_by_every_kernel(|kernel| self.check_by(kernel, lengths))
    }

    fn check_by(&self, kernel: Kernel, lengths: &[usize]) -> Result<(), Mismatch> {
        let tables = DecodeTables::with_kernel(kernel, &self.luts).expect("own tables");
        let mut first = 0;
        for length in lengths.iter().cycle() {
            let count = (*length).min(self.chunks() - first);
            let (run, source) = self.run(first, count);
            tables.check_chunks(&run, source)?;
            first += count;
            if first == self.chunks() {
                return Ok(());
            }
        }
        unreachable!("lengths are not empty");
    }

    /// Decodes in runs of the given lengths.
    pub fn decode(&self, lengths: &[usize]) -> Result<Vec<u8>, Mismatch> {
        let tables = self.tables();
        let (mut first, mut decoded) = (0, Vec::new());
        for length in lengths.iter().cycle() {
            let count = (*length).min(self.chunks() - first);
            let (run, source) = self.run(first, count);
            let mut out = vec![0; source.len()];
            tables.decode_chunks(&run, &mut out)?;
            decoded.extend(out);
            first += count;
            if first == self.chunks() {
                break;
            }
        }
        Ok(decoded)
    }
}
