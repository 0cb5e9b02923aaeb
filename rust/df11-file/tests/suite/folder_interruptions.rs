//! What can happen while a folder is written: a disk that fills, one that cannot be written to, a stop; and what the bar shows meanwhile.

use std::{fs, path::PathBuf};

use df11_file::{
    Code, Error, Job, Options, Report,
    options::{Form, HeaderMode},
    plan,
};

use crate::common::{
    checkpoint::Tensor,
    folder::{ModelFolder, contents},
    mount::Mount,
    skip, weights,
    world::wait_for,
};
use crate::folder_resume::snapshot;

/// Twelve MB in three units and a tensor, in two files.
fn model() -> ModelFolder {
    let unit = |index: u64| {
        let name = format!("one.{index}.weight");
        Tensor::bf16(&name, weights::realistic(index, 1_500_000))
    };
    let table = Tensor::new("table", "U8", &[3_000_000], vec![5; 3_000_000]);
    ModelFolder::in_layout(
        vec![vec![unit(0), table], vec![unit(1), unit(2)]],
        "diffusers",
    )
}

fn modes(folder: &ModelFolder) -> Vec<Options> {
    let options = |form, header| Options {
        form: Some(form),
        header,
        ..folder.world.options()
    };
    vec![
        options(Form::Folder, HeaderMode::SelfDescribing),
        options(Form::Folder, HeaderMode::Official),
        options(Form::FolderSingle, HeaderMode::Official),
    ]
}

/// A mounted file system of `bytes`; none where mounting is not permitted, which is said.
fn disk(folder: &ModelFolder, bytes: u64) -> Option<Mount> {
    fs::create_dir_all(folder.world.path("disk")).unwrap();
    let mount = Mount::new(&folder.world.path("disk"), bytes);
    let skipped = |reason| {
        skip(&format!(
            "no file system of our own can be mounted: {reason}"
        ));
    };
    mount.map_err(skipped).ok()
}

fn on_disk(folder: &ModelFolder) -> PathBuf {
    folder.world.path("disk/result")
}

fn run(folder: &ModelFolder, options: Options) -> Result<Report, Error> {
    let plan = plan(&folder.path(), Some(&on_disk(folder)), options)?;
    Job::start(plan)?.result()
}

#[test]
fn a_disk_that_is_too_small_from_the_start() {
    let folder = model();
    let Some(_mount) = disk(&folder, 2_000_000) else {
        return;
    };
    for options in modes(&folder) {
        let error = run(&folder, options).unwrap_err();
        assert_eq!(error.code, Code::NoSpace);
        assert!(error.message.contains("the result needs about"), "{error}");
        assert_eq!(contents(&folder.world.path("disk")).len(), 0);
    }
}

#[test]
fn a_disk_that_fills_is_given_its_space_back() {
    // This hardly shrinks, so the result is larger than expected.
    let hard = Tensor::bf16("one.0.weight", weights::many_tables(1, 4_000_000));
    let folder = ModelFolder::in_layout(vec![vec![hard]], "diffusers");
    let Some(_mount) = disk(&folder, 6_000_000) else {
        return;
    };
    for options in modes(&folder) {
        assert_eq!(run(&folder, options).unwrap_err().code, Code::NoSpace);
        assert_eq!(contents(&folder.world.path("disk")).len(), 0);
    }
}

#[test]
fn what_an_interrupted_run_has_written_is_not_needed_again() {
    let folder = model();
    for options in modes(&folder) {
        let Some(_mount) = disk(&folder, 12_000_000) else {
            return;
        };
        let slow = Options {
            max_rate: Some(12_000_000),
            ..options.clone()
        };
        let partial = folder.world.path("disk/result.partial");
        // Behind its second unit a run may end before it is stopped.
        let left = (0..20).find_map(|_| {
            let plan = plan(&folder.path(), Some(&on_disk(&folder)), slow.clone()).unwrap();
            let job = Job::start(plan).unwrap();
            wait_for(&job, |now| now.units_done > 1);
            let left = snapshot(&partial);
            job.cancel();
            match job.result() {
                Ok(_) => {
                    fs::remove_dir_all(on_disk(&folder)).unwrap();
                    None
                }
                Err(error) => {
                    assert_eq!(error.code, Code::Cancelled);
                    left
                }
            }
        });
        fs::create_dir(&partial).unwrap();
        for (name, bytes) in left.unwrap() {
            fs::write(partial.join(name), bytes).unwrap();
        }
        let report = run(&folder, options).unwrap();
        assert!(report.resumed_bytes > 0, "{:?}", report.notes);
    }
}

#[test]
fn a_disk_that_cannot_be_written_to() {
    let folder = model();
    let Some(mount) = disk(&folder, 20_000_000) else {
        return;
    };
    mount.read_only();
    let error = run(&folder, folder.world.options()).unwrap_err();
    assert_eq!(error.code, Code::Write);
    assert_eq!(error.path, Some(folder.world.path("disk/result.partial")));
}

/// One bar over all files, that only grows and ends at its end.
#[test]
fn progress_goes_over_all_files() {
    let folder = model();
    for options in modes(&folder) {
        let slow = Options {
            max_rate: Some(20_000_000),
            ..options
        };
        let job = Job::start(folder.plan(slow).unwrap()).unwrap();
        let (mut before, mut seen) = (0, 0);
        while !job.join(Some(std::time::Duration::from_millis(5))) {
            let now = job.snapshot();
            assert!(before <= now.bytes_in && now.bytes_in <= now.bytes_total);
            seen += u32::from(now.bytes_in > before);
            before = now.bytes_in;
        }
        job.result().unwrap();
        let last = job.snapshot();
        assert_eq!((last.bytes_in, last.units_done), (last.bytes_total, 3));
        assert!(seen > 10, "{seen}");
        fs::remove_dir_all(folder.target()).unwrap();
    }
}

/// Another program takes the folder away, or puts its own in its place: that is neither published nor removed.
#[test]
fn a_folder_that_took_our_place_survives() {
    for cancelled in [false, true] {
        let folder = model();
        let slow = Options {
            max_rate: Some(6_000_000),
            ..folder.world.options()
        };
        let job = Job::start(folder.plan(slow).unwrap()).unwrap();
        let partial = folder.world.path("model-DF11.partial");
        wait_for(&job, |now| now.units_done > 0);
        fs::rename(&partial, folder.world.path("moved")).unwrap();
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("mine"), "mine").unwrap();
        if cancelled {
            job.cancel();
        }
        let expected = if cancelled {
            Code::Cancelled
        } else {
            Code::Write
        };
        let error = job.result().unwrap_err();
        assert_eq!(error.code, expected, "{error}");
        assert!(!folder.target().exists());
        assert_eq!(fs::read(partial.join("mine")).unwrap(), b"mine");
    }
}
