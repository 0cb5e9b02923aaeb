//! The hash of everything that this crate writes and reads: xxh3 of 64 bits, with the vector instructions that the processor has.

use std::hash::Hasher as _;

use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, Hasher, RawHasher, SecretBuffer};

/// A hash in the making. It asks for no memory of its own.
pub struct Xxh3(RawHasher<[u8; DEFAULT_SECRET_LENGTH]>);

impl Xxh3 {
    /// Of nothing yet.
    pub fn new() -> Self {
        let secret = SecretBuffer::with_seed(0, [0; DEFAULT_SECRET_LENGTH]);
        let Ok(secret) = secret else {
            unreachable!("a secret of this length is long enough");
        };
        Self(RawHasher::new(secret))
    }

    /// Takes the bytes that come next.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The hash of all bytes so far.
    pub fn digest(&self) -> u64 {
        self.0.finish()
    }
}

/// The hash of these bytes.
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    Hasher::oneshot(bytes)
}

/// The hash of these bytes that goes with a seed.
pub fn xxh3_64_with_seed(bytes: &[u8], seed: u64) -> u64 {
    Hasher::oneshot_with_seed(seed, bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Another implementation gives the same, however the bytes are cut.
        #[test]
        fn it_is_xxh3(bytes in prop::collection::vec(any::<u8>(), 0..3000), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4), seed: u64) {
            let expected = xxhash_rust::xxh3::xxh3_64(&bytes);
            prop_assert_eq!(xxh3_64(&bytes), expected);
            prop_assert_eq!(xxh3_64_with_seed(&bytes, seed), xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, seed));
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let (mut hasher, mut from) = (Xxh3::new(), 0);
            for cut in cuts {
                hasher.update(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(hasher.digest(), expected);
        }
    }
}
