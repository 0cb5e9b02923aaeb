//! Units decoded on a GPU by the official decode kernel, as loaders do it.
//!
//! The NVIDIA driver and the kernel's file are looked for at run time; neither comes with this program. A unit lies on the GPU as a whole, as
//! it does in a loader: codes, signs and mantissas, the small tensors, and two bytes for each weight that comes out. There is one unit at a
//! time, and everything is copied there and back in pieces.

mod ptx;
mod unit;

use std::path::PathBuf;

use df11_cuda::{Gpu, GpuError, Kernel};

use crate::{
    error::{Code, Error, Result},
    report::text,
    stored::units::StoredUnit,
};
use ptx::Ptx;

/// What the level `kernel` works with.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// The kernel's file, `decode.ptx` of the Python package `dfloat11`.
    pub kernel_file: Option<PathBuf>,
    /// The NVIDIA driver's library; none: the system's.
    pub driver: Option<PathBuf>,
}

/// A GPU, and the text of the kernel.
pub struct FoundGpu {
    gpu: Gpu,
    ptx: Ptx,
}

impl FoundGpu {
    /// Opens the GPU in the calling thread, which it cannot leave, and reads the kernel's file.
    ///
    /// # Errors
    /// `E_NO_GPU`, `E_NO_KERNEL`, `E_GPU`; those of the file.
    pub fn open(options: &GpuOptions) -> Result<Self> {
        let gpu = Gpu::open(options.driver.as_deref()).map_err(|error| failure(&error))?;
        let ptx = Ptx::read(options.kernel_file.as_deref())?;
        Ok(Self { gpu, ptx })
    }

    /// Compiles the kernel, and checks that the largest unit has room.
    ///
    /// # Errors
    /// `E_NO_MEMORY`, `E_GPU`.
    pub fn decoder(&self, units: &[StoredUnit]) -> Result<Decoder<'_>> {
        let compiled = self.gpu.kernel(&self.ptx.text, ptx::NAME);
        let kernel = compiled.map_err(|error| failure(&error).at_path(&self.ptx.path))?;
        let free = self.gpu.free_memory().map_err(|error| failure(&error))?;
        let largest = units
            .iter()
            .max_by_key(|unit| unit::bytes_needed(&unit.layout));
        if let Some(unit) = largest.filter(|unit| unit::bytes_needed(&unit.layout) > free) {
            let message = format!(
                "decoding it takes {} bytes of GPU memory, {free} are free",
                unit::bytes_needed(&unit.layout)
            );
            return Err(Error::new(Code::NoMemory, message)
                .hint(ROOM)
                .in_unit(&unit.name));
        }
        Ok(Decoder {
            gpu: &self.gpu,
            kernel,
        })
    }

    /// Name of the GPU, and where the kernel came from.
    pub fn description(&self) -> (String, String) {
        (self.gpu.description(), text(&self.ptx.path))
    }
}

/// The kernel, ready to be launched.
pub struct Decoder<'g> {
    gpu: &'g Gpu,
    kernel: Kernel<'g>,
}

const ROOM: &str = "Close other programs that use the GPU, or check the file on a larger one.";

/// A failure of the GPU as an error.
fn failure(error: &GpuError) -> Error {
    let (code, hint) = if error.is_absence() {
        let hint = "Use a machine with an NVIDIA GPU and a current driver, or the level full, which needs neither.";
        (Code::NoGpu, hint)
    } else if error.is_out_of_memory() {
        (Code::NoMemory, ROOM)
    } else {
        (
            Code::Gpu,
            "Check the GPU and its driver, for example with nvidia-smi, and try again.",
        )
    };
    Error::new(code, error.to_string()).hint(hint)
}
