//! The system's allocator with something put by, so that a job that runs out of memory ends with an error.
//!
//! Rust ends the program where a small request is refused. Here it is granted from the reserve instead; the job sees at its next look
//! for a request to stop that the reserve is touched, and fails. What is missing is put by when a source is opened and when a job starts.

#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use memmap2::MmapMut;

use crate::{
    error::{Code, Error, Result},
    sync::lock,
};

/// A refused request of less than this is granted: the buffers of checks and restorations have 1 MiB, to which an allocator adds a little.
/// Whoever asks for more, as for spans, takes a refusal.
const BLOCK_BYTES: usize = (1 << 20) + (64 << 10);
/// Several, since several threads are refused something at once, and an end in order needs memory too.
const BLOCKS: usize = 4;

static RESERVE: Reserve = Reserve::new();

/// To be the `global_allocator` of a program that runs jobs.
#[derive(Debug)]
pub struct Reserving;

/// Puts by what is missing of the reserve.
///
/// # Errors
/// `E_NO_MEMORY` where the system does not give it.
pub fn fill() -> Result<()> {
    RESERVE.fill()
}

/// An error where the system has refused this process a small request since the reserve was filled, whichever job asked.
///
/// # Errors
/// `E_NO_MEMORY`.
pub fn check() -> Result<()> {
    RESERVE.check()
}

struct Reserve {
    /// Never written to: what systems refuse is the promise of memory, and nothing else is held. Mapped one by one: what an allocator has
    /// got it may keep for one thread.
    blocks: Mutex<[Option<MmapMut>; BLOCKS]>,
    is_touched: AtomicBool,
}

impl Reserve {
    const fn new() -> Self {
        Self {
            blocks: Mutex::new([const { None }; BLOCKS]),
            is_touched: AtomicBool::new(false),
        }
    }

    fn fill(&self) -> Result<()> {
        let mut blocks = lock(&self.blocks);
        for block in blocks.iter_mut().filter(|block| block.is_none()) {
            *block = MmapMut::map_anon(BLOCK_BYTES).ok();
        }
        let is_full = blocks.iter().all(Option::is_some);
        if is_full {
            self.is_touched.store(false, Relaxed);
        }
        // The error asks for memory itself.
        drop(blocks);
        if is_full { Ok(()) } else { Err(no_memory()) }
    }

    fn check(&self) -> Result<()> {
        if self.is_touched.load(Relaxed) {
            Err(no_memory())
        } else {
            Ok(())
        }
    }

    /// Gives back one block; false where there is none.
    fn give_back(&self) -> bool {
        let mut blocks = lock(&self.blocks);
        self.is_touched.store(true, Relaxed);
        blocks.iter_mut().find_map(Option::take).is_some()
    }

    /// Asks again, as long as that may help, where `ask` is refused so many bytes.
    fn insist(&self, bytes: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
        let mut place = ask();
        let mut has_more = bytes < BLOCK_BYTES;
        while place.is_null() && has_more {
            // Where there is none, another thread may have given one back meanwhile.
            has_more = self.give_back();
            place = ask();
        }
        place
    }
}

fn no_memory() -> Error {
    Error::new(Code::NoMemory, "the system gives no more memory")
        .hint("Close other programs, or allow less memory.")
}

// SAFETY: the system's allocator does all; this one only asks it again. The blocks are no allocations.
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        RESERVE.insist(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        RESERVE.insist(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; a refused block stays as it is.
        RESERVE.insist(size, || unsafe { System.realloc(place, layout, size) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, ptr};

    use super::*;

    /// How often it was asked where so many requests are refused, and whether it was granted at last.
    fn asked(reserve: &Reserve, bytes: usize, refusals: usize) -> (usize, bool) {
        let times = Cell::new(0);
        let place = reserve.insist(bytes, || {
            times.set(times.get() + 1);
            let is_granted = times.get() > refusals;
            if is_granted {
                ptr::dangling_mut()
            } else {
                ptr::null_mut()
            }
        });
        (times.get(), !place.is_null())
    }

    #[test]
    fn small_requests_are_granted_and_noticed() {
        let reserve = Reserve::new();
        reserve.fill().unwrap();
        assert_eq!(asked(&reserve, 100, 0), (1, true));
        reserve.check().unwrap();
        assert_eq!(asked(&reserve, BLOCK_BYTES - 1, 2), (3, true));
        assert_eq!(reserve.check().unwrap_err().code, Code::NoMemory);
        // Two blocks are left, and one look more.
        assert_eq!(asked(&reserve, 100, 9), (4, false));
        assert_eq!(asked(&reserve, 100, 1), (2, true));
        reserve.fill().unwrap();
        reserve.check().unwrap();
        assert_eq!(asked(&reserve, 100, 9), (BLOCKS + 2, false));
    }

    #[test]
    fn large_requests_are_refused() {
        let reserve = Reserve::new();
        reserve.fill().unwrap();
        assert_eq!(asked(&reserve, BLOCK_BYTES, 1), (1, false));
        reserve.check().unwrap();
    }
}
