//! The level `kernel` where driver, GPU or kernel are missing or fail: one named error, and nothing is left on the GPU.

use std::{collections::HashMap, fs, path::Path};

use df11_file::{Code, Error, check::GpuOptions, options::HeaderMode};
use fake_cuda::{FakeDriver, PTX};

use crate::common::{gpu::GpuWorld, weights, world::World};

fn plain() -> GpuWorld {
    GpuWorld::plain(HeaderMode::SelfDescribing)
}

fn fails(subject: &GpuWorld, gpu: GpuOptions) -> Error {
    let outcome = subject.start(false, gpu).and_then(|task| task.result());
    outcome.expect_err("a failure")
}

#[test]
fn without_a_driver_one_sentence_says_so() {
    let subject = plain();
    let driver = Some(subject.world.path("no-such-library.so"));
    let error = fails(
        &subject,
        GpuOptions {
            driver,
            ..subject.gpu()
        },
    );
    assert_eq!((error.code, error.path.as_deref()), (Code::NoGpu, None));
    assert!(
        error.message.starts_with("there is no NVIDIA driver here"),
        "{error}"
    );
    assert!(error.hint.contains("the level full"), "{error}");
}

#[test]
fn a_driver_without_a_function_or_gpu_is_named() {
    let subject = plain();
    let driver = Some(FakeDriver::without(subject.world.folder(), "cuMemGetInfo_v2").unwrap());
    let error = fails(
        &subject,
        GpuOptions {
            driver,
            ..subject.gpu()
        },
    );
    assert_eq!(error.code, Code::NoGpu);
    assert!(
        error.message.contains("no function cuMemGetInfo_v2"),
        "{error}"
    );

    subject.driver.fail("cuInit", 1, 100);
    let error = fails(&subject, subject.gpu());
    assert_eq!(error.code, Code::NoGpu);
    assert!(
        error
            .message
            .contains("cuInit failed with CUDA_ERROR_NO_DEVICE"),
        "{error}"
    );
}

/// What calls are there to take back, not to work: where one fails, the context takes its things along.
const GIVING_BACK: [&str; 3] = ["cuMemFree_v2", "cuModuleUnload", "cuCtxDestroy_v2"];

#[test]
fn a_failure_of_any_call_is_named_and_leaves_nothing() {
    let sound = GpuWorld::new(
        World::of_unit(weights::realistic(1, 30_000)),
        HeaderMode::Official,
    );
    sound.check(false).unwrap();
    let mut counts = HashMap::new();
    let functions = sound
        .driver
        .calls()
        .into_iter()
        .map(|call| call.split(['(', ' ']).next().unwrap().to_owned());
    let calls: Vec<(String, u32)> = functions
        .map(|function| {
            let nth = counts
                .entry(function.clone())
                .and_modify(|nth| *nth += 1)
                .or_insert(1);
            (function, *nth)
        })
        .collect();
    assert!(calls.len() > 30, "{calls:?}");
    for (function, nth) in calls {
        let folder = tempfile::tempdir_in(sound.world.folder()).unwrap();
        let driver = FakeDriver::new(folder.path()).unwrap();
        driver.fail(&function, nth, 1);
        let gpu = GpuOptions {
            driver: Some(driver.path().to_path_buf()),
            ..sound.gpu()
        };
        let outcome = sound.start(false, gpu).unwrap().result();
        if GIVING_BACK.contains(&function.as_str()) {
            outcome.unwrap();
            assert_eq!(driver.left_over(), 1, "{function} {nth}");
            continue;
        }
        let error = outcome.expect_err(&function);
        let code = if function == "cuInit" {
            Code::NoGpu
        } else {
            Code::Gpu
        };
        assert_eq!(error.code, code, "{error}");
        let said = format!("{function} failed with CUDA_ERROR_INVALID_VALUE");
        assert!(error.message.contains(&said), "{error}");
        assert_eq!(driver.left_over(), 0, "{function} {nth}");
    }
}

#[test]
fn a_fault_of_the_kernel_names_its_unit() {
    let subject = plain();
    subject.driver.fail("cuCtxSynchronize", 2, 700);
    let error = fails(&subject, subject.gpu());
    assert_eq!(
        (error.code, error.unit.as_deref()),
        (Code::Gpu, Some("three.0"))
    );
    assert!(
        error.message.contains("CUDA_ERROR_ILLEGAL_ADDRESS"),
        "{error}"
    );
    subject.driver.fail("cuCtxSynchronize", 3, 12_345);
    let error = fails(&subject, subject.gpu());
    assert!(error.message.contains("error 12345"), "{error}");
}

#[test]
fn too_little_memory_is_said_before_anything_is_decoded() {
    let subject = plain();
    subject.driver.limit_memory(1_500_000);
    let error = fails(&subject, subject.gpu());
    assert_eq!(
        (error.code, error.unit.as_deref()),
        (Code::NoMemory, Some("three.0"))
    );
    assert!(error.message.contains("1500000 are free"), "{error}");
    assert!(subject.calls("cuMemAlloc").is_empty());

    subject.driver.limit_memory(1 << 30);
    subject.driver.fail("cuMemAlloc_v2", 3, 2);
    let error = fails(&subject, subject.gpu());
    assert_eq!(
        (error.code, error.unit.as_deref()),
        (Code::NoMemory, Some("one.0"))
    );
    assert!(
        error
            .message
            .contains("cuMemAlloc_v2 failed with CUDA_ERROR_OUT_OF_MEMORY"),
        "{error}"
    );
    assert_eq!(subject.driver.left_over(), 0);
}

#[test]
fn exactly_the_memory_that_is_announced_is_enough() {
    let subject = plain();
    subject.check(false).unwrap();
    let allocations = subject.calls("cuMemAlloc_v2");
    let sizes: Vec<u64> = allocations
        .iter()
        .map(|call| call.split(['(', ')']).nth(1).unwrap().parse().unwrap())
        .collect();
    let largest = sizes
        .chunks_exact(6)
        .map(|unit| unit.iter().sum())
        .max()
        .unwrap();
    subject.driver.limit_memory(largest);
    subject.check(false).unwrap();
    subject.driver.limit_memory(largest - 1);
    assert_eq!(fails(&subject, subject.gpu()).code, Code::NoMemory);
}

#[test]
fn it_stops_on_request() {
    // What is held when the request comes, and what must not come after it.
    for (function, after) in [
        ("cuMemcpyHtoD_v2", "cuLaunchKernel"),
        ("cuLaunchKernel", "cuMemcpyDtoH_v2"),
        ("cuMemcpyDtoH_v2", "nothing"),
    ] {
        let subject = plain();
        subject.driver.hold(function, 1);
        let task = subject.start(false, subject.gpu()).unwrap();
        assert!(
            subject.driver.wait_until_held(),
            "{function} is never called"
        );
        task.cancel();
        subject.driver.release();
        assert_eq!(
            task.result().expect_err("a stop").code,
            Code::Cancelled,
            "{function}"
        );
        assert!(subject.calls(after).is_empty(), "{after}");
        assert_eq!(subject.driver.left_over(), 0);
    }
}

#[test]
fn a_file_without_the_kernel_is_refused() {
    let subject = plain();
    let with = |kernel_file: Option<&Path>| {
        fails(
            &subject,
            GpuOptions {
                kernel_file: kernel_file.map(Path::to_path_buf),
                ..subject.gpu()
            },
        )
    };
    let error = with(None);
    assert_eq!(error.code, Code::NoKernel);
    assert!(error.hint.contains("--kernel-ptx"), "{error}");
    let path = subject.world.path("other.ptx");
    assert_eq!(with(Some(&path)).code, Code::Read);
    for other in [
        PTX.replacen(".u64", ".u32", 1),
        "\0".repeat(30),
        String::new(),
    ] {
        fs::write(&path, other).unwrap();
        let error = with(Some(&path));
        assert_eq!(
            (error.code, error.path),
            (Code::NoKernel, Some(path.clone()))
        );
    }
    fs::write(&path, PTX.replace(".version", ".edition")).unwrap();
    let error = with(Some(&path));
    assert_eq!((error.code, error.path.as_ref()), (Code::Gpu, Some(&path)));
    assert!(
        error
            .message
            .ends_with("CUDA_ERROR_INVALID_PTX: ptxas fatal: no version"),
        "{error}"
    );
    assert_eq!(subject.driver.left_over(), 0);
}
