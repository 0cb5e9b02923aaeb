//! The driver's functions as they are called, on a stand-in that is strict about it.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::ffi::{CStr, CString};

use df11_cuda::{Argument, Gpu, GpuError, Kernel, Launch, Memory};
use fake_cuda::{FakeDriver, PTX};

fn driver() -> (tempfile::TempDir, FakeDriver) {
    let folder = tempfile::tempdir().unwrap();
    let driver = FakeDriver::new(folder.path()).unwrap();
    (folder, driver)
}

fn kernel(gpu: &Gpu) -> Kernel<'_> {
    let text = CString::new(PTX).unwrap();
    gpu.kernel(&text, c"decode").unwrap()
}

/// The only weight of a unit: its code is one bit, a zero.
struct Unit<'g>([Memory<'g>; 6]);

impl<'g> Unit<'g> {
    fn new(gpu: &'g Gpu) -> Self {
        let memory = |bytes: &[u8]| {
            let memory = gpu.memory(bytes.len()).unwrap();
            memory.upload(0, bytes).unwrap();
            memory
        };
        let mut lengths = [0; 256];
        lengths[120] = 1;
        let luts = memory(&[[120; 256], lengths].concat());
        let inputs = [
            memory(&[0]),
            memory(&[0x81]),
            memory(&[0, 0, 0, 0, 1, 0, 0, 0]),
            memory(&[0; 321]),
        ];
        let [codes, sign_mantissa, positions, gaps] = inputs;
        Self([
            luts,
            codes,
            sign_mantissa,
            positions,
            gaps,
            memory(&[0xFF; 2]),
        ])
    }

    fn launch(&self, kernel: &Kernel<'_>, launch: Launch, numbers: &[u32]) -> Result<(), GpuError> {
        let memories = self.0.iter().map(Argument::Memory);
        let arguments: Vec<_> = memories
            .chain(numbers.iter().copied().map(Argument::Number))
            .collect();
        // SAFETY: the stand-in stays within its memory.
        unsafe { kernel.launch(launch, &arguments) }
    }

    fn output(&self) -> [u8; 2] {
        let mut output = [0; 2];
        self.0[5].download(0, &mut output).unwrap();
        output
    }
}

const LAUNCH: Launch = Launch {
    grid: 1,
    block: 512,
    shared: 2054,
};
const NUMBERS: [u32; 3] = [2, 1, 1];

fn failed(outcome: Result<(), GpuError>, function: &str, name: &str) {
    let error = outcome.expect_err(name);
    assert_eq!(error.to_string(), format!("{function} failed with {name}"));
}

#[test]
fn a_weight_goes_there_and_back() {
    let (_folder, driver) = driver();
    {
        let gpu = Gpu::open(Some(driver.path())).unwrap();
        assert_eq!(gpu.description(), "Fake GPU, CUDA 12.4");
        let (kernel, unit) = (kernel(&gpu), Unit::new(&gpu));
        unit.launch(&kernel, LAUNCH, &NUMBERS).unwrap();
        gpu.wait().unwrap();
        // Sign and mantissa 0x81, exponent 120.
        assert_eq!(u16::from_le_bytes(unit.output()), 0x8000 | 120 << 7 | 1);
        unit.0[5].fill(7).unwrap();
        assert_eq!(unit.output(), [7, 7]);
    }
    assert_eq!(driver.left_over(), 0);
}

#[test]
fn a_launch_is_as_the_loader_makes_it_or_refused() {
    let (_folder, driver) = driver();
    let gpu = Gpu::open(Some(driver.path())).unwrap();
    let (kernel, unit) = (kernel(&gpu), Unit::new(&gpu));
    let refused = |launch, numbers: &[u32]| {
        failed(
            unit.launch(&kernel, launch, numbers),
            "cuLaunchKernel",
            "CUDA_ERROR_INVALID_VALUE",
        );
    };
    refused(
        Launch {
            shared: 48 * 1024 + 1,
            ..LAUNCH
        },
        &NUMBERS,
    );
    refused(
        Launch {
            block: 1025,
            ..LAUNCH
        },
        &NUMBERS,
    );
    refused(Launch { grid: 0, ..LAUNCH }, &NUMBERS);
    refused(LAUNCH, &NUMBERS[..2]);
    unit.launch(
        &kernel,
        Launch {
            shared: 48 * 1024,
            ..LAUNCH
        },
        &NUMBERS,
    )
    .unwrap();
    gpu.wait().unwrap();
}

#[test]
fn what_the_kernel_does_wrong_shows_when_waiting_and_stays() {
    for (launch, numbers) in [
        // Too little shared memory, a block too many, a row of tables too many, a weight too many.
        (
            Launch {
                shared: 2053,
                ..LAUNCH
            },
            NUMBERS,
        ),
        (Launch { grid: 2, ..LAUNCH }, NUMBERS),
        (LAUNCH, [3, 1, 1]),
        (LAUNCH, [2, 1, 2]),
    ] {
        let (_folder, driver) = driver();
        let gpu = Gpu::open(Some(driver.path())).unwrap();
        let (kernel, unit) = (kernel(&gpu), Unit::new(&gpu));
        unit.launch(&kernel, launch, &numbers).unwrap();
        failed(gpu.wait(), "cuCtxSynchronize", "CUDA_ERROR_ILLEGAL_ADDRESS");
        failed(
            unit.0[0].upload(0, &[1]),
            "cuMemcpyHtoD_v2",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
        );
    }
    // Codes of no length.
    let (_folder, driver) = driver();
    let gpu = Gpu::open(Some(driver.path())).unwrap();
    let (kernel, unit) = (kernel(&gpu), Unit::new(&gpu));
    unit.0[0].fill(0).unwrap();
    unit.launch(&kernel, LAUNCH, &NUMBERS).unwrap();
    failed(gpu.wait(), "cuCtxSynchronize", "CUDA_ERROR_LAUNCH_TIMEOUT");
}

#[test]
fn memory_has_an_end() {
    let (_folder, driver) = driver();
    let gpu = Gpu::open(Some(driver.path())).unwrap();
    let memory = gpu.memory(10).unwrap();
    memory.upload(8, &[1, 2]).unwrap();
    let mut two = [0; 2];
    memory.download(8, &mut two).unwrap();
    assert_eq!(two, [1, 2]);
    for offset in [9, 10, 11, usize::MAX] {
        let outside = GpuError::Outside {
            offset,
            bytes: 2,
            size: 10,
        };
        assert_eq!(memory.upload(offset, &two), Err(outside.clone()));
        assert_eq!(memory.download(offset, &mut two), Err(outside));
    }
    driver.limit_memory(100);
    assert_eq!(gpu.free_memory(), Ok(90));
    let full = gpu.memory(91).err().unwrap();
    assert!(full.is_out_of_memory() && !full.is_absence(), "{full}");
}

#[test]
fn text_that_is_no_kernel_is_named() {
    let (_folder, driver) = driver();
    {
        let gpu = Gpu::open(Some(driver.path())).unwrap();
        let failure = |text: &CStr, name: &CStr| gpu.kernel(text, name).err().unwrap().to_string();
        assert_eq!(
            failure(c"nonsense", c"decode"),
            "cuModuleLoadDataEx failed with CUDA_ERROR_INVALID_PTX: ptxas fatal: no version"
        );
        assert_eq!(
            failure(c".version 8.2", c"decode"),
            "cuModuleGetFunction failed with CUDA_ERROR_NOT_FOUND"
        );
    }
    assert_eq!(driver.left_over(), 0);
}

#[test]
fn every_function_is_needed() {
    let (folder, driver) = driver();
    {
        let gpu = Gpu::open(Some(driver.path())).unwrap();
        let (kernel, unit) = (kernel(&gpu), Unit::new(&gpu));
        unit.launch(&kernel, LAUNCH, &NUMBERS).unwrap();
        gpu.wait().unwrap();
        gpu.free_memory().unwrap();
        unit.output();
        unit.0[5].fill(7).unwrap();
    }
    let mut functions: Vec<_> = driver
        .calls()
        .iter()
        .map(|call| call.split(['(', ' ']).next().unwrap().to_owned())
        .collect();
    functions.sort();
    functions.dedup();
    assert_eq!(functions.len(), 18, "{functions:?}");
    functions.push("cuGetErrorName".to_owned());
    for function in functions {
        let lacking = FakeDriver::without(folder.path(), &function).unwrap();
        let error = Gpu::open(Some(&lacking)).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("the NVIDIA driver has no function {function}")
        );
        assert!(error.is_absence());
    }
    let error = Gpu::open(Some(&folder.path().join("nothing")))
        .err()
        .unwrap();
    assert!(
        matches!(error, GpuError::NoDriver { .. }) && error.is_absence(),
        "{error}"
    );
}
