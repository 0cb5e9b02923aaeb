//! The bottom-up merging of Huffman nodes with `dahuffman`'s tie rules.

use std::cmp::Reverse;

use super::Counts;

/// Leaves of a tree: the exponents and EOF.
const MAX_LEAVES: usize = 257;
/// Its nodes.
const MAX_NODES: usize = 2 * MAX_LEAVES;

/// A symbol and its code, the low `bits` bits of `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// An exponent, or `None` for EOF. The order of `Option` is the one wanted: EOF before every exponent.
    pub symbol: Option<u8>,
    pub bits: u32,
    pub value: u64,
}

/// A node, or several in one place on the stack: one unit's tree asks for no memory.
#[derive(Clone, Copy, Default)]
struct Node {
    count: u64,
    /// The first symbol of its leaves: where counts are equal `dahuffman` compares the lists of leaves, which differ in that.
    first: Option<u8>,
    /// The smaller and the larger of the two nodes merged; none for a leaf.
    children: Option<[u16; 2]>,
}

/// Merges the two smallest nodes until at most `roots` are left. Returns the leaves, the largest root's first, each root's in ascending
/// order of their codes. A code begins with its root's number in `root_bits` bits.
pub fn leaves(counts: &Counts, roots: u16, root_bits: u32) -> Vec<Leaf> {
    let mut nodes = [Node::default(); MAX_NODES];
    let mut made = 0;
    // The nodes that are not yet merged, the largest first.
    let mut open = [0u16; MAX_LEAVES];
    let mut opened = 0;
    let exponents = (0..=u8::MAX).map(|e| (counts[usize::from(e)], Some(e)));
    for (count, first) in exponents.filter(|&(count, _)| count > 0).chain([(1, None)]) {
        nodes[made] = Node {
            count,
            first,
            children: None,
        };
        open[made] = made as u16;
        made += 1;
        opened += 1;
    }
    let symbols = opened;
    let key = |node: &Node| Reverse((node.count, node.first));
    open[..opened].sort_unstable_by_key(|&node| key(&nodes[usize::from(node)]));
    while opened > usize::from(roots) {
        let [larger, smaller] = [open[opened - 2], open[opened - 1]];
        let [right, left] = [larger, smaller].map(|node| nodes[usize::from(node)]);
        let merged = Node {
            count: left.count + right.count,
            first: left.first,
            children: Some([smaller, larger]),
        };
        nodes[made] = merged;
        opened -= 2;
        let at =
            open[..opened].partition_point(|&node| key(&nodes[usize::from(node)]) < key(&merged));
        open.copy_within(at..opened, at + 1);
        open[at] = made as u16;
        made += 1;
        opened += 1;
    }
    let mut leaves = Vec::with_capacity(symbols);
    for (number, &root) in (0..).zip(&open[..opened]) {
        collect(&nodes, root, (root_bits, number), &mut leaves);
    }
    leaves
}

/// Appends the leaves below a node whose code has these bits and this value. As deep as the longest code.
fn collect(
    nodes: &[Node; MAX_NODES],
    node: u16,
    (bits, value): (u32, u64),
    leaves: &mut Vec<Leaf>,
) {
    let Node {
        first, children, ..
    } = nodes[usize::from(node)];
    match children {
        None => leaves.push(Leaf {
            symbol: first,
            bits,
            value,
        }),
        Some([left, right]) => {
            collect(nodes, left, (bits + 1, value << 1), leaves);
            collect(nodes, right, (bits + 1, value << 1 | 1), leaves);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(counts: &[(u8, u64)]) -> Vec<(Option<u8>, String)> {
        let mut all = [0; 256];
        for &(exponent, count) in counts {
            all[usize::from(exponent)] = count;
        }
        leaves(&all, 1, 0)
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
