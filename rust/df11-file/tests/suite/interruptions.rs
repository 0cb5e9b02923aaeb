//! What can happen during a run: it ends at once, with the right code, and leaves nothing.

use std::{
    fs::{self, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::Path,
    time::{Duration, Instant},
};

use crate::common::{
    checkpoint::Tensor,
    mount::Mount,
    skip, weights,
    world::{World, wait_for, wait_for_half},
};
use df11_file::{Code, Job, Options, Phase, options::HeaderMode, plan};

const MODES: [HeaderMode; 2] = [HeaderMode::SelfDescribing, HeaderMode::Official];

/// Twelve MB in three units and a tensor.
fn world() -> World {
    let unit = |index: u64| {
        Tensor::bf16(
            &format!("one.{index}.weight"),
            weights::realistic(index, 1_500_000),
        )
    };
    World::new(vec![
        unit(0),
        unit(1),
        Tensor::new("table", "U8", &[3_000_000], vec![5; 3_000_000]),
        unit(2),
    ])
}

/// Reads for two seconds at least.
fn braked(world: &World, header: HeaderMode) -> Options {
    Options {
        header,
        max_rate: Some(6_000_000),
        ..world.options()
    }
}

fn assert_ends(job: &Job, code: Code, within: Duration) {
    assert!(job.join(Some(within)), "it goes on after {within:?}");
    let error = job.result().expect_err("the job to fail");
    assert_eq!(error.code, code, "{error}");
}

#[test]
fn a_request_to_stop_is_followed_within_a_second() {
    let world = world();
    for header in MODES {
        let job = world.start(braked(&world, header));
        wait_for_half(&job);
        job.cancel();
        assert_ends(&job, Code::Cancelled, Duration::from_secs(1));
        world.assert_clean();
    }
}

#[test]
fn a_request_to_stop_before_the_first_byte() {
    let world = world();
    let job = world.start(Options {
        max_rate: Some(1),
        ..world.options()
    });
    wait_for(&job, |now| now.bytes_total > 0);
    job.cancel();
    assert_ends(&job, Code::Cancelled, Duration::from_secs(1));
    world.assert_clean();
}

#[test]
fn a_dropped_job_stops() {
    let world = world();
    let job = world.start(braked(&world, HeaderMode::SelfDescribing));
    wait_for_half(&job);
    drop(job);
    let deadline = Instant::now() + Duration::from_secs(2);
    while world.partial().exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    world.assert_clean();
}

#[test]
fn a_source_that_shrinks() {
    for header in MODES {
        let world = world();
        let job = world.start(braked(&world, header));
        wait_for_half(&job);
        let length = fs::metadata(world.source()).unwrap().len();
        OpenOptions::new()
            .write(true)
            .open(world.source())
            .unwrap()
            .set_len(length / 3)
            .unwrap();
        let error = job.result().unwrap_err();
        assert_eq!(
            (error.code, error.path),
            (Code::SourceChanged, Some(world.source()))
        );
        world.assert_clean();
    }
}

#[test]
fn a_source_that_is_written_to() {
    // Behind its end, or what is read next, so that the job fails in another way first.
    let changes = [
        (SeekFrom::End(0), vec![0; 100]),
        (SeekFrom::End(-1_000_000), vec![0xFF; 400_000]),
    ];
    for (header, (at, bytes)) in MODES.into_iter().zip(changes) {
        let world = world();
        let job = world.start(braked(&world, header));
        wait_for_half(&job);
        let mut file = OpenOptions::new().write(true).open(world.source()).unwrap();
        file.seek(at).unwrap();
        file.write_all(&bytes).unwrap();
        drop(file);
        assert_eq!(job.result().unwrap_err().code, Code::SourceChanged);
        world.assert_clean();
    }
}

#[test]
fn a_source_that_changed_between_plan_and_start() {
    let world = world();
    let plan = world.plan(world.options()).unwrap();
    OpenOptions::new()
        .append(true)
        .open(world.source())
        .unwrap()
        .write_all(b"more")
        .unwrap();
    assert_ends(
        &Job::start(plan).unwrap(),
        Code::SourceChanged,
        Duration::from_secs(1),
    );
    world.assert_clean();
}

#[test]
fn a_source_that_vanishes_does_no_harm() {
    let world = world();
    let intact = world.result(world.options());
    let job = world.start(braked(&world, HeaderMode::SelfDescribing));
    wait_for_half(&job);
    fs::remove_file(world.source()).unwrap();
    job.result().unwrap();
    assert!(fs::read(world.target()).unwrap() == intact);
}

fn to(world: &World, target: &Path, options: Options) -> Job {
    Job::start(plan(&world.source(), Some(target), options).unwrap()).unwrap()
}

/// A world with a mounted file system of `bytes` in its folder `disk`; none where mounting is not permitted, which is said.
fn with_disk(world: World, bytes: u64) -> Option<(World, Mount)> {
    fs::create_dir(world.path("disk")).unwrap();
    match Mount::new(&world.path("disk"), bytes) {
        Ok(mount) => Some((world, mount)),
        Err(reason) => {
            skip(&format!(
                "no file system of our own can be mounted: {reason}"
            ));
            None
        }
    }
}

#[test]
fn a_full_disk() {
    // This hardly shrinks, so the result is larger than expected and the disk fills during the run.
    let hard = World::new(vec![Tensor::bf16(
        "one.0.weight",
        weights::many_tables(1, 4_000_000),
    )]);
    let Some((world, _mount)) = with_disk(hard, 6_000_000) else {
        return;
    };
    let target = world.path("disk/result.safetensors");
    let job = to(&world, &target, world.options());
    assert_ends(&job, Code::NoSpace, Duration::from_secs(20));
    assert_eq!(fs::read_dir(world.path("disk")).unwrap().count(), 0);
    // An official file's size is known before its first weight is written.
    let job = to(
        &world,
        &target,
        Options {
            header: HeaderMode::Official,
            ..world.options()
        },
    );
    let error = job.result().unwrap_err();
    assert_eq!(error.code, Code::NoSpace);
    assert!(error.message.contains("the result needs about"), "{error}");
    assert_eq!(fs::read_dir(world.path("disk")).unwrap().count(), 0);
}

#[test]
fn a_disk_that_is_too_small_from_the_start() {
    let Some((world, _mount)) = with_disk(world(), 2_000_000) else {
        return;
    };
    let job = to(
        &world,
        &world.path("disk/result.safetensors"),
        world.options(),
    );
    let error = job.result().unwrap_err();
    assert_eq!(error.code, Code::NoSpace);
    assert!(error.message.contains("the result needs about"), "{error}");
    assert_eq!(fs::read_dir(world.path("disk")).unwrap().count(), 0);
}

#[test]
fn the_space_of_a_partial_file_of_ours_counts_as_free() {
    let Some((world, _mount)) = with_disk(world(), 12_000_000) else {
        return;
    };
    let target = world.path("disk/result.safetensors");
    let left = [b"DF11-PARTIAL/1\r\n".to_vec(), vec![0; 8_000_000]].concat();
    fs::write(world.path("disk/result.safetensors.partial"), left).unwrap();
    to(&world, &target, world.options()).result().unwrap();
}

#[test]
fn a_disk_that_cannot_be_written_to() {
    let Some((world, mount)) = with_disk(world(), 20_000_000) else {
        return;
    };
    mount.read_only();
    let job = to(
        &world,
        &world.path("disk/result.safetensors"),
        world.options(),
    );
    let error = job.result().unwrap_err();
    assert_eq!(error.code, Code::Write);
    assert_eq!(
        error.path,
        Some(world.path("disk/result.safetensors.partial"))
    );
}

/// A failure is reported at once, however slowly the source is read.
#[test]
fn a_failure_does_not_wait_for_the_reader() {
    let mut first = weights::realistic(1, 100_000);
    first[1] = 0x7F;
    first[0] = 0x80;
    let world = World::new(vec![
        Tensor::bf16("one.0.weight", first),
        Tensor::bf16("one.1.weight", weights::realistic(2, 4_000_000)),
    ]);
    let job = world.start(Options {
        max_rate: Some(400_000),
        ..world.options()
    });
    wait_for(&job, |now| now.phase == Phase::Compressing);
    assert_ends(&job, Code::Exponent, Duration::from_millis(1500));
    world.assert_clean();
}
