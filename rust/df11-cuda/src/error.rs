//! Why the GPU cannot be used, and what went wrong on it.

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: i32 = 2;

/// A failure of the driver, or of finding one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library cannot be loaded.
    #[error("there is no NVIDIA driver here ({reason})")]
    NoDriver {
        /// What the system says.
        reason: String,
    },
    /// The driver's library lacks a function: it is too old, or no driver.
    #[error("the NVIDIA driver has no function {function}")]
    NoFunction {
        /// The function.
        function: &'static str,
    },
    /// The driver does not start, or finds no GPU.
    #[error("the NVIDIA driver finds no GPU that it can use ({reason})")]
    NoDevice {
        /// What the driver says.
        reason: String,
    },
    /// A function failed.
    #[error("{function} failed with {name}{}", after_colon(.detail))]
    Failed {
        /// The function.
        function: &'static str,
        /// Its result.
        code: i32,
        /// The driver's name for it.
        name: String,
        /// More about it; empty where there is no more.
        detail: String,
    },
    /// Bytes outside a piece of memory were asked for.
    #[error("{bytes} bytes from {offset} lie outside a piece of {size} bytes of GPU memory")]
    Outside {
        /// Where they begin.
        offset: usize,
        /// How many.
        bytes: usize,
        /// All that there are.
        size: usize,
    },
}

impl GpuError {
    /// Whether the GPU's memory is full.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                code: OUT_OF_MEMORY,
                ..
            }
        )
    }

    /// Whether there is no GPU to work with at all.
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::NoDriver { .. } | Self::NoFunction { .. } | Self::NoDevice { .. }
        )
    }
}

fn after_colon(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}
