//! Memory on the GPU.

#![allow(unsafe_code)]

use crate::{
    driver::{Gpu, call},
    error::GpuError,
};

/// A piece of the GPU's memory, given back when dropped.
pub struct Memory<'g> {
    gpu: &'g Gpu,
    address: u64,
    bytes: usize,
}

impl Gpu {
    /// Takes memory; what is in it is not known.
    ///
    /// # Errors
    /// [`GpuError::is_out_of_memory`]; others of the driver.
    pub fn memory(&self, bytes: usize) -> Result<Memory<'_>, GpuError> {
        let mut address = 0;
        // SAFETY: it writes one address.
        unsafe { call!(self.driver, cuMemAlloc_v2(&raw mut address, bytes)) }?;
        Ok(Memory {
            gpu: self,
            address,
            bytes,
        })
    }
}

impl Memory<'_> {
    /// Where it lies on the GPU.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Sets every byte.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn fill(&self, byte: u8) -> Result<(), GpuError> {
        // SAFETY: exactly this memory, which is on the GPU.
        unsafe {
            call!(
                self.gpu.driver,
                cuMemsetD8_v2(self.address, byte, self.bytes)
            )
        }
    }

    /// Copies bytes to the GPU, to `offset` in this memory.
    ///
    /// # Errors
    /// [`GpuError::Outside`]; those of the driver.
    pub fn upload(&self, offset: usize, bytes: &[u8]) -> Result<(), GpuError> {
        let to = self.inside(offset, bytes.len())?;
        // SAFETY: so many bytes are readable at the slice and lie inside this memory. The call returns when they have been read.
        unsafe {
            call!(
                self.gpu.driver,
                cuMemcpyHtoD_v2(to, bytes.as_ptr().cast(), bytes.len())
            )
        }
    }

    /// Copies bytes from the GPU, from `offset` in this memory, when all that was started there has ended.
    ///
    /// # Errors
    /// [`GpuError::Outside`]; those of the driver.
    pub fn download(&self, offset: usize, bytes: &mut [u8]) -> Result<(), GpuError> {
        let from = self.inside(offset, bytes.len())?;
        // SAFETY: so many bytes are writable at the slice and lie inside this memory. The call returns when they have been written.
        unsafe {
            call!(
                self.gpu.driver,
                cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, bytes.len())
            )
        }
    }

    /// The address of some bytes of this memory.
    fn inside(&self, offset: usize, bytes: usize) -> Result<u64, GpuError> {
        let end = offset.checked_add(bytes);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(GpuError::Outside {
                offset,
                bytes,
                size: self.bytes,
            });
        }
        Ok(self.address + offset as u64)
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: it is ours and is given back once, here. A failure leaves it to the context, which goes soon after.
        let _ = unsafe { call!(self.gpu.driver, cuMemFree_v2(self.address)) };
    }
}
