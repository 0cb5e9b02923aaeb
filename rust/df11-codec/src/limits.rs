//! The numbers of the format and of the decode kernel. Shared by encoder and decoder.

/// Bits in one thread window: each GPU thread decodes the codes that start in 8 bytes of bitstream.
pub const WINDOW_BITS: u64 = 64;
/// Thread windows in one kernel chunk (GPU threads in one block).
pub const WINDOWS_PER_CHUNK: u64 = 512;
/// Bytes of bitstream in one kernel chunk.
pub const CHUNK_BYTES: u64 = WINDOWS_PER_CHUNK * WINDOW_BITS / 8;
/// Bits of bitstream in one kernel chunk.
pub const CHUNK_BITS: u64 = CHUNK_BYTES * 8;
/// Bits that one gap takes in the packed `gaps` tensor.
pub const GAP_BITS: u64 = 5;
/// Bytes of packed gaps of one kernel chunk.
pub const GAP_BYTES_PER_CHUNK: u64 = WINDOWS_PER_CHUNK * GAP_BITS / 8;
/// Longest code in bits: the kernel looks at 32 bits.
pub const MAX_CODE_BITS: u32 = 32;
/// Most prefix tables: jump values 240..=255 reach tables 1..=16.
pub const MAX_TABLES: usize = 17;
/// The first LUT value that is a jump to table `256 - value` instead of an exponent.
pub const FIRST_JUMP: u8 = 240;
/// Most weights in one kernel chunk: the loader launches with `2052 + 2 * weights` bytes of shared memory, at most 48 KiB.
pub const MAX_WEIGHTS_PER_CHUNK: u64 = 23_550;
/// Most weights, and most bitstream bytes, of a unit: the kernel's indices are `int`.
pub const MAX_UNIT_WEIGHTS: u64 = (1 << 31) - 1;
