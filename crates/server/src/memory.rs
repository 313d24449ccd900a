//! Memory that is not needed any more.

/// Gives freed memory back to the system. Reading a large workflow takes many times the memory that its plan
/// takes, and the allocator would keep what lies between.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library has no safe way to ask for this")]
pub(crate) fn give_back() {
    // SAFETY: the call takes no pointer and may be made at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators give memory back by themselves.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}
