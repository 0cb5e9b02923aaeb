//! Memory with a page behind it, and one before, that nobody may touch: a read or write beside an allocation ends the test.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout},
    ptr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

fn page() -> usize {
    // SAFETY: asks for a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// An allocator that gives each allocation pages of its own.
pub struct Guarded {
    /// Whether allocations begin behind the page before them, instead of ending at the page behind. The end is exact where the
    /// alignment is 1, as for bytes.
    pub at_start: AtomicBool,
}

// SAFETY: every allocation is a mapping of its own, large enough for size and alignment.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let page = page();
        let room = layout.size().next_multiple_of(page);
        if layout.align() > page {
            return ptr::null_mut();
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping touches nothing that is there.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                room + 2 * page,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let pages = mapping.cast::<u8>().wrapping_add(page);
        // SAFETY: these pages lie within the new mapping.
        if unsafe { libc::mprotect(pages.cast(), room, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return ptr::null_mut();
        }
        if self.at_start.load(Relaxed) {
            return pages;
        }
        pages.wrapping_add((room - layout.size()) / layout.align() * layout.align())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let page = page();
        let room = layout.size().next_multiple_of(page);
        let mapping = pointer.wrapping_sub(pointer.addr() % page + page);
        // SAFETY: this is the allocation's own mapping, and nobody uses it any more.
        unsafe { libc::munmap(mapping.cast(), room + 2 * page) };
    }
}

/// Whether a byte can be read.
pub fn is_readable(byte: *const u8) -> bool {
    let mut pipe = [0; 2];
    // SAFETY: the kernel looks at the byte and answers; it does not raise a signal.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let written = libc::write(pipe[1], byte.cast(), 1);
        for end in pipe {
            libc::close(end);
        }
        written == 1
    }
}
