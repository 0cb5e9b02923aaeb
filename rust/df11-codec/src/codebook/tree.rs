//! The bottom-up merging of Huffman nodes with `dahuffman`'s tie rules.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::Counts;

/// A symbol and its code so far, the low `bits` bits of `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// An exponent, or `None` for EOF. The order of `Option` is the one wanted: EOF before every exponent.
    pub symbol: Option<u8>,
    pub bits: u32,
    pub value: u64,
}

/// Merges the two smallest nodes until at most `roots` are left. Returns their leaves, the largest node first, each node's in
/// ascending order of the codes.
///
/// Nodes are ordered by count; where counts are equal `dahuffman` compares the lists of leaves, which differ in their first symbol.
pub fn forest(counts: &Counts, roots: usize) -> Vec<Vec<Leaf>> {
    let exponents = (0..=u8::MAX).map(|e| (counts[usize::from(e)], Some(e)));
    let symbols = exponents.filter(|&(count, _)| count > 0).chain([(1, None)]);
    let mut leaves: Vec<Vec<Leaf>> = Vec::new();
    let mut heap = BinaryHeap::new();
    for (count, symbol) in symbols {
        heap.push(Reverse((count, symbol, leaves.len())));
        leaves.push(vec![Leaf {
            symbol,
            bits: 0,
            value: 0,
        }]);
    }
    while heap.len() > roots {
        let (Some(Reverse((count_a, first, a))), Some(Reverse((count_b, _, b)))) =
            (heap.pop(), heap.pop())
        else {
            break;
        };
        let mut right = std::mem::take(&mut leaves[b]);
        for leaf in &mut leaves[a] {
            leaf.bits += 1;
        }
        for leaf in &mut right {
            leaf.value |= 1 << leaf.bits;
            leaf.bits += 1;
        }
        leaves[a].append(&mut right);
        heap.push(Reverse((count_a + count_b, first, a)));
    }
    // Ascending order of `Reverse` is descending order of the nodes.
    heap.into_sorted_vec()
        .into_iter()
        .map(|Reverse((_, _, node))| std::mem::take(&mut leaves[node]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(counts: &[(u8, u64)]) -> Vec<(Option<u8>, String)> {
        let mut all = [0; 256];
        for &(exponent, count) in counts {
            all[usize::from(exponent)] = count;
        }
        forest(&all, 1)
            .concat()
            .iter()
            .map(|leaf| {
                (
                    leaf.symbol,
                    format!("{:0width$b}", leaf.value, width = leaf.bits as usize),
                )
            })
            .collect()
    }

    fn expect(symbols: &[(Option<u8>, &str)]) -> Vec<(Option<u8>, String)> {
        symbols
            .iter()
            .map(|&(symbol, code)| (symbol, code.to_owned()))
            .collect()
    }

    // The expected codes were printed by dahuffman 0.4.2.
    #[test]
    fn equal_counts_go_by_first_symbol_and_eof_is_smallest() {
        assert_eq!(codes(&[(9, 1)]), expect(&[(None, "0"), (Some(9), "1")]));
        assert_eq!(
            codes(&[(3, 1), (4, 1), (5, 2), (6, 2)]),
            expect(&[
                (Some(4), "00"),
                (None, "010"),
                (Some(3), "011"),
                (Some(5), "10"),
                (Some(6), "11")
            ])
        );
    }
}
