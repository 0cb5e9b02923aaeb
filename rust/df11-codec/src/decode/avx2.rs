//! The fast half of a check, compiled for AVX2 and the bit instructions that come with it: a third faster.
#![allow(unsafe_code)]

use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

use super::{
    ChunkRun, DecodeTables,
    lanes::{self, CheckBuffers},
    run::Slices,
};
use crate::x86;

/// [`lanes::EqualChunks`] with AVX2.
pub fn equal_chunks(
    tables: &DecodeTables,
    slices: &Slices<'_>,
    run: &ChunkRun<'_>,
    source: &[u8],
    buffers: &mut CheckBuffers,
) -> usize {
    if !x86::has_avx2() {
        return 0;
    }
    // SAFETY: the processor has the features, as asked.
    unsafe { compiled_for_avx2(tables, slices, run, source, buffers) }
}

/// # Safety
/// The processor must have the features of [`x86::has_avx2`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,movbe")]
unsafe fn compiled_for_avx2(
    tables: &DecodeTables,
    slices: &Slices<'_>,
    run: &ChunkRun<'_>,
    source: &[u8],
    buffers: &mut CheckBuffers,
) -> usize {
    lanes::equal_chunks_with(tables, slices, run, source, buffers, |bytes, at| {
        // SAFETY: nothing is read. Newer compilers need not be told.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().wrapping_add(at).cast());
        }
    })
}
