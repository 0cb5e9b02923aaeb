//! What differs from system to system.

/// A write beyond the limit on file sizes (`ulimit -f`) fails from now on, as on a full disk, instead of ending the program. Where that
/// cannot be had, the program goes on without.
pub fn survive_size_limit() {
    #[cfg(unix)]
    {
        let seen = std::sync::Arc::default();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, seen);
    }
}
