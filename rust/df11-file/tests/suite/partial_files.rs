//! The partial file: marked, locked, replaced only where it is ours, and gone at the end.

use std::fs;

use crate::common::{
    assert_one_succeeds,
    checkpoint::Tensor,
    weights,
    world::{World, wait_for_half},
};
use df11_file::{Code, Options, Status};

const MARKER: &[u8; 16] = b"DF11-PARTIAL/1\r\n";

/// Reads for about two seconds.
fn braked(world: &World) -> Options {
    Options {
        max_rate: Some(4_000_000),
        ..world.options()
    }
}

fn world() -> World {
    World::new(vec![
        Tensor::bf16("one.0.weight", weights::realistic(1, 2_000_000)),
        Tensor::bf16("one.1.weight", weights::realistic(2, 2_000_000)),
    ])
}

#[test]
fn one_of_ours_is_replaced_and_said() {
    let world = World::mixed(1);
    let fresh = world.result(world.options());
    let lefts = [
        MARKER.to_vec(),
        [&MARKER[..], &vec![0xAB; 3_000_000]].concat(),
        // A run that was killed in its first moment.
        Vec::new(),
    ];
    for left in lefts {
        fs::write(world.partial(), left).unwrap();
        let report = world.run(world.options()).unwrap();
        let note =
            "a partial file left by an interrupted run was replaced: it has no journal that can be read".to_owned();
        assert!(report.notes.contains(&note), "{:?}", report.notes);
        assert!(
            fs::read(world.target()).unwrap() == fresh,
            "bytes of the old partial file are left"
        );
        fs::remove_file(world.target()).unwrap();
    }
    world.assert_clean();
}

#[test]
fn any_other_is_left_alone() {
    let world = World::mixed(1);
    let other = [
        b"DF11-PARTIAL/2\r\n".to_vec(),
        MARKER[..15].to_vec(),
        vec![b'x'; 100],
    ];
    for content in other {
        fs::write(world.partial(), &content).unwrap();
        let error = world.run(world.options()).unwrap_err();
        assert_eq!(error.code, Code::PartialForeign);
        assert_eq!(error.path, Some(world.partial()));
        assert_eq!(fs::read(world.partial()).unwrap(), content);
        assert!(!world.target().exists());
    }
}

#[test]
fn it_is_marked_from_its_first_byte_to_its_last() {
    let world = world();
    let job = world.start(braked(&world));
    wait_for_half(&job);
    assert!(fs::read(world.partial()).unwrap().starts_with(MARKER));
    assert!(!world.target().exists());
    job.cancel();
    assert_eq!(job.result().unwrap_err().code, Code::Cancelled);
    world.assert_clean();
}

#[test]
fn two_runs_at_once() {
    let world = world();
    let first = world.start(braked(&world));
    wait_for_half(&first);
    let error = world.run(world.options()).unwrap_err();
    assert_eq!(
        (error.code, error.path),
        (Code::TargetBusy, Some(world.target()))
    );
    let holder = format!(": process {} on ", std::process::id());
    assert!(error.message.contains(&holder), "{}", error.message);
    assert!(error.message.contains(", for "), "{}", error.message);
    assert!(
        world.partial().exists(),
        "the second run took the first one's file away"
    );
    assert_eq!(first.result().unwrap().status, Status::Done);
    assert!(!world.partial().exists());
}

/// A journal that cannot be read does not keep the second run from being told.
#[test]
fn two_runs_at_once_without_a_journal() {
    let world = world();
    let first = world.start(braked(&world));
    wait_for_half(&first);
    fs::remove_file(world.journal()).unwrap();
    let error = world.run(world.options()).unwrap_err();
    assert_eq!(error.message, "another run is writing this file");
    first.result().unwrap();
}

#[test]
fn a_journal_that_is_not_ours_is_left_alone() {
    let world = World::mixed(1);
    fs::write(world.journal(), b"dear diary").unwrap();
    let error = world.run(world.options()).unwrap_err();
    assert_eq!(
        (error.code, error.path),
        (Code::PartialForeign, Some(world.journal()))
    );
    assert_eq!(fs::read(world.journal()).unwrap(), b"dear diary");
    assert!(!world.partial().exists());
    // Ours, of another version, torn, or without its partial file.
    for left in [
        &b""[..],
        b"DF11-JOURNAL/9\r\nabc",
        b"DF11-JOURNAL/1\r\n\x07\0\0\0",
    ] {
        fs::write(world.journal(), left).unwrap();
        world.result(world.options());
        world.assert_clean();
    }
}

/// Whatever the moment at which runs meet, one succeeds at least, and no file is left that would stop the next run.
#[test]
fn many_runs_at_once() {
    let world = World::of_unit(weights::realistic(1, 50));
    for _ in 0..60 {
        let jobs: Vec<_> = (0..4).map(|_| world.start(world.options())).collect();
        let outcomes: Vec<_> = jobs.iter().map(|job| job.result()).collect();
        assert_one_succeeds(&outcomes);
        assert_eq!(world.files().len(), 3, "{:?}", world.files());
        assert_eq!(
            world.run(world.options()).unwrap().status,
            Status::AlreadyDone
        );
        fs::remove_file(world.target()).unwrap();
    }
    world.assert_clean();
}

/// Another program puts its own file where ours was: it is neither published nor deleted.
#[test]
fn a_file_that_took_our_place_survives() {
    for cancelled in [false, true] {
        let world = world();
        let job = world.start(braked(&world));
        wait_for_half(&job);
        fs::remove_file(world.partial()).unwrap();
        fs::write(world.partial(), b"precious").unwrap();
        if cancelled {
            job.cancel();
        }
        let error = job.result().unwrap_err();
        let expected = if cancelled {
            Code::Cancelled
        } else {
            Code::Write
        };
        assert_eq!(error.code, expected, "{error}");
        assert_eq!(fs::read(world.partial()).unwrap(), b"precious");
        assert!(!world.target().exists());
    }
}

/// A link in our place leads to a file that is not ours, even where that begins with the marker.
#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    for (hard, is_journal) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::mixed(1);
        let (place, mark) = if is_journal {
            (world.journal(), b"DF11-JOURNAL/1\r\n")
        } else {
            (world.partial(), MARKER)
        };
        let precious = [mark, &b"precious"[..]].concat();
        fs::write(world.path("precious"), &precious).unwrap();
        if hard {
            fs::hard_link(world.path("precious"), &place).unwrap();
        } else {
            std::os::unix::fs::symlink(world.path("precious"), &place).unwrap();
        }
        assert_eq!(world.fails(world.options()), Code::PartialForeign);
        assert_eq!(fs::read(world.path("precious")).unwrap(), precious);
        assert!(fs::symlink_metadata(place).is_ok());
    }
}
