//! A run that goes on from what an interrupted one has left ends with the bytes of an undisturbed one, whatever was left.

use std::{
    fs::{self, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::Path,
    time::{Duration, SystemTime},
};

use crate::common::{
    checkpoint::Tensor,
    weights,
    world::{World, wait_for},
};
use df11_file::{
    Code, Job, Options, Report, Status,
    options::{Cast, HeaderMode, IfExists, Verify},
    plan,
};

pub const WENT_ON: &str = "went on from an interrupted run: ";
pub const REPLACED: &str = "a partial file left by an interrupted run was replaced: ";

/// Six units, one of them read in two spans, and tensors between them: 13 MB.
pub fn world() -> World {
    World::new(tensors())
}

fn tensors() -> Vec<Tensor> {
    let unit = |index: u64, weights: usize| {
        let name = format!("one.{index}.weight");
        Tensor::bf16(&name, weights::realistic(index, weights))
    };
    vec![
        unit(0, 700_000),
        Tensor::new("table", "U8", &[900_000], vec![5; 900_000]),
        unit(1, 900_000),
        unit(2, 50_000),
        Tensor::f32("norm.weight", &[1.0, 1.001, -3.5]),
        Tensor::new("empty", "F16", &[0, 4], Vec::new()),
        unit(3, 2_500_000),
        unit(4, 1_000_000),
        unit(5, 900_000),
    ]
}

fn modes(world: &World) -> Vec<Options> {
    let options = |header, keep_uncompressed| Options {
        header,
        keep_uncompressed,
        ..world.small()
    };
    vec![
        options(HeaderMode::SelfDescribing, false),
        options(HeaderMode::SelfDescribing, true),
        options(HeaderMode::Official, false),
        options(HeaderMode::Official, true),
    ]
}

/// Leaves what a run leaves that is killed when it has read so many percent of what it reads.
pub fn interrupt(world: &World, options: &Options, percent: u64) {
    let slow = Options {
        max_rate: Some(40_000_000),
        ..options.clone()
    };
    // On a busy machine a run may have ended before it is stopped.
    let left = (0..20).find_map(|_| {
        let job = world.start(slow.clone());
        wait_for(&job, |now| {
            now.bytes_total > 0 && now.bytes_in * 100 >= now.bytes_total * percent
        });
        // As a crash would leave them, the journal may know less than is written, never more.
        let left = [world.journal(), world.partial()].map(|path| (fs::read(&path), path));
        job.cancel();
        match job.result() {
            Ok(_) => {
                fs::remove_file(world.target()).unwrap();
                None
            }
            Err(error) => {
                assert_eq!(error.code, Code::Cancelled);
                Some(left)
            }
        }
    });
    for (bytes, path) in left.unwrap() {
        fs::write(path, bytes.unwrap()).unwrap();
    }
}

pub fn note<'a>(report: &'a Report, start: &str) -> &'a str {
    let found = report.notes.iter().find(|note| note.starts_with(start));
    found.unwrap_or_else(|| panic!("{start}: {:?}", report.notes))
}

/// Runs to the end; the result is the undisturbed one, and nothing else is left.
pub fn finish(world: &World, options: &Options, undisturbed: &[u8]) -> Report {
    let report = world.run(options.clone()).unwrap();
    assert_eq!(report.status, Status::Done);
    assert!(
        fs::read(world.target()).unwrap() == undisturbed,
        "the result differs"
    );
    fs::remove_file(world.target()).unwrap();
    world.assert_clean();
    report
}

#[test]
fn a_resumed_run_ends_with_the_same_bytes() {
    let world = world();
    for options in modes(&world) {
        let undisturbed = world.result(options.clone());
        let all = finish(&world, &options, &undisturbed).bytes_read;
        let mut before = all;
        for percent in [5, 40, 75, 97] {
            interrupt(&world, &options, percent);
            let report = finish(&world, &options, &undisturbed);
            if percent < 10 {
                continue;
            }
            note(&report, WENT_ON);
            let mode = (options.header, options.keep_uncompressed, percent);
            assert!(
                report.bytes_read < before,
                "{mode:?}: {}",
                report.bytes_read
            );
            before = report.bytes_read;
        }
        assert!(before * 3 < all, "{before} of {all}");
    }
}

#[test]
fn what_is_told_is_told_again() {
    // The last one gets a note.
    let zeros = Tensor::bf16("one.9.weight", vec![0; 60_000]);
    let world = World::new(tensors().into_iter().chain([zeros]).collect());
    for options in modes(&world) {
        let options = Options {
            verify: Verify::Off,
            ..options
        };
        let first = world.run(options.clone()).unwrap();
        fs::remove_file(world.target()).unwrap();
        interrupt(&world, &options, 90);
        let report = world.run(options).unwrap();
        fs::remove_file(world.target()).unwrap();
        assert!(report.resumed_bytes > 0);
        let names = |report: &Report| {
            let units = report.units.iter();
            units.map(|unit| unit.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&report), names(&first));
        for (unit, before) in report.units.iter().zip(&first.units) {
            assert_eq!(unit.notes, before.notes);
            assert_eq!(unit.code, before.code);
            assert_eq!(unit.df11_bytes, before.df11_bytes);
        }
    }
}

/// What rounding did to tensors that are not read again counts too.
#[test]
fn a_cast_is_told_whole() {
    let values: Vec<f32> = (0..900_000)
        .map(|i| 1.0 + (i % 1000) as f32 / 997.0)
        .collect();
    let world = World::new(vec![
        Tensor::f32("one.0.weight", &values),
        Tensor::f32("one.1.weight", &values[..600_000]),
        Tensor::f32("one.2.weight", &values),
    ]);
    for options in modes(&world) {
        let options = Options {
            cast: Cast::ToBf16,
            keep_uncompressed: false,
            ..options
        };
        let first = world.run(options.clone()).unwrap();
        let undisturbed = fs::read(world.target()).unwrap();
        fs::remove_file(world.target()).unwrap();
        interrupt(&world, &options, 80);
        let report = finish(&world, &options, &undisturbed);
        assert!(report.resumed_bytes > 0);
        assert_eq!(report.cast, first.cast);
    }
}

/// A bit of what was written has changed since: that part is made again.
#[test]
fn damage_is_seen_and_mended() {
    let world = world();
    for options in modes(&world) {
        let undisturbed = world.result(options.clone());
        for place in [0.2, 0.5] {
            interrupt(&world, &options, 97);
            let bytes = fs::metadata(world.partial()).unwrap().len();
            let mut file = OpenOptions::new()
                .write(true)
                .open(world.partial())
                .unwrap();
            let place = SeekFrom::Start((bytes as f64 * place) as u64);
            file.seek(place).unwrap();
            file.write_all(&[0xA5; 64]).unwrap();
            drop(file);
            let report = finish(&world, &options, &undisturbed);
            let said = note(&report, WENT_ON);
            assert!(
                said.contains("; 1 others did not have their hashes"),
                "{said}"
            );
        }
        // Cut, or with more behind its end.
        for length in [20, 3_000_000, 40_000_000] {
            interrupt(&world, &options, 97);
            let file = OpenOptions::new().write(true).open(world.partial());
            file.unwrap().set_len(length).unwrap();
            finish(&world, &options, &undisturbed);
        }
    }
}

#[test]
fn a_torn_or_damaged_journal() {
    let world = World::mixed(3);
    for options in modes(&world) {
        let undisturbed = world.result(options.clone());
        let (journal, partial) = everything_but_the_name(&world, &options);
        let lengths = (0..journal.len()).step_by(journal.len() / 15);
        for (number, length) in lengths.enumerate() {
            let mut torn = journal[..length].to_vec();
            match number % 3 {
                0 => {}
                1 => torn.extend([0; 300]),
                _ => {
                    torn = journal.clone();
                    torn[length] ^= 1 << (number % 8);
                }
            }
            fs::write(world.journal(), &torn).unwrap();
            fs::write(world.partial(), &partial).unwrap();
            // A header in place of the marker is known as ours only by its record; a foreign journal is refused.
            let cut = world.run(options.clone());
            if let Err(error) = cut {
                assert_eq!(error.code, Code::PartialForeign);
                fs::write(world.partial(), b"DF11-PARTIAL/1\r\n").unwrap();
                if error.path == Some(world.journal()) {
                    fs::remove_file(world.journal()).unwrap();
                }
            } else {
                assert!(fs::read(world.target()).unwrap() == undisturbed);
                fs::remove_file(world.target()).unwrap();
                continue;
            }
            finish(&world, &options, &undisturbed);
        }
    }
}

/// Runs to the moment at which the file would get its name: the journal, and the partial file with its header.
fn everything_but_the_name(world: &World, options: &Options) -> (Vec<u8>, Vec<u8>) {
    let options = Options {
        if_exists: IfExists::Replace,
        ..options.clone()
    };
    let job = Job::start(world.plan(options).unwrap()).unwrap();
    // A folder cannot be replaced by a file.
    fs::create_dir(world.target()).unwrap();
    let error = job.result().unwrap_err();
    assert_eq!(error.code, Code::Write, "{error}");
    let kept = "What is finished is kept in model-DF11.safetensors.partial: start again, and it goes on from there.";
    assert!(error.hint.contains(kept), "{error}");
    fs::remove_dir(world.target()).unwrap();
    let journal = fs::read(world.journal()).unwrap();
    let partial = fs::read(world.partial()).unwrap();
    assert!(!partial.starts_with(b"DF11-PARTIAL"));
    (journal, partial)
}

#[test]
fn nothing_is_read_where_only_the_name_was_missing() {
    let world = World::mixed(3);
    for options in modes(&world) {
        let undisturbed = world.result(options.clone());
        everything_but_the_name(&world, &options);
        let report = finish(&world, &options, &undisturbed);
        assert_eq!(report.bytes_read, 0);
        assert!(report.resumed_bytes > 0);
    }
}

/// Killed when the file had its name, and the partial file or its journal was still there.
#[test]
fn what_is_left_beside_a_finished_file_is_removed() {
    for partial in [false, true] {
        let world = World::mixed(1);
        world.run(world.options()).unwrap();
        fs::write(world.journal(), b"DF11-JOURNAL/1\r\n").unwrap();
        if partial {
            fs::hard_link(world.target(), world.partial()).unwrap();
        }
        let again = world.run(world.options()).unwrap();
        assert_eq!(again.status, Status::AlreadyDone);
        let left = [
            "architectures",
            "model-DF11.safetensors",
            "model.safetensors",
        ];
        assert_eq!(world.files(), left);
        let replace = Options {
            if_exists: IfExists::Replace,
            ..world.options()
        };
        if partial {
            fs::hard_link(world.target(), world.partial()).unwrap();
        }
        world.run(replace).unwrap();
        assert_eq!(world.files(), left);
    }
}

/// Another job's partial file is of no use, and the report says why.
#[test]
fn another_job_starts_over() {
    let world = world();
    let undisturbed = world.result(world.options());
    let official = Options {
        header: HeaderMode::Official,
        ..world.options()
    };
    let cases = [
        (official, "it was made with other options"),
        (
            Options {
                keep_uncompressed: true,
                ..world.options()
            },
            "it was made with other options",
        ),
        (
            Options {
                verify: Verify::Off,
                ..world.options()
            },
            "it was made with other options",
        ),
    ];
    for (options, why) in cases {
        interrupt(&world, &options, 60);
        let report = finish(&world, &world.options(), &undisturbed);
        assert_eq!(note(&report, REPLACED), format!("{REPLACED}{why}"));
        assert_eq!(report.resumed_bytes, 0);
    }
    interrupt(&world, &world.options(), 60);
    let anew = Options {
        no_resume: true,
        ..world.options()
    };
    let report = finish(&world, &anew, &undisturbed);
    let why = "a start from the beginning was asked for";
    assert_eq!(note(&report, REPLACED), format!("{REPLACED}{why}"));
    // How it is made does not matter.
    interrupt(&world, &world.options(), 60);
    let other_way = Options {
        threads: Some(1),
        ..world.small()
    };
    assert!(finish(&world, &other_way, &undisturbed).resumed_bytes > 0);
}

#[test]
fn a_source_that_has_changed_since_starts_over() {
    let world = world();
    let options = world.options();
    let changes: [&dyn Fn(&Path); 2] = [
        &|source| {
            let file = OpenOptions::new().write(true).open(source).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(7))
                .unwrap();
        },
        &|source| {
            let mut file = OpenOptions::new().write(true).open(source).unwrap();
            file.seek(SeekFrom::End(-200_000)).unwrap();
            file.write_all(&[0x3D; 100]).unwrap();
        },
    ];
    for change in changes {
        interrupt(&world, &options, 60);
        change(&world.source());
        let report = world.run(options.clone()).unwrap();
        let found = fs::read(world.target()).unwrap();
        fs::remove_file(world.target()).unwrap();
        let why = "the source has changed since";
        assert_eq!(note(&report, REPLACED), format!("{REPLACED}{why}"));
        assert!(found == world.result(options.clone()));
    }
}

#[test]
fn cancelling_a_resumed_run_leaves_nothing() {
    let world = world();
    for options in modes(&world) {
        interrupt(&world, &options, 50);
        let job = world.start(Options {
            max_rate: Some(1_000_000),
            ..options
        });
        wait_for(&job, |now| now.units_done > 0);
        job.cancel();
        assert!(job.join(Some(Duration::from_secs(1))));
        assert_eq!(job.result().unwrap_err().code, Code::Cancelled);
        world.assert_clean();
    }
}

/// The bar begins where the earlier run has come, and ends at its end.
#[test]
fn progress_counts_what_was_there() {
    let world = world();
    interrupt(&world, &world.options(), 70);
    let slow = Options {
        max_rate: Some(4_000_000),
        ..world.options()
    };
    let job = world.start(slow);
    let first = wait_for(&job, |now| now.units_done > 0);
    assert!(first.bytes_in * 4 > first.bytes_total, "{first:?}");
    job.result().unwrap();
    let last = job.snapshot();
    assert_eq!((last.bytes_in, last.units_done), (last.bytes_total, 6));
}

/// Another target is another job.
#[test]
fn a_partial_file_serves_its_own_target_only() {
    let world = world();
    interrupt(&world, &world.options(), 60);
    let target = world.path("other.safetensors");
    let plan = plan(&world.source(), Some(&target), world.options()).unwrap();
    assert_eq!(Job::start(plan).unwrap().result().unwrap().resumed_bytes, 0);
    assert!(world.partial().exists());
}
