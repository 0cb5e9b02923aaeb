//! Verification finds what goes wrong between writing and reading back.
//!
//! A thread of the test damages the partial file while the job runs. A kernel chunk that straddles two spans is checked with the second
//! one, so while a braked job waits for that, its bytes are there to be damaged. What is checked at once is damaged by a thread that
//! writes the same wrong byte over and over: it does not always win, so there are several tries.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use crate::common::{
    checkpoint::Tensor,
    result::ResultFile,
    weights,
    world::{SMALL_BUDGET, World, wait_for},
};
use df11_file::{
    Code, Error, Job, Options,
    budget::Budget,
    options::{HeaderMode, Verify},
};

/// More than all spans of the braked job hold.
const LARGE: usize = 11_000_000;
/// On a busy machine many are needed.
const TRIES: usize = 400;

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

/// Runs a braked job in which one byte is flipped while the second span is being read; gives the error.
fn damaged(
    world: &World,
    options: &Options,
    place: impl FnOnce(&ResultFile, usize) -> u64,
) -> Result<(), Error> {
    let plain = Options {
        max_rate: None,
        ..options.clone()
    };
    let intact = ResultFile::parse(&world.result(plain));
    let budget = Budget::new(options, LARGE as u64).unwrap();
    assert!(!budget.keeps(LARGE as u64));
    let span = budget.span_weights;
    let job = world.start(options.clone());
    // Encoding begins when the counting pass has gone; the first span is checked when the output stands still.
    let written = wait_for(&job, |now| now.bytes_out >= span);
    let mut before = written.bytes_out;
    loop {
        thread::sleep(Duration::from_millis(150));
        let now = job.snapshot().bytes_out;
        if now == before {
            break;
        }
        before = now;
    }
    flip(&world.partial(), place(&intact, span as usize));
    job.result().map(|_| ())
}

fn braked(world: &World) -> Options {
    Options {
        threads: Some(5),
        max_memory: Some(SMALL_BUDGET),
        max_rate: Some(4_000_000),
        ..world.options()
    }
}

/// The kernel chunk in which weight `index` starts.
fn chunk_of(result: &ResultFile, index: usize) -> usize {
    let entries = result.bytes("one.0.output_positions").chunks_exact(4);
    let positions: Vec<_> = entries
        .map(|entry| u32::from_le_bytes(entry.try_into().unwrap()) as usize)
        .collect();
    positions.partition_point(|&first| first <= index) - 1
}

fn assert_found(world: &World, error: &Error) {
    assert_eq!(error.code, Code::Verify, "{error}");
    assert_eq!(error.unit.as_deref(), Some("one.0"), "{error}");
    assert_eq!(error.path, Some(world.target()), "{error}");
    world.assert_clean();
}

#[test]
fn damage_in_the_chunk_between_two_spans() {
    let in_chunk =
        |result: &ResultFile, span: usize, field: &str, chunk_bytes: usize, at: usize| {
            let offset = chunk_bytes * chunk_of(result, span - 1) + at;
            result.offsets[&format!("one.0.{field}")] + offset as u64
        };
    // They mostly wait, so they run side by side.
    thread::scope(|scope| {
        for (field, chunk_bytes, at) in [
            ("encoded_exponent", 4096, 9),
            ("output_positions", 4, 0),
            ("gaps", 320, 2),
        ] {
            scope.spawn(move || {
                let world = World::of_unit(weights::realistic(1, LARGE));
                let place =
                    |result: &ResultFile, span| in_chunk(result, span, field, chunk_bytes, at);
                let error = damaged(&world, &braked(&world), place).expect_err(field);
                assert_found(&world, &error);
            });
        }
        let world = World::of_unit(weights::realistic(1, LARGE));
        let mut last = 0;
        let error = damaged(&world, &braked(&world), |result, span| {
            last = span as u64 - 1;
            result.offsets["one.0.sign_mantissa"] + last
        });
        let error = error.unwrap_err();
        assert_found(&world, &error);
        assert_eq!(error.tensor.as_deref(), Some("one.0.weight"));
        assert_eq!(error.index, Some(last));
    });
}

/// The same damage goes through where the user asked for no verification: the test's damage is real.
#[test]
fn without_verification_damage_goes_through() {
    let world = World::of_unit(weights::realistic(1, LARGE));
    let options = Options {
        verify: Verify::Off,
        ..braked(&world)
    };
    let intact = world.result(Options {
        max_rate: None,
        ..options.clone()
    });
    damaged(&world, &options, |result, span| {
        result.offsets["one.0.sign_mantissa"] + span as u64 - 1
    })
    .unwrap();
    let damaged = std::fs::read(world.target()).unwrap();
    let differences = intact.iter().zip(&damaged).filter(|(a, b)| a != b).count();
    // The byte itself; the hash in the header is of the bytes that were to be written.
    assert_eq!((intact.len(), differences), (damaged.len(), 1));
}

/// Runs jobs while a thread keeps writing a wrong byte at `offset`, until one fails; gives its error.
fn hammered(world: &World, options: &Options, offset: u64, right: u8) -> Error {
    for _ in 0..TRIES {
        let ended = AtomicBool::new(false);
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                let open = || OpenOptions::new().write(true).open(world.partial());
                let mut file: Option<File> = None;
                while !ended.load(Relaxed) {
                    match &file {
                        None => file = open().ok(),
                        Some(file) => file.write_all_at(&[right ^ 1], offset).unwrap(),
                    }
                }
            });
            let outcome = Job::start(world.plan(options.clone()).unwrap())
                .unwrap()
                .result();
            ended.store(true, Relaxed);
            outcome
        });
        match outcome {
            Ok(_) => std::fs::remove_file(world.target()).unwrap(),
            Err(error) => return error,
        }
    }
    panic!("no damage was found in {TRIES} tries");
}

#[test]
fn damage_in_what_is_checked_at_once() {
    let world = World::new(vec![
        Tensor::bf16("one.0.weight", weights::realistic(2, 3_000_000)),
        Tensor::new("table", "U8", &[6_000_000], vec![3; 6_000_000]),
    ]);
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let options = Options {
            header,
            ..world.options()
        };
        let intact = ResultFile::parse(&world.result(options.clone()));
        for (name, at) in [
            ("one.0.luts", 0),
            ("one.0.encoded_exponent", 100_000),
            ("one.0.gaps", 7_000),
            ("one.0.output_positions", 8),
            ("one.0.sign_mantissa", 2_999_999),
        ] {
            let right = intact.bytes(name)[at];
            let error = hammered(&world, &options, intact.offsets[name] + at as u64, right);
            assert_found(&world, &error);
        }
        let error = hammered(&world, &options, intact.offsets["table"] + 3_000_001, 3);
        assert_eq!(
            (error.code, error.tensor.as_deref()),
            (Code::Verify, Some("table")),
            "{error}"
        );
        assert_eq!(error.index, Some(3_000_001));
        world.assert_clean();
    }
}
