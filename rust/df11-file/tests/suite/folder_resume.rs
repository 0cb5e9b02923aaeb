//! A folder that was left by an interrupted run is gone on with: every file is that of an undisturbed run in the end, whatever was left.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use df11_file::{
    Code, Job, Options, Report, Status,
    options::{Form, HeaderMode, Verify},
};

use crate::common::{
    checkpoint::Tensor,
    folder::{ModelFolder, contents},
    weights,
    world::wait_for,
};

const WENT_ON: &str = "went on from an interrupted run: ";
pub const REPLACED: &str = "a partial folder left by an interrupted run was replaced: ";
pub const MARKER: &str = ".df11.partial";
pub const JOURNAL: &str = ".df11.journal";

pub type Files = BTreeMap<String, Vec<u8>>;

/// Six units in two files, one of them cut by the files' border and one read in two spans, with companions; 13 MB.
pub fn model() -> ModelFolder {
    let unit = |index: u64, weights: usize| {
        let name = format!("one.{index}.weight");
        Tensor::bf16(&name, weights::realistic(index, weights))
    };
    let part = |name: &str, weights: usize| Tensor::bf16(name, weights::realistic(9, weights));
    let folder = ModelFolder::in_layout(
        vec![
            vec![
                unit(0, 700_000),
                Tensor::f32("one.0.norm.weight", &[1.0, 1.001]),
                Tensor::new("table", "U8", &[900_000], vec![5; 900_000]),
                unit(1, 900_000),
                part("three.2.a.weight", 30_000),
                part("three.2.b.weight", 20_000),
            ],
            vec![
                part("three.2.c.weight", 5_000),
                unit(3, 2_500_000),
                Tensor::new("empty", "F16", &[0, 4], Vec::new()),
                unit(4, 1_000_000),
                Tensor::f32("one.4.bias", &[-3.5; 900]),
                unit(5, 900_000),
            ],
        ],
        "transformers",
    );
    fs::write(folder.file("tokenizer.json"), "{}").unwrap();
    folder
}

fn modes(folder: &ModelFolder) -> Vec<Options> {
    let options = |form, header, keep_uncompressed| Options {
        form: Some(form),
        header,
        keep_uncompressed,
        ..folder.world.small()
    };
    vec![
        options(Form::Folder, HeaderMode::SelfDescribing, false),
        options(Form::Folder, HeaderMode::SelfDescribing, true),
        options(Form::Folder, HeaderMode::Official, false),
        options(Form::Folder, HeaderMode::Official, true),
        options(Form::FolderSingle, HeaderMode::SelfDescribing, false),
        options(Form::FolderSingle, HeaderMode::Official, true),
    ]
}

pub fn partial(folder: &ModelFolder) -> PathBuf {
    folder.world.path("model-DF11.partial")
}

pub fn start(folder: &ModelFolder, options: Options) -> Job {
    Job::start(folder.plan(options).unwrap()).unwrap()
}

pub fn undisturbed(folder: &ModelFolder, options: &Options) -> Files {
    folder.run(options.clone()).unwrap();
    take(folder)
}

/// The files of the result, which is removed.
pub fn take(folder: &ModelFolder) -> Files {
    let files = contents(&folder.target());
    fs::remove_dir_all(folder.target()).unwrap();
    files
}

pub fn assert_clean(folder: &ModelFolder) {
    assert_eq!(folder.world.files(), ["architectures", "model"]);
}

/// Leaves what a run leaves that is killed when it has read so many percent of what it reads.
pub fn interrupt(folder: &ModelFolder, options: &Options, percent: u64) {
    let slow = Options {
        max_rate: Some(40_000_000),
        ..options.clone()
    };
    // On a busy machine a run may have ended before it is stopped.
    let left = (0..20).find_map(|_| {
        let job = start(folder, slow.clone());
        wait_for(&job, |now| {
            now.bytes_total > 0 && now.bytes_in * 100 >= now.bytes_total * percent
        });
        let left = snapshot(&partial(folder));
        job.cancel();
        match job.result() {
            Ok(_) => drop(take(folder)),
            Err(error) => assert_eq!(error.code, Code::Cancelled),
        }
        assert_clean(folder);
        left.filter(|left| left.contains_key(MARKER) && !left.contains_key("config.json"))
    });
    let left = left.unwrap();
    // What is not finished is no model for anybody: headers come last.
    assert!(percent > 80 || !left.iter().any(has_header));
    leave(folder, &left);
}

fn has_header((name, bytes): (&String, &Vec<u8>)) -> bool {
    name.ends_with(".safetensors") && bytes.iter().take(8).any(|byte| *byte != 0)
}

/// The files of a folder that is written meanwhile, if it stays there. As after a crash, the journal may know less than is written, never more.
pub fn snapshot(folder: &Path) -> Option<Files> {
    let journal = fs::read(folder.join(JOURNAL)).ok()?;
    let mut files = Files::from([(JOURNAL.to_owned(), journal)]);
    for entry in fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != JOURNAL {
            files.insert(name, fs::read(entry.path()).ok()?);
        }
    }
    Some(files)
}

pub fn leave(folder: &ModelFolder, files: &Files) {
    fs::create_dir(partial(folder)).unwrap();
    for (name, bytes) in files {
        fs::write(partial(folder).join(name), bytes).unwrap();
    }
}

pub fn note<'a>(report: &'a Report, start: &str) -> &'a str {
    let found = report.notes.iter().find(|note| note.starts_with(start));
    found.unwrap_or_else(|| panic!("{start}: {:?}", report.notes))
}

pub fn assert_same(found: &Files, expected: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    for (name, bytes) in expected {
        // No assert_eq: the bytes are too many to print.
        assert!(found[name] == *bytes, "{name} differs");
    }
}

/// Runs to the end; the result is the undisturbed one, and nothing else is left.
pub fn finish(folder: &ModelFolder, options: &Options, undisturbed: &Files) -> Report {
    let report = folder.run(options.clone()).unwrap();
    assert_eq!(report.status, Status::Done);
    assert_same(&take(folder), undisturbed);
    assert_clean(folder);
    report
}

#[test]
fn a_resumed_run_ends_with_the_same_files() {
    let folder = model();
    for options in modes(&folder) {
        let undisturbed = undisturbed(&folder, &options);
        let all = finish(&folder, &options, &undisturbed).bytes_read;
        let mut before = all;
        for percent in [5, 40, 75, 97] {
            interrupt(&folder, &options, percent);
            let report = finish(&folder, &options, &undisturbed);
            if percent < 10 {
                continue;
            }
            note(&report, WENT_ON);
            let mode = (options.form, options.header, percent);
            let read = report.bytes_read;
            assert!(read < before, "{mode:?}: {read} of {before}");
            before = read;
        }
        assert!(before * 3 < all, "{before} of {all}");
    }
}

/// Whatever lies in the partial folder: files that are damaged, gone, too long or another's end as they should.
#[test]
fn damage_is_seen_and_mended() {
    let folder = model();
    for options in modes(&folder) {
        let undisturbed = undisturbed(&folder, &options);
        interrupt(&folder, &options, 97);
        let left = contents(&partial(&folder));
        fs::remove_dir_all(partial(&folder)).unwrap();
        let largest = left.iter().max_by_key(|(_, bytes)| bytes.len()).unwrap();
        let (largest, length) = (largest.0.clone(), largest.1.len());
        let with = |change: &dyn Fn(&mut Files)| {
            let mut left = left.clone();
            change(&mut left);
            leave(&folder, &left);
            let report = finish(&folder, &options, &undisturbed);
            note(&report, WENT_ON).to_owned()
        };
        let flipped = with(&|left| left.get_mut(&largest).unwrap()[length / 3] ^= 1);
        assert!(flipped.contains("; 1 others did not"), "{flipped}");
        let gone = with(&|left| drop(left.remove(&largest)));
        assert!(gone.contains("others did not"), "{gone}");
        let cut = with(&|left| left.get_mut(&largest).unwrap().truncate(length / 2));
        assert!(cut.contains("others did not"), "{cut}");
        let longer = with(&|left| left.get_mut(&largest).unwrap().extend([7; 99]));
        assert!(!longer.contains("others did not"), "{longer}");
        let more = with(&|left| {
            left.insert("config.json".to_owned(), b"half".to_vec());
        });
        assert!(!more.contains("others did not"), "{more}");
    }
}

#[test]
fn a_torn_journal_has_its_first_records() {
    let folder = model();
    for options in modes(&folder) {
        let undisturbed = undisturbed(&folder, &options);
        interrupt(&folder, &options, 97);
        let left = contents(&partial(&folder));
        fs::remove_dir_all(partial(&folder)).unwrap();
        let journal = &left[JOURNAL];
        for (number, length) in (0..journal.len()).step_by(journal.len() / 6).enumerate() {
            let mut torn = journal[..length].to_vec();
            if number % 2 == 1 {
                torn = journal.clone();
                torn[length] ^= 1;
            }
            let mut left = left.clone();
            left.insert(JOURNAL.to_owned(), torn);
            leave(&folder, &left);
            finish(&folder, &options, &undisturbed);
        }
    }
}

/// Leaves all files with their headers: one that is to be copied at the end has gone.
fn fail_at_the_end(folder: &ModelFolder, options: &Options) {
    let plan = folder.plan(options.clone()).unwrap();
    fs::remove_file(folder.file("tokenizer.json")).unwrap();
    let error = Job::start(plan).unwrap().result().unwrap_err();
    fs::write(folder.file("tokenizer.json"), "{}").unwrap();
    assert_eq!(error.code, Code::Read, "{error}");
    let kept =
        "What is finished is kept in model-DF11.partial: start again, and it goes on from there.";
    assert!(error.hint.contains(kept), "{error}");
    assert!(!folder.target().exists());
}

#[test]
fn nothing_is_read_again_after_a_failure_at_the_end() {
    let folder = model();
    for options in modes(&folder) {
        let undisturbed = undisturbed(&folder, &options);
        fail_at_the_end(&folder, &options);
        let report = finish(&folder, &options, &undisturbed);
        assert_eq!(report.bytes_read, 0);
        assert!(report.resumed_bytes > 0);
    }
}

/// Where something is to be made again, no file is taken for a whole one meanwhile.
#[test]
fn headers_go_while_the_work_goes_on() {
    let folder = model();
    let options = folder.world.options();
    let undisturbed = undisturbed(&folder, &options);
    fail_at_the_end(&folder, &options);
    fs::remove_file(partial(&folder).join("one_3.safetensors")).unwrap();
    let slow = Options {
        max_rate: Some(4_000_000),
        ..options
    };
    let job = start(&folder, slow);
    wait_for(&job, |now| now.units_done > 4 && now.bytes_in > 0);
    let left = snapshot(&partial(&folder)).unwrap();
    assert!(!left.keys().any(|name| name == "config.json"));
    assert!(!left.iter().any(has_header));
    job.result().unwrap();
    assert_same(&take(&folder), &undisturbed);
}

/// Another job's partial folder is of no use, and the report says why.
#[test]
fn another_job_starts_over() {
    let folder = model();
    let options = folder.world.options();
    let undisturbed = undisturbed(&folder, &options);
    let mut others = vec![options.clone(); 5];
    others[0].header = HeaderMode::Official;
    others[1].keep_uncompressed = true;
    others[2].verify = Verify::Off;
    others[3].form = Some(Form::FolderSingle);
    others[4].config_version = "0.2.0".parse().unwrap();
    let starts_over = |options: &Options, why: &str| {
        let report = finish(&folder, options, &undisturbed);
        assert_eq!(note(&report, REPLACED), format!("{REPLACED}{why}"));
        assert_eq!(report.resumed_bytes, 0);
    };
    for other in others {
        interrupt(&folder, &other, 60);
        starts_over(&options, "it was made with other options");
    }
    // Files of the other job go, also where this one has none of their names.
    let single = Options {
        form: Some(Form::FolderSingle),
        ..options.clone()
    };
    interrupt(&folder, &options, 60);
    folder.run(single).unwrap();
    let names: Vec<_> = take(&folder).into_keys().collect();
    assert_eq!(
        names,
        ["config.json", "model.safetensors", "tokenizer.json"]
    );
    assert_clean(&folder);
    interrupt(&folder, &options, 60);
    let anew = Options {
        no_resume: true,
        ..options.clone()
    };
    starts_over(&anew, "a start from the beginning was asked for");
    // How it is made does not matter.
    interrupt(&folder, &options, 60);
    let other_way = Options {
        threads: Some(1),
        ..folder.world.small()
    };
    assert!(finish(&folder, &other_way, &undisturbed).resumed_bytes > 0);
}

/// Any of its files: the second of the weights, their index, the configuration.
#[test]
fn a_source_that_has_changed_since_starts_over() {
    let changes: [&dyn Fn(&ModelFolder); 4] = [
        &|folder| {
            let second = folder.file(folder.shard(1));
            let file = OpenOptions::new().write(true).open(second).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(7))
                .unwrap();
        },
        &|folder| {
            let second = folder.file(folder.shard(1));
            let mut file = OpenOptions::new().write(true).open(second).unwrap();
            file.seek(SeekFrom::End(-200_000)).unwrap();
            file.write_all(&[0x3D; 100]).unwrap();
        },
        &|folder| {
            let mut index = folder.index();
            index["metadata"]["more"] = "x".repeat(500).into();
            folder.write_index(&index);
        },
        &|folder| {
            let config = format!("{{\"new\": 1,{}", &crate::common::folder::CONFIG[1..]);
            fs::write(folder.file("config.json"), config).unwrap();
        },
    ];
    for form in [Form::Folder, Form::FolderSingle] {
        let folder = model();
        let options = Options {
            form: Some(form),
            ..folder.world.options()
        };
        for change in changes {
            interrupt(&folder, &options, 60);
            change(&folder);
            let report = folder.run(options.clone()).unwrap();
            let found = take(&folder);
            let why = "the source has changed since";
            assert_eq!(note(&report, REPLACED), format!("{REPLACED}{why}"));
            assert_same(&found, &undisturbed(&folder, &options));
        }
    }
}

#[test]
fn a_stop_leaves_nothing_of_a_resumed_run_either() {
    let folder = model();
    for options in modes(&folder) {
        interrupt(&folder, &options, 50);
        let slow = Options {
            max_rate: Some(1_000_000),
            ..options
        };
        let job = start(&folder, slow);
        wait_for(&job, |now| now.units_done > 0);
        job.cancel();
        assert!(job.join(Some(Duration::from_secs(1))));
        assert_eq!(job.result().unwrap_err().code, Code::Cancelled);
        assert_clean(&folder);
    }
}

/// Names of files go by units, whichever of these are left as they are.
#[test]
fn a_unit_that_stays_as_it_is_takes_no_other_s_name() {
    let folder = ModelFolder::in_layout(
        vec![vec![
            Tensor::bf16("one.0.weight", vec![0x80, 0x7F]),
            Tensor::bf16("one.1.weight", weights::realistic(1, 400_000)),
            Tensor::bf16("one.2.weight", weights::realistic(2, 300_000)),
        ]],
        "transformers",
    );
    let kept = Options {
        keep_uncompressed: true,
        ..folder.world.options()
    };
    let undisturbed = undisturbed(&folder, &kept);
    let names: Vec<_> = undisturbed.keys().map(String::as_str).collect();
    let expected = [
        "config.json",
        "model.safetensors",
        "one_1.safetensors",
        "one_2.safetensors",
    ];
    assert_eq!(names, expected);
    interrupt(&folder, &kept, 80);
    note(&finish(&folder, &kept, &undisturbed), WENT_ON);
    folder.run(kept.clone()).unwrap();
    assert_eq!(folder.run(kept).unwrap().status, Status::AlreadyDone);
}
