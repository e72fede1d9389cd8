//! An allocator and a panic handler for consumers without std.

use crate::{log, Level};
use alloc::string::ToString;
use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::UnsafeCell;

const PAGE_BYTES: usize = 65536;

/// Hands out memory from the end of what was handed out before, and takes back only the last block. A handler starts in a
/// module that is as new, so that what one message used is gone at the next.
struct Bump {
    state: UnsafeCell<(usize, usize)>, // what is free: from, to
}

// A module has one thread.
unsafe impl Sync for Bump {}

impl Bump {
    /// Adds pages to what is free; false if the host refuses them.
    unsafe fn grow(&self, bytes: usize) -> bool {
        let pages = bytes / PAGE_BYTES + 1;
        let old = wasm32::memory_grow(0, pages);
        if old == usize::MAX {
            return false;
        }
        let state = &mut *self.state.get();
        if state.1 != old * PAGE_BYTES {
            state.0 = old * PAGE_BYTES;
        }
        // The last byte of a memory of 4 GiB can't be named: one is left out always, then.
        state.1 = (old + pages).checked_mul(PAGE_BYTES).unwrap_or(usize::MAX);
        true
    }
}

unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        for _ in 0..2 {
            let state = &mut *self.state.get();
            let at = (state.0 + l.align() - 1) & !(l.align() - 1);
            if state.0 != 0 && at <= state.1 && state.1 - at >= l.size() {
                state.0 = at + l.size();
                return at as *mut u8;
            }
            match l.size().checked_add(l.align()) {
                Some(bytes) if self.grow(bytes) => continue,
                _ => break,
            }
        }
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        let state = &mut *self.state.get();
        if p as usize + l.size() == state.0 {
            state.0 = p as usize;
        }
    }

    unsafe fn realloc(&self, p: *mut u8, l: Layout, size: usize) -> *mut u8 {
        let state = &mut *self.state.get();
        if p as usize + l.size() == state.0 && state.1 - p as usize >= size {
            state.0 = p as usize + size; // the last block grows where it is
            return p;
        }
        let new = self.alloc(Layout::from_size_align_unchecked(size, l.align()));
        if !new.is_null() {
            core::ptr::copy_nonoverlapping(p, new, l.size().min(size));
        }
        new
    }
}

#[global_allocator]
static ALLOCATOR: Bump = Bump { state: UnsafeCell::new((0, 0)) };

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    log(Level::Critical, &info.to_string());
    wasm32::unreachable()
}
