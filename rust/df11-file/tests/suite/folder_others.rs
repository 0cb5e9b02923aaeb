//! What others put into a folder that is written, or take away: never changed, removed or published, and always seen.

use std::{fs, path::Path};

use df11_file::{Code, Job, Options};

use crate::{
    common::{
        folder::{ModelFolder, contents},
        world::wait_for,
    },
    folder_resume::{assert_same, finish, interrupt, model, partial, start, take, undisturbed},
};

/// What is done to the partial folder, or to one file of ours in it.
type Deed<'a> = &'a dyn Fn(&Path, &Path);
/// What is done to one path.
type At<'a> = &'a dyn Fn(&Path);

fn slow(folder: &ModelFolder) -> Job {
    let options = Options {
        max_rate: Some(9_000_000),
        ..folder.world.options()
    };
    start(folder, options)
}

#[test]
fn what_is_not_ours_in_a_folder_that_was_left_is_refused_by_its_name() {
    let folder = model();
    let options = folder.world.options();
    let undisturbed = undisturbed(&folder, &options);
    let source = contents(&folder.path());
    let shard = folder.file(folder.shard(0));
    interrupt(&folder, &options, 40);
    let (mine, ours) = (
        partial(&folder).join("mine.safetensors"),
        partial(&folder).join("one_5.safetensors"),
    );
    let deeds: [(&str, &Path, At<'_>); 5] = [
        ("a file", &mine, &|path| fs::write(path, "mine").unwrap()),
        ("a folder", &mine, &|path| fs::create_dir(path).unwrap()),
        ("a hard link to the source", &ours, &|path| {
            let _ = fs::remove_file(path);
            fs::hard_link(&shard, path).unwrap();
        }),
        ("a link to the source", &ours, &|path| {
            std::os::unix::fs::symlink(&shard, path).unwrap();
        }),
        ("a link to nothing", &mine, &|path| {
            std::os::unix::fs::symlink("nothing", path).unwrap();
        }),
    ];
    for (what, path, deed) in deeds {
        deed(path);
        let before = fs::read_dir(partial(&folder)).unwrap().count();
        let error = folder.run(options.clone()).unwrap_err();
        assert_eq!(error.code, Code::PartialForeign, "{what}: {error}");
        assert_eq!(error.path.as_deref(), Some(path), "{what}");
        assert_eq!(
            fs::read_dir(partial(&folder)).unwrap().count(),
            before,
            "{what}"
        );
        assert_same(&contents(&folder.path()), &source);
        let is_folder = fs::symlink_metadata(path).unwrap().is_dir();
        if is_folder {
            fs::remove_dir(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(finish(&folder, &options, &undisturbed).resumed_bytes > 0);
}

#[test]
fn what_happens_to_the_files_meanwhile_is_seen_at_the_end() {
    let folder = model();
    let options = folder.world.options();
    let undisturbed = undisturbed(&folder, &options);
    let source = contents(&folder.path());
    let shard = folder.file(folder.shard(0));
    let deeds: [(&str, Deed<'_>); 7] = [
        ("gone", &|_, file| fs::remove_file(file).unwrap()),
        ("emptied by another", &|_, file| {
            fs::remove_file(file).unwrap();
            fs::write(file, "").unwrap();
        }),
        ("as long as ours", &|_, file| {
            let bytes = fs::read(file).unwrap();
            fs::rename(file, file.with_file_name(".ours")).unwrap();
            fs::write(file, bytes).unwrap();
        }),
        ("cut", &|_, file| {
            let file = fs::OpenOptions::new().write(true).open(file).unwrap();
            file.set_len(100_000).unwrap();
        }),
        ("a link", &|_, file| {
            fs::remove_file(file).unwrap();
            std::os::unix::fs::symlink(&shard, file).unwrap();
        }),
        ("a file more", &|place, _| {
            fs::write(place.join("evil.safetensors"), "mine").unwrap();
        }),
        ("a folder more", &|place, _| {
            fs::create_dir(place.join("mine")).unwrap();
            fs::write(place.join("mine/file"), "mine").unwrap();
        }),
    ];
    for (what, deed) in deeds {
        let job = slow(&folder);
        wait_for(&job, |now| now.units_done > 1);
        deed(
            &partial(&folder),
            &partial(&folder).join("one_0.safetensors"),
        );
        let error = job.result().unwrap_err();
        assert_eq!(error.code, Code::Write, "{what}: {error}");
        assert!(error.path.unwrap().starts_with(partial(&folder)), "{what}");
        assert!(!folder.target().exists(), "{what}");
        assert_same(&contents(&folder.path()), &source);
        for more in ["evil.safetensors", "mine/file"] {
            let more = partial(&folder).join(more);
            assert!(!more.exists() || fs::read(&more).unwrap() == b"mine");
        }
        // What was finished was kept, and is gone on with when that is out of the way.
        let _ = fs::remove_file(partial(&folder).join("evil.safetensors"));
        let _ = fs::remove_dir_all(partial(&folder).join("mine"));
        let _ = fs::remove_file(partial(&folder).join(".ours"));
        if fs::symlink_metadata(partial(&folder).join("one_0.safetensors"))
            .is_ok_and(|found| found.is_symlink())
        {
            fs::remove_file(partial(&folder).join("one_0.safetensors")).unwrap();
        }
        let report = finish(&folder, &options, &undisturbed);
        assert!(report.resumed_bytes > 0, "{what}");
    }
}

/// A file that somebody has put there stays, alone; one that is hidden, as some systems put into any folder, hinders nothing.
#[test]
fn what_is_not_ours_survives_a_stop() {
    let folder = model();
    let job = slow(&folder);
    wait_for(&job, |now| now.units_done > 0);
    fs::write(partial(&folder).join("mine.txt"), "mine").unwrap();
    job.cancel();
    assert_eq!(job.result().unwrap_err().code, Code::Cancelled);
    let left = contents(&partial(&folder));
    assert_eq!(
        left.into_iter().collect::<Vec<_>>(),
        [("mine.txt".to_owned(), b"mine".to_vec())]
    );
    fs::remove_dir_all(partial(&folder)).unwrap();
    let job = slow(&folder);
    wait_for(&job, |now| now.units_done > 0);
    fs::write(partial(&folder).join(".DS_Store"), "hidden").unwrap();
    job.result().unwrap();
    assert_eq!(take(&folder)[".DS_Store"], b"hidden");
}
