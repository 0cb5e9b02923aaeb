//! The driver's functions, and a GPU to call them for.

#![allow(unsafe_code, non_snake_case)]

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    mem::ManuallyDrop,
    path::Path,
    ptr,
};

use libloading::Library;

use crate::{error::GpuError, system};

/// The calling thread sleeps while it waits for the GPU.
const BLOCKING_SYNC: c_uint = 4;
/// Longest name of a GPU, in bytes.
const NAME_BYTES: c_int = 256;

/// The driver's result: 0, or what went wrong.
type Code = c_int;
/// Something that the driver made and the driver understands.
pub type Handle = *mut c_void;

macro_rules! functions {
    ($($name:ident($($type:ty),*);)+) => {
        /// The functions that are used, under their names in the driver's library.
        pub struct Functions {
            $(pub $name: unsafe extern "system" fn($($type),*) -> Code,)+
        }

        impl Functions {
            /// # Safety
            /// Functions of these names must have the types of the driver API.
            unsafe fn find(library: &Library) -> Result<Self, GpuError> {
                $(
                    // SAFETY: the caller's promise.
                    let $name = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                    let $name = *$name.map_err(|_| GpuError::NoFunction { function: stringify!($name) })?;
                )+
                Ok(Self { $($name,)+ })
            }
        }
    };
}

functions! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuGetErrorName(Code, *mut *const c_char);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut c_int, c_int);
    cuDeviceGetName(*mut c_char, c_int, c_int);
    cuCtxCreate_v2(*mut Handle, c_uint, c_int);
    cuCtxDestroy_v2(Handle);
    cuCtxSynchronize();
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemsetD8_v2(u64, u8, usize);
    cuMemcpyHtoD_v2(u64, *const c_void, usize);
    cuMemcpyDtoH_v2(*mut c_void, u64, usize);
    cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    cuModuleUnload(Handle);
    cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    cuLaunchKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
}

/// Calls a function of the driver and turns its result into an error that names it.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {
        $driver.outcome(stringify!($name), ($driver.functions.$name)($($argument),*))
    };
}
pub(crate) use call;

/// The loaded driver.
pub struct Driver {
    pub functions: Functions,
    /// Never unloaded: the driver has threads of its own.
    _library: ManuallyDrop<Library>,
}

impl Driver {
    fn load(path: Option<&Path>) -> Result<Self, GpuError> {
        let library = system::load(path).map_err(|error| GpuError::NoDriver {
            reason: error.to_string(),
        })?;
        let library = ManuallyDrop::new(library);
        // SAFETY: the types are those of the CUDA driver API under these names, which never change: a changed function gets a new suffix.
        let functions = unsafe { Functions::find(&library) }?;
        Ok(Self {
            functions,
            _library: library,
        })
    }

    /// An error for every result but 0.
    pub fn outcome(&self, function: &'static str, code: Code) -> Result<(), GpuError> {
        if code == 0 {
            return Ok(());
        }
        Err(GpuError::Failed {
            function,
            code,
            name: self.name_of(code),
            detail: String::new(),
        })
    }

    fn name_of(&self, code: Code) -> String {
        let mut name = ptr::null();
        // SAFETY: it writes one pointer, to a text of the driver that stays for ever, or null.
        let known =
            unsafe { (self.functions.cuGetErrorName)(code, &raw mut name) } == 0 && !name.is_null();
        if !known {
            return format!("error {code}");
        }
        // SAFETY: not null, and by the driver API a text that ends with 0.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    }
}

/// A GPU: the first that the driver shows. Its context is current in the thread that opened it, which it cannot leave.
pub struct Gpu {
    pub(crate) driver: Driver,
    context: Handle,
    name: String,
    version: c_int,
}

impl Gpu {
    /// Loads the driver, that of `library` or the system's, and opens the first GPU.
    ///
    /// # Errors
    /// [`GpuError::is_absence`] where there is no driver or no GPU; failures of the driver.
    pub fn open(library: Option<&Path>) -> Result<Self, GpuError> {
        let driver = Driver::load(library)?;
        let absent = |error: GpuError| GpuError::NoDevice {
            reason: error.to_string(),
        };
        let (mut version, mut count, mut device) = (0, 0, 0);
        // SAFETY: each function writes one number through its pointer. `cuInit` comes first, as the driver wants it.
        unsafe {
            call!(driver, cuInit(0)).map_err(absent)?;
            call!(driver, cuDriverGetVersion(&raw mut version))?;
            call!(driver, cuDeviceGetCount(&raw mut count))?;
        }
        if count == 0 {
            return Err(GpuError::NoDevice {
                reason: "it counts none".to_owned(),
            });
        }
        let (mut name, mut context) = ([0_u8; NAME_BYTES as usize], ptr::null_mut());
        // SAFETY: a number, at most the given count of bytes, and a handle are written through the pointers.
        unsafe {
            call!(driver, cuDeviceGet(&raw mut device, 0))?;
            call!(
                driver,
                cuDeviceGetName(name.as_mut_ptr().cast(), NAME_BYTES, device)
            )?;
            call!(
                driver,
                cuCtxCreate_v2(&raw mut context, BLOCKING_SYNC, device)
            )?;
        }
        let name = CStr::from_bytes_until_nul(&name).map_or_else(
            |_| String::new(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self {
            driver,
            context,
            name,
            version,
        })
    }

    /// Its name, and the version of CUDA that its driver understands.
    pub fn description(&self) -> String {
        format!(
            "{}, CUDA {}.{}",
            self.name,
            self.version / 1000,
            self.version % 1000 / 10
        )
    }

    /// Bytes of its memory that are free.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn free_memory(&self) -> Result<u64, GpuError> {
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: it writes two numbers.
        unsafe { call!(self.driver, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok(free as u64)
    }

    /// Waits until everything that was started has ended.
    ///
    /// # Errors
    /// Those of the driver, and what went wrong in a kernel.
    pub fn wait(&self) -> Result<(), GpuError> {
        // SAFETY: it takes nothing, and writes nothing of the program's.
        unsafe { call!(self.driver, cuCtxSynchronize()) }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: the context is ours, made once and destroyed once, here; all that borrows it is gone. A failure leaves it to the
        // driver, which takes it back when the program ends.
        let _ = unsafe { call!(self.driver, cuCtxDestroy_v2(self.context)) };
    }
}
