//! Test weights.

use proptest::prelude::*;

/// BF16 words with these exponents; sign and mantissa vary.
pub fn with_exponents(exponents: &[u8]) -> Vec<u8> {
    let mut state = 0x9E37_79B9u32;
    let word = |&e: &u8| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (state >> 16) as u16;
        (noise & 0x807F | u16::from(e) << 7).to_le_bytes()
    };
    exponents.iter().flat_map(word).collect()
}

pub fn exponents_of(weights: &[u8]) -> Vec<u8> {
    weights
        .chunks_exact(2)
        .map(|w| (u16::from_le_bytes([w[0], w[1]]) >> 7) as u8)
        .collect()
}

/// Each exponent as often as its count says, in a fixed disorder that ends with `last`.
pub fn from_counts(counts: &[(u8, u64)], last: u8) -> Vec<u8> {
    let mut all: Vec<u8> = counts
        .iter()
        .flat_map(|&(e, n)| std::iter::repeat_n(e, n as usize))
        .collect();
    let mut state = 88_172_645_463_325_252u64;
    for i in (1..all.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        all.swap(i, (state % (i as u64 + 1)) as usize);
    }
    if let Some(at) = all.iter().position(|&e| e == last) {
        all.remove(at);
        all.push(last);
    }
    all
}

/// Exponents of many kinds: few or many different ones, flat or steep.
pub fn exponents(max_len: usize) -> impl Strategy<Value = Vec<u8>> {
    let alphabet = prop::collection::vec(0u8..240, 1..=40);
    (alphabet, 0u32..=24, 1..=max_len).prop_flat_map(|(alphabet, steepness, len)| {
        let pick = any::<u32>().prop_map(move |r| {
            // Halves the choice as often as there are leading zeros, up to `steepness` times: from uniform to geometric.
            let skip = r.leading_zeros().min(steepness) as usize;
            let spread = if steepness == 0 {
                r as usize
            } else {
                skip + (r % 3 == 0) as usize
            };
            alphabet[spread % alphabet.len()]
        });
        prop::collection::vec(pick, len)
    })
}

/// Sizes of pieces, down to one weight.
pub fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1usize..4, 1usize..200, 1usize..20_000], 1..30)
}
