//! What a 64-bit ARM processor can do. Asked once by the standard library, then read from memory.

use std::arch::is_aarch64_feature_detected;

/// The features that the NEON kernel is compiled with. Part of every such processor that runs an operating system.
pub fn has_neon() -> bool {
    is_aarch64_feature_detected!("neon")
}
