//! A kernel from PTX text, and its launch.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
};

use crate::{
    driver::{Gpu, Handle, call},
    error::GpuError,
    memory::Memory,
};

/// Numbers of the driver API: where the compiler puts what it has to say, and how much of it.
const JIT_ERROR_LOG: c_int = 5;
const JIT_ERROR_LOG_BYTES: c_int = 6;
const LOG_BYTES: usize = 4096;
/// And what the launch's last argument holds: arguments as bytes, and how many.
const ARGUMENTS: usize = 1;
const ARGUMENTS_BYTES: usize = 2;

/// A function that runs on the GPU.
pub struct Kernel<'g> {
    gpu: &'g Gpu,
    module: Handle,
    function: Handle,
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// The address of memory (64 bits).
    Memory(&'a Memory<'a>),
    /// A number of 32 bits.
    Number(u32),
}

/// How many threads a kernel is started with, in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks of threads.
    pub grid: u32,
    /// Threads in a block.
    pub block: u32,
    /// Bytes of shared memory of a block. Above 48 KiB the driver refuses it, since nothing here asks for more.
    pub shared: u32,
}

impl Gpu {
    /// Has the driver compile PTX text for this GPU, and finds a kernel in it. What stands in the text runs when it is launched.
    ///
    /// # Errors
    /// Those of the driver, with what its compiler says.
    pub fn kernel(&self, ptx: &CStr, name: &CStr) -> Result<Kernel<'_>, GpuError> {
        let mut module = ptr::null_mut();
        let mut log = [0_u8; LOG_BYTES];
        let mut options = [JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES];
        // The second value is a number in the place of a pointer.
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
        ];
        let (keys, values) = (options.as_mut_ptr(), values.as_mut_ptr());
        // SAFETY: the text ends with 0; there are two options with two values; the log has as many bytes as is said; a handle is written.
        let loaded = unsafe {
            call!(
                self.driver,
                cuModuleLoadDataEx(&raw mut module, ptx.as_ptr().cast(), 2, keys, values)
            )
        };
        loaded.map_err(|error| with_log(error, &log))?;
        let mut kernel = Kernel {
            gpu: self,
            module,
            function: ptr::null_mut(),
        };
        // SAFETY: the module was just loaded, the name ends with 0, and a handle is written.
        unsafe {
            call!(
                self.driver,
                cuModuleGetFunction(&raw mut kernel.function, module, name.as_ptr())
            )
        }?;
        Ok(kernel)
    }
}

fn with_log(error: GpuError, log: &[u8]) -> GpuError {
    let text = CStr::from_bytes_until_nul(log)
        .unwrap_or_default()
        .to_string_lossy();
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    match error {
        GpuError::Failed {
            function,
            code,
            name,
            ..
        } => GpuError::Failed {
            function,
            code,
            name,
            detail: line.trim().to_owned(),
        },
        other => other,
    }
}

impl Kernel<'_> {
    /// Starts it. It has ended when [`Gpu::wait`] returns.
    ///
    /// # Errors
    /// Those of the driver, also where the kernel takes more or fewer bytes of arguments.
    ///
    /// # Safety
    /// With these arguments the kernel must stay within the memories that it gets: on some systems a GPU can write to any memory of the
    /// program.
    pub unsafe fn launch(
        &self,
        launch: Launch,
        arguments: &[Argument<'_>],
    ) -> Result<(), GpuError> {
        let mut bytes = packed(arguments);
        let mut size = bytes.len();
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(ARGUMENTS),
            bytes.as_mut_ptr().cast(),
            ptr::without_provenance_mut(ARGUMENTS_BYTES),
            (&raw mut size).cast(),
            ptr::null_mut(),
        ];
        let Launch {
            grid,
            block,
            shared,
        } = launch;
        let none = ptr::null_mut();
        let (function, extra) = (self.function, extra.as_mut_ptr());
        // SAFETY: the function is of a module that is loaded. The arguments come as bytes with their number, not as a list of pointers
        // whose length the kernel would decide, and are copied before the call returns. The rest is the caller's promise.
        unsafe {
            call!(
                self.gpu.driver,
                cuLaunchKernel(
                    function,
                    grid,
                    1,
                    1,
                    block,
                    1,
                    1,
                    shared,
                    none,
                    none.cast(),
                    extra
                )
            )
        }
    }
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        // SAFETY: the module is ours and is unloaded once, here. A failure leaves it to the context, which goes soon after.
        let _ = unsafe { call!(self.gpu.driver, cuModuleUnload(self.module)) };
    }
}

/// Arguments as the kernel finds them: each at a multiple of its size.
fn packed(arguments: &[Argument<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Memory(memory) => {
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                bytes.extend_from_slice(&memory.address().to_ne_bytes());
            }
            Argument::Number(number) => bytes.extend_from_slice(&number.to_ne_bytes()),
        }
    }
    bytes
}
