//! `verify`: the lowest level that sees each kind of damage, and nothing seen where there is none.

use std::{fs, path::PathBuf};

use df11_file::{
    Code, Error, Options, Result,
    check::{self, CheckOptions, CheckReport, Level},
    options::HeaderMode,
};

use crate::common::{
    checkpoint::Tensor,
    result::ResultFile,
    weights::{self, Random},
    world::World,
};

const LEVELS: [Level; 4] = [Level::Structure, Level::Hash, Level::Sample, Level::Full];

/// A DF11 file and the source that it was made from.
struct Subject {
    world: World,
    file: PathBuf,
    bytes: Vec<u8>,
    parsed: ResultFile,
    header: HeaderMode,
}

impl Subject {
    fn new(world: World, header: HeaderMode) -> Self {
        let bytes = world.result(Options {
            header,
            ..world.options()
        });
        let file = world.path("subject.safetensors");
        fs::write(&file, &bytes).unwrap();
        let parsed = ResultFile::parse(&bytes);
        Self {
            world,
            file,
            bytes,
            parsed,
            header,
        }
    }

    /// Two units, one of them of three tensors, and a tensor that is not compressed.
    fn plain(header: HeaderMode) -> Self {
        let world = World::new(vec![
            Tensor::bf16("three.0.a.weight", weights::realistic(1, 90_001)),
            Tensor::bf16("three.0.b.weight", weights::realistic(2, 70)),
            Tensor::bf16("three.0.c.weight", weights::realistic(3, 200_000)),
            Tensor::bf16("one.0.weight", weights::realistic(4, 30_000)),
            Tensor::bf16("norm.weight", weights::realistic(5, 600)),
        ]);
        Self::new(world, header)
    }

    fn check(&self, level: Level, against: bool) -> Result<CheckReport> {
        let options = CheckOptions {
            level,
            against: against.then(|| self.world.source()),
            definitions: self.world.options().definitions,
            samples: 0,
            seed: Some(7),
            threads: Some(3),
            ..CheckOptions::default()
        };
        check::start(&self.file, options)?.result()
    }

    /// The lowest level that finds fault with the file as `change` leaves it, and how.
    fn lowest(&self, against: bool, change: impl FnOnce(&mut [u8])) -> Option<(Level, Error)> {
        let mut damaged = self.bytes.clone();
        change(&mut damaged);
        assert!(damaged != self.bytes, "the change changes nothing");
        fs::write(&self.file, damaged).unwrap();
        let levels = LEVELS
            .into_iter()
            .filter(|&level| self.header == HeaderMode::SelfDescribing || level != Level::Hash);
        let found = levels
            .map(|level| (level, self.check(level, against)))
            .find_map(|(level, outcome)| outcome.err().map(|error| (level, error)));
        fs::write(&self.file, &self.bytes).unwrap();
        found
    }

    fn at(&self, tensor: &str, offset: usize) -> usize {
        self.parsed.offsets[tensor] as usize + offset
    }
}

#[test]
fn sound_files_are_sound_at_every_level() {
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let tables = World::of_unit(weights::many_tables(1, 300_000));
        let border = World::of_unit(weights::constant(2, 32_768 / 2));
        let tiny = World::of_unit(weights::realistic(3, 1));
        let constant = World::of_unit(weights::near_constant(4, 60_000, 30_000));
        let subjects = [tables, border, tiny, constant].map(|world| Subject::new(world, header));
        for subject in subjects.into_iter().chain([Subject::plain(header)]) {
            for (level, against) in LEVELS
                .iter()
                .flat_map(|level| [(level, false), (level, true)])
            {
                let outcome = subject.check(*level, against);
                if *level == Level::Hash && header == HeaderMode::Official {
                    assert_eq!(outcome.unwrap_err().code, Code::Option);
                    continue;
                }
                let report = outcome.unwrap();
                assert_eq!(report.self_describing, header == HeaderMode::SelfDescribing);
                let decoded = match level {
                    Level::Structure | Level::Hash => 0..=0,
                    Level::Sample => 1..=report.chunks,
                    Level::Full | Level::Kernel => report.chunks..=report.chunks,
                };
                assert!(decoded.contains(&report.chunks_decoded), "{report:?}");
                let blind = header == HeaderMode::Official && !against;
                assert_eq!(
                    *level == Level::Full && report.unseen.is_empty(),
                    *level == Level::Full && !blind
                );
            }
        }
    }
}

/// A check writes nothing, so nothing can be in its way.
#[test]
fn what_stands_where_a_result_would_be_is_no_matter() {
    let subject = Subject::plain(HeaderMode::Official);
    let report = |subject: &Subject| subject.check(Level::Full, true).unwrap();
    fs::create_dir(subject.world.target()).unwrap();
    report(&subject);
    fs::write(subject.world.target().join("somebody's"), b"x").unwrap();
    report(&subject);
}

type Change = fn(&mut [u8]);

const FLIP: Change = |bytes| bytes[0] ^= 0x10;
const SWAP: Change = |bytes| bytes[..8].rotate_left(4);
const MORE: Change = |bytes| bytes[0] = bytes[0].wrapping_add(1);
const ZERO: Change = |bytes| bytes[..4].fill(0);

/// The lowest level that has to see a damage: in a self-describing file, in another one, and in that with its source.
type Seen = [Option<Level>; 3];

const AT_ONCE: Seen = [Some(Level::Structure); 3];
const DECODED: Seen = [Some(Level::Hash), Some(Level::Full), Some(Level::Full)];
const WITH_SOURCE: Seen = [Some(Level::Hash), None, Some(Level::Full)];
const WITH_SOURCE_AT_ONCE: Seen = [Some(Level::Hash), None, Some(Level::Structure)];

/// Counts from a tensor's end.
const fn last(bytes: usize) -> usize {
    usize::MAX - bytes
}

const DAMAGES: [(&str, usize, Change, Seen); 19] = [
    ("three.0.luts", 0, |bytes| bytes[0] = 250, AT_ONCE),
    ("three.0.luts", 256, |bytes| bytes[0] = 240, AT_ONCE),
    // Code lengths: a second code of one bit, one of 33 bits, and one for an exponent that has none.
    ("three.0.luts", last(134), |bytes| bytes[0] = 1, AT_ONCE),
    ("three.0.luts", last(133), |bytes| bytes[0] = 33, AT_ONCE),
    ("three.0.luts", last(10), |bytes| bytes[0] = 9, AT_ONCE),
    ("three.0.output_positions", 0, MORE, AT_ONCE),
    ("three.0.output_positions", 12, SWAP, AT_ONCE),
    ("three.0.output_positions", 8, ZERO, AT_ONCE),
    ("three.0.output_positions", last(3), MORE, AT_ONCE),
    ("three.0.output_positions", 12, MORE, DECODED),
    ("three.0.split_positions", 0, SWAP, AT_ONCE),
    ("three.0.split_positions", 0, MORE, WITH_SOURCE_AT_ONCE),
    ("three.0.gaps", 900, FLIP, DECODED),
    ("three.0.gaps", 901, MORE, DECODED),
    ("three.0.encoded_exponent", 15_000, FLIP, DECODED),
    ("three.0.sign_mantissa", 100_000, FLIP, WITH_SOURCE),
    ("three.0.sign_mantissa", 150_000, SWAP, WITH_SOURCE),
    ("norm.weight", 100, FLIP, WITH_SOURCE_AT_ONCE),
    ("norm.weight", 7, MORE, WITH_SOURCE_AT_ONCE),
];

#[test]
fn the_lowest_level_that_sees_each_damage() {
    let described = Subject::plain(HeaderMode::SelfDescribing);
    let official = Subject::plain(HeaderMode::Official);
    for (tensor, offset, change, [in_described, in_official, with_source]) in DAMAGES {
        let runs = [
            (&described, false, in_described),
            (&official, false, in_official),
            (&official, true, with_source),
        ];
        for (subject, against, expected) in runs {
            let length = subject.parsed.bytes(tensor).len();
            // Counted from the end.
            let offset = if offset > usize::MAX / 2 {
                length - 1 - (usize::MAX - offset)
            } else {
                offset
            };
            let at = subject.at(tensor, offset);
            let end = subject.at(tensor, length);
            let found = subject.lowest(against, |bytes| change(&mut bytes[at..end]));
            let level = found.as_ref().map(|(level, _)| *level);
            assert_eq!(level, expected, "{tensor} {offset} {against}: {found:?}");
            let Some((_, error)) = found else { continue };
            assert!(
                matches!(error.code, Code::Verify | Code::Structure),
                "{error}"
            );
            assert_eq!(
                error.path.as_deref(),
                Some(subject.file.as_path()),
                "{error}"
            );
            assert!(!error.hint.is_empty(), "{error}");
            let place =
                error.unit.as_deref() == Some("three.0") || error.tensor.as_deref() == Some(tensor);
            assert!(place, "{error}");
        }
    }
}

/// Whatever byte is changed: a self-describing file's hashes see it, and with the source nothing that changes a weight goes through.
#[test]
fn no_change_of_a_weight_goes_through() {
    let described = Subject::plain(HeaderMode::SelfDescribing);
    let official = Subject::plain(HeaderMode::Official);
    let source = fs::read(official.world.source()).unwrap();
    let source = ResultFile::parse(&source);
    let mut random = Random(11);
    for field in [
        "encoded_exponent",
        "gaps",
        "luts",
        "output_positions",
        "sign_mantissa",
        "split_positions",
    ] {
        for _ in 0..12 {
            let tensor = format!("three.0.{field}");
            let offset = random.next() as usize % official.parsed.bytes(&tensor).len();
            let bit = 1 << (random.next() % 8);
            let at = described.at(&tensor, offset);
            let (level, _) = described
                .lowest(false, |bytes| bytes[at] ^= bit)
                .expect("seen");
            assert!(level <= Level::Hash);
            let at = official.at(&tensor, offset);
            if official.lowest(true, |bytes| bytes[at] ^= bit).is_none() {
                let mut damaged = official.bytes.clone();
                damaged[at] ^= bit;
                let damaged = ResultFile::parse(&damaged);
                let expected = ["a", "b", "c"]
                    .map(|name| source.bytes(&format!("three.0.{name}.weight")))
                    .concat();
                damaged.assert_decodes("three.0", &expected);
            }
        }
    }
}

#[test]
fn a_wrong_weight_is_named() {
    let subject = Subject::plain(HeaderMode::Official);
    // Third tensor of the unit.
    let index = 90_001 + 70 + 100_000;
    let at = subject.at("three.0.sign_mantissa", index);
    let (level, error) = subject.lowest(true, |bytes| bytes[at] ^= 1).unwrap();
    assert_eq!((level, error.code), (Level::Full, Code::Verify));
    assert_eq!(error.unit.as_deref(), Some("three.0"));
    assert_eq!(error.tensor.as_deref(), Some("three.0.c.weight"));
    assert_eq!(error.index, Some(100_000));

    let subject = Subject::plain(HeaderMode::SelfDescribing);
    let at = subject.at("three.0.sign_mantissa", index);
    let (_, error) = subject.lowest(false, |bytes| bytes[at] ^= 1).unwrap();
    assert_eq!(error.tensor.as_deref(), Some("three.0.sign_mantissa"));
}

#[test]
fn what_is_no_df11_file_is_refused() {
    let subject = Subject::plain(HeaderMode::Official);
    let start = |path: &std::path::Path| check::start(path, CheckOptions::default()).map(|_| ());
    let source = subject.world.source();
    assert_eq!(start(&source).unwrap_err().code, Code::NotDf11);
    fs::write(&subject.file, &subject.bytes[..subject.bytes.len() - 1]).unwrap();
    assert_eq!(start(&subject.file).unwrap_err().code, Code::Truncated);
    // A unit without its gaps.
    let mut bytes = subject.bytes.clone();
    let header = subject.bytes[..2000]
        .windows(10)
        .position(|name| name == b"one.0.gaps")
        .unwrap();
    bytes[header + 8] = b'b';
    fs::write(&subject.file, bytes).unwrap();
    let error = start(&subject.file).unwrap_err();
    assert_eq!(
        (error.code, error.unit.as_deref()),
        (Code::Structure, Some("one.0"))
    );
    assert!(error.message.contains("gaps"), "{error}");
    // Another source.
    fs::write(&subject.file, &subject.bytes).unwrap();
    let other = Subject::new(
        World::of_unit(weights::realistic(1, 5)),
        HeaderMode::Official,
    );
    let options = CheckOptions {
        against: Some(other.world.source()),
        definitions: other.world.options().definitions,
        ..CheckOptions::default()
    };
    let error = check::start(&subject.file, options)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.code, Code::Verify);
}

#[test]
fn a_seed_makes_the_same_choice() {
    let subject = Subject::new(
        World::of_unit(weights::realistic(1, 3_000_000)),
        HeaderMode::Official,
    );
    let run = |seed| {
        let options = CheckOptions {
            level: Level::Sample,
            samples: 20,
            seed,
            ..CheckOptions::default()
        };
        check::start(&subject.file, options)
            .unwrap()
            .result()
            .unwrap()
    };
    let first = run(None);
    let again = run(first.seed);
    assert_eq!(
        (again.seed, again.chunks_decoded),
        (first.seed, first.chunks_decoded)
    );
    assert!((10..=22).contains(&first.chunks_decoded), "{first:?}");
}

/// What a file says about itself is believed only as far as it fits the file and the source.
#[test]
fn a_description_that_does_not_fit_is_seen() {
    let subject = Subject::plain(HeaderMode::SelfDescribing);
    let at = |text: &[u8]| {
        let header = &subject.bytes[..4000];
        header.windows(text.len()).position(|part| part == text)
    };
    let version = at(b"df11-self-describing/1").unwrap() + 21;
    let (level, error) = subject
        .lowest(false, |bytes| bytes[version] = b'2')
        .unwrap();
    assert_eq!((level, error.code), (Level::Structure, Code::Structure));
    assert!(error.message.contains("df11.format"), "{error}");

    // The same tensors in a source whose header says the same in another order.
    assert!(subject.check(Level::Structure, true).is_ok());
    let mut source = fs::read(subject.world.source()).unwrap();
    let text = String::from_utf8(
        source[..4000.min(source.len())]
            .iter()
            .map(|byte| byte & 0x7F)
            .collect(),
    )
    .unwrap();
    let from = text.find(r#""dtype":"BF16","shape":["#).unwrap();
    let to = from + text[from..].find(']').unwrap() + 1;
    let (dtype, shape) = text[from..to].split_once(',').unwrap();
    source[from..to].copy_from_slice(format!("{shape},{dtype}").as_bytes());
    let other = subject.world.path("other.safetensors");
    fs::write(&other, source).unwrap();
    let options = CheckOptions {
        against: Some(other),
        definitions: subject.world.options().definitions,
        ..CheckOptions::default()
    };
    check::start(&subject.file, options)
        .map(|_| ())
        .unwrap_err();
}

#[test]
fn no_number_of_threads_or_samples_is_too_large() {
    let subject = Subject::plain(HeaderMode::Official);
    let options = CheckOptions {
        level: Level::Sample,
        samples: u64::MAX,
        threads: Some(usize::MAX),
        ..CheckOptions::default()
    };
    let report = check::start(&subject.file, options)
        .unwrap()
        .result()
        .unwrap();
    assert!(report.chunks_decoded > report.chunks / 2);
}
