//! The driver's functions, as its library exports them.
//!
//! Their callers keep to the driver API: pointers are valid for what the function reads and writes there.

#![allow(unsafe_code, non_snake_case, clippy::missing_safety_doc)]

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    slice, thread,
};

use crate::{
    decode_kernel::{self, Launch},
    state::{
        self, Code, INVALID_CONTEXT, INVALID_PTX, INVALID_VALUE, NAMES, NOT_FOUND, Spoil, State,
        call,
    },
};

/// What a GPU of today offers.
const MAX_THREADS: u32 = 1024;
/// Shared memory of a launch whose kernel was not allowed more.
const MAX_SHARED_BYTES: u32 = 48 * 1024;
const NAME: &[u8] = b"Fake GPU\0";
const JIT_ERROR_LOG: c_int = 5;

type Handle = *mut c_void;

/// Writes through a pointer of the caller.
fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and by the driver API valid for this.
    unsafe { to.write(value) };
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuInit(_flags: c_uint) -> Code {
    call("cuInit", "", |state| {
        state.is_initialized = true;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    call("cuDriverGetVersion", "", |_| put(version, 12_040))
}

/// Not logged: it cannot fail, and is asked for what did.
#[unsafe(no_mangle)]
unsafe extern "system" fn cuGetErrorName(code: Code, name: *mut *const c_char) -> Code {
    let known = NAMES.iter().find(|(known, _)| *known == code);
    known.map_or(INVALID_VALUE, |(_, text)| {
        put(name, text.as_ptr().cast()).err().unwrap_or(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    call("cuDeviceGetCount", "", |_| put(count, 1))
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    call("cuDeviceGet", "", |_| {
        if ordinal == 0 {
            put(device, 0)
        } else {
            Err(INVALID_VALUE)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuDeviceGetName(name: *mut c_char, bytes: c_int, _device: c_int) -> Code {
    call("cuDeviceGetName", "", |_| {
        if (bytes as usize) < NAME.len() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: there is room for so many bytes.
        unsafe { name.copy_from_nonoverlapping(NAME.as_ptr().cast(), NAME.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuCtxCreate_v2(
    context: *mut Handle,
    _flags: c_uint,
    _device: c_int,
) -> Code {
    call("cuCtxCreate_v2", "", |state| {
        if !state.is_initialized || state.context.is_some() {
            return Err(INVALID_VALUE);
        }
        state.context = Some(thread::current().id());
        state.fault = None;
        put(context, state.handle() as Handle)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuCtxDestroy_v2(_context: Handle) -> Code {
    call("cuCtxDestroy_v2", "", |state| {
        state.context.take().ok_or(INVALID_CONTEXT)?;
        state.forgotten += state.live();
        state.memory.clear();
        state.modules.clear();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuCtxSynchronize() -> Code {
    call("cuCtxSynchronize", "", |state| state.check_context())
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    call("cuMemGetInfo_v2", "", |state| {
        state.check_context()?;
        put(free, state.free_bytes() as usize)?;
        put(total, state.memory_bytes.unwrap_or(1 << 40) as usize)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> Code {
    call("cuMemAlloc_v2", &format!("({bytes})"), |state| {
        state.check_context()?;
        put(address, state.allocate(bytes)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemFree_v2(address: u64) -> Code {
    call("cuMemFree_v2", "", |state| {
        state.check_context()?;
        state.memory.remove(&address).map(drop).ok_or(INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemsetD8_v2(address: u64, byte: u8, bytes: usize) -> Code {
    call("cuMemsetD8_v2", "", |state| {
        state.check_context()?;
        state.bytes(address, bytes)?.fill(byte);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> Code {
    call("cuMemcpyHtoD_v2", &format!("({bytes})"), |state| {
        state.check_context()?;
        // SAFETY: so many bytes are readable there.
        let from = unsafe { slice::from_raw_parts(from.cast::<u8>(), bytes) };
        state.bytes(to, bytes)?.copy_from_slice(from);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> Code {
    call("cuMemcpyDtoH_v2", &format!("({bytes})"), |state| {
        state.check_context()?;
        // SAFETY: so many bytes are writable there, and nobody else looks at them.
        let to = unsafe { slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
        to.copy_from_slice(state.bytes(from, bytes)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_void,
    count: c_uint,
    options: *const c_int,
    values: *const *mut c_void,
) -> Code {
    call("cuModuleLoadDataEx", "", |state| {
        state.check_context()?;
        // SAFETY: PTX text ends with 0.
        let text = unsafe { CStr::from_ptr(image.cast()) }
            .to_string_lossy()
            .into_owned();
        if !text.contains(".version") {
            for index in 0..count as usize {
                // SAFETY: there are so many options and values; that of the log is a buffer with room for more than this.
                unsafe {
                    if *options.add(index) == JIT_ERROR_LOG {
                        let log = b"\nptxas fatal: no version\nmore\0";
                        (*values.add(index))
                            .cast::<u8>()
                            .copy_from_nonoverlapping(log.as_ptr(), log.len());
                    }
                }
            }
            return Err(INVALID_PTX);
        }
        let handle = state.handle();
        state.modules.insert(handle, text);
        put(module, handle as Handle)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuModuleUnload(module: Handle) -> Code {
    call("cuModuleUnload", "", |state| {
        state.check_context()?;
        state
            .modules
            .remove(&(module as usize))
            .map(drop)
            .ok_or(INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuModuleGetFunction(
    function: *mut Handle,
    module: Handle,
    name: *const c_char,
) -> Code {
    call("cuModuleGetFunction", "", |state| {
        state.check_context()?;
        // SAFETY: a name ends with 0.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let text = state.modules.get(&(module as usize)).ok_or(INVALID_VALUE)?;
        if !text.contains(&format!(".entry {name}(")) {
            return Err(NOT_FOUND);
        }
        let handle = state.handle();
        state.functions.insert(handle);
        put(function, handle as Handle)
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuLaunchKernel(
    function: Handle,
    grid: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: Handle,
    parameters: *const *mut c_void,
    extra: *const *mut c_void,
) -> Code {
    let detail = format!("(grid {grid}, block {block}, shared {shared})");
    call("cuLaunchKernel", &detail, |state| {
        state.check_context()?;
        let one_dimension = (grid_y, grid_z, block_y, block_z) == (1, 1, 1, 1);
        let sizes = grid > 0 && (1..=MAX_THREADS).contains(&block) && shared <= MAX_SHARED_BYTES;
        let known = state.functions.contains(&(function as usize));
        if !one_dimension || !sizes || !known || !stream.is_null() || !parameters.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: `extra` is a list of this form, by the driver API.
        let arguments = unsafe { arguments(extra) }.ok_or(INVALID_VALUE)?;
        launch(
            state,
            Launch {
                grid,
                block,
                shared,
            },
            &arguments,
        )
    })
}

/// The bytes of a launch's arguments.
///
/// # Safety
/// `extra` is 1, their address, 2, the address of their number, 0.
unsafe fn arguments(extra: *const *mut c_void) -> Option<Vec<u8>> {
    // SAFETY: the caller's promise.
    let [one, bytes, two, size, end] = unsafe { *extra.cast::<[*mut c_void; 5]>() };
    if (one as usize, two as usize, end as usize) != (1, 2, 0) {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { slice::from_raw_parts(bytes.cast::<u8>(), *size.cast::<usize>()) }.to_vec())
}

/// A fault of the kernel shows at the next call that waits for it, and stays.
fn launch(state: &mut State, launch: Launch, arguments: &[u8]) -> Result<(), Code> {
    state.launches += 1;
    let spoil = state.spoil.get(&state.launches).copied();
    if arguments.len() != decode_kernel::ARGUMENT_BYTES {
        return Err(INVALID_VALUE);
    }
    if matches!(spoil, Some(Spoil::Everything)) {
        return Ok(());
    }
    if let Err(fault) = decode_kernel::run(&mut state.memory, launch, arguments) {
        state.fault = Some(fault);
        return Ok(());
    }
    if let Some(Spoil::Weight(index)) = spoil {
        let outputs = u64::from_ne_bytes(*arguments[40..].first_chunk().ok_or(INVALID_VALUE)?);
        state.bytes(outputs + 2 * index, 1)?[0] ^= 1;
    }
    Ok(())
}

/// No part of the driver: does what a test asks for, and writes the answer, cut to `bytes`. Returns how long that is.
///
/// # Safety
/// `command` is a text that ends with 0; so many bytes are writable at `to`.
#[unsafe(no_mangle)]
unsafe extern "C" fn fake_cuda_ask(command: *const c_char, to: *mut u8, bytes: usize) -> usize {
    // SAFETY: the caller's promise.
    let answer = state::obey(&unsafe { CStr::from_ptr(command) }.to_string_lossy());
    let length = answer.len().min(bytes);
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(answer.as_ptr(), length) };
    length
}
