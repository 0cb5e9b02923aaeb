//! What an x86-64 processor can do. Asked once by the standard library, then read from memory.

/// How far before their use weights are asked for, in bytes: a page, since the processor itself looks no further than its end.
/// Asking for memory that is not there does no harm.
pub const AHEAD: usize = 4096;

/// The features that the AVX2 kernel is compiled with.
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("movbe")
}

/// The features that the AVX-512 kernel is compiled with.
#[cfg(has_avx512)]
pub fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vpopcntdq")
}

/// The features that its encoder is compiled with besides. Processors have had them a generation later than the others.
#[cfg(has_avx512)]
pub fn has_avx512_bytes() -> bool {
    has_avx512()
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
}
