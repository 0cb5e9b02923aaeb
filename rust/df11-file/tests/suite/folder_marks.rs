//! What marks a folder as ours while it is written: taken over from a run that was killed at any moment, held against a second one, gone at the end.

use std::fs;

use df11_file::{Code, Options, Status, options::IfExists};

use crate::{
    common::{folder::contents, world::wait_for},
    folder_resume::{
        JOURNAL, MARKER, REPLACED, assert_clean, assert_same, finish, leave, model, note, start,
        take, undisturbed,
    },
};

/// Killed between the moment when the folder got its name and the one when its marks were removed.
#[test]
fn marks_in_a_finished_folder_are_removed() {
    let folder = model();
    let undisturbed = undisturbed(&folder, &folder.world.options());
    for marks in [&[MARKER, JOURNAL][..], &[MARKER], &[JOURNAL]] {
        folder.run(folder.world.options()).unwrap();
        let mark = || {
            for mark in marks {
                let text = match *mark {
                    MARKER => "DF11-PARTIAL/1\r\n",
                    _ => "DF11-JOURNAL/1\r\n",
                };
                fs::write(folder.target().join(mark), text).unwrap();
            }
        };
        mark();
        let again = folder.run(folder.world.options()).unwrap();
        assert_eq!(again.status, Status::AlreadyDone);
        assert_same(&contents(&folder.target()), &undisturbed);
        mark();
        let replace = Options {
            if_exists: IfExists::Replace,
            ..folder.world.options()
        };
        folder.run(replace).unwrap();
        assert_same(&take(&folder), &undisturbed);
        assert_clean(&folder);
    }
    // What has their names and is not ours stays.
    folder.run(folder.world.options()).unwrap();
    let mine = folder.target().join(MARKER);
    fs::write(&mine, "mine").unwrap();
    let again = folder.run(folder.world.options()).unwrap();
    assert_eq!(again.status, Status::AlreadyDone);
    assert_eq!(fs::read(mine).unwrap(), b"mine");
}

/// Killed at the first moment of a run, or at the last one of its removal.
#[test]
fn a_folder_that_is_hardly_there_is_taken() {
    let folder = model();
    let undisturbed = undisturbed(&folder, &folder.world.options());
    let lefts: [&[(&str, &str)]; 4] = [
        &[],
        &[(MARKER, "")],
        &[(MARKER, "DF11-PARTIAL/1\r\n")],
        &[(JOURNAL, "DF11-JOURNAL/1\r\n")],
    ];
    for left in lefts {
        let left = left.iter();
        let left = left.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        leave(&folder, &left.collect());
        let report = finish(&folder, &folder.world.options(), &undisturbed);
        assert_eq!(
            note(&report, REPLACED),
            format!("{REPLACED}it has no journal that can be read")
        );
    }
}

#[test]
fn a_second_run_is_told_who_holds_the_folder() {
    let folder = model();
    let options = folder.world.options();
    let slow = Options {
        max_rate: Some(8_000_000),
        ..options.clone()
    };
    let first = start(&folder, slow);
    wait_for(&first, |now| now.units_done > 1);
    let error = folder.run(options.clone()).unwrap_err();
    assert_eq!(
        (error.code, error.path),
        (Code::TargetBusy, Some(folder.target()))
    );
    let holder = format!(": process {} on ", std::process::id());
    assert!(error.message.contains(&holder), "{}", error.message);
    assert_eq!(first.result().unwrap().status, Status::Done);
    let found = take(&folder);
    assert_same(&found, &undisturbed(&folder, &options));
}
