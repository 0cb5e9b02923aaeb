//! Eight tables, without SIMD.

/// Weights counted before the 32-bit tables are emptied.
const SPAN_WEIGHTS: usize = 1 << 24;

/// Too few weights to make up for tables that have to be cleared and added up.
const FEW_WEIGHTS: usize = 1500;

/// Adds the exponents of `weights`.
///
/// Neighbouring weights often share an exponent. A table for each of eight neighbours keeps one increment from waiting for the store of
/// the one before.
pub fn count(counts: &mut [u64; 256], weights: &[u8]) {
    if weights.len() < 2 * FEW_WEIGHTS {
        return super::reference::count(counts, weights);
    }
    for span in weights.chunks(2 * SPAN_WEIGHTS) {
        let mut tables = [[0u32; 256]; 8];
        let (low_tables, high_tables) = tables.split_at_mut(4);
        let groups = span.chunks_exact(16);
        super::reference::count(counts, groups.remainder());
        for group in groups {
            let (low, high) = group.split_at(8);
            add_four(low_tables, low);
            add_four(high_tables, high);
        }
        for table in &tables {
            for (count, &more) in counts.iter_mut().zip(table) {
                *count = count.saturating_add(u64::from(more));
            }
        }
    }
}

/// Counts four weights, each in its own table.
#[inline]
fn add_four(tables: &mut [[u32; 256]], weights: &[u8]) {
    let word = weights
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let exponents = word >> 7;
    for (lane, table) in tables.iter_mut().enumerate() {
        table[usize::from((exponents >> (16 * lane)) as u8)] += 1;
    }
}
