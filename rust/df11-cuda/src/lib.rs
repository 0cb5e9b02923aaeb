//! The NVIDIA driver, loaded at run time: memory on the GPU, and a kernel that runs there.
//!
//! Nothing is linked: where there is no driver, [`Gpu::open`] says so. Everything that goes wrong is named with the function and the
//! driver's name for the code. Functions, types and numbers are those of the CUDA driver API, version 12 and later.
//!
//! A [`Gpu`] is a context of its own, current in the thread that opened it: it cannot leave that thread, and a fault in it harms no other
//! program's work. Memory and kernels borrow it, so nothing outlives it.

mod driver;
mod error;
mod memory;
mod module;
mod system;

pub use driver::Gpu;
pub use error::GpuError;
pub use memory::Memory;
pub use module::{Argument, Kernel, Launch};
