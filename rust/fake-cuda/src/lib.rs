//! A stand-in for the NVIDIA driver, for tests on machines without a GPU.
//!
//! As a shared library it has the driver's functions, over memory of the host, and does at a launch what the DF11 decode kernel does
//! (`decode_kernel`), whatever PTX text was loaded. It is strict: an access outside an allocation, a call from another thread than the context's, or
//! more shared memory than a launch may have is an error, as from the driver or its sanitizer. As a Rust library it is what tests steer that
//! with: [`FakeDriver`].

mod control;
mod decode_kernel;
mod driver;
mod state;

pub use control::{FakeDriver, PTX};
