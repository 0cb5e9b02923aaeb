//! The format written down a second time, as plainly as possible: codes are strings of '0' and '1', everything is sequential.
//!
//! It follows the rules of the official tool step by step and shares nothing with the crate.

use std::collections::BTreeMap;

/// Exponent, or `None` for EOF, and its code.
pub type CodeTable = Vec<(Option<u8>, String)>;
pub type Counts = BTreeMap<u8, u64>;

pub fn count(exponents: &[u8]) -> Counts {
    let mut counts = Counts::new();
    for &e in exponents {
        *counts.entry(e).or_default() += 1;
    }
    counts
}

/// Huffman merging down to `roots` nodes, smallest first.
fn merge(counts: &Counts, roots: usize) -> Vec<(u64, CodeTable)> {
    let mut nodes: Vec<(u64, CodeTable)> = counts
        .iter()
        .map(|(&e, &n)| (n, vec![(Some(e), String::new())]))
        .collect();
    nodes.push((1, vec![(None, String::new())]));
    loop {
        nodes.sort_by_key(|(n, list)| (*n, list[0].0));
        if nodes.len() <= roots {
            return nodes;
        }
        let (count_a, a) = nodes.remove(0);
        let (count_b, b) = nodes.remove(0);
        let left = a.into_iter().map(|(s, code)| (s, format!("0{code}")));
        let right = b.into_iter().map(|(s, code)| (s, format!("1{code}")));
        nodes.push((count_a + count_b, left.chain(right).collect()));
    }
}

pub fn huffman(counts: &Counts) -> CodeTable {
    merge(counts, 1).remove(0).1
}

pub fn two_bit(counts: &Counts) -> CodeTable {
    let mut nodes = merge(counts, 4);
    nodes.reverse();
    let with_prefix = nodes.into_iter().zip(["00", "01", "10", "11"]);
    with_prefix
        .flat_map(|((_, list), p)| {
            list.into_iter()
                .map(move |(s, code)| (s, format!("{p}{code}")))
        })
        .collect()
}

pub fn longest(table: &CodeTable) -> usize {
    table.iter().map(|(_, code)| code.len()).max().unwrap_or(0)
}

/// The code within 32 bits, and the k that the limiter stopped at.
pub fn limit(counts: &Counts) -> (CodeTable, Option<usize>) {
    let table = huffman(counts);
    if longest(&table) <= 32 {
        return (table, None);
    }
    let mut rarest: Vec<(u64, u8)> = counts.iter().map(|(&e, &n)| (n, e)).collect();
    rarest.sort_unstable();
    for k in 2..=rarest.len() {
        let mut changed = counts.clone();
        for (_, e) in &rarest[..k] {
            changed.insert(*e, 1);
        }
        let table = huffman(&changed);
        if longest(&table) <= 32 {
            return (table, Some(k));
        }
    }
    unreachable!("equal counts always fit");
}

pub fn prefixes(table: &CodeTable) -> Vec<String> {
    let mut prefixes = vec![String::new()];
    for (symbol, code) in table {
        let prefix = code[..(code.len() - 1) / 8 * 8].to_owned();
        if symbol.is_some() && !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes.sort_by_key(|p| (p.len(), p.clone()));
    prefixes
}

/// The smallest floor at which `build` gives at most 17 tables and 32 bits.
pub fn flatten(counts: &Counts, build: impl Fn(&Counts) -> CodeTable) -> (u64, CodeTable) {
    let mut floor = 2;
    loop {
        let raised = counts.iter().map(|(&e, &n)| (e, n.max(floor))).collect();
        let table = build(&raised);
        if fits(&table) {
            return (floor, table);
        }
        floor *= 2;
    }
}

pub fn fits(table: &CodeTable) -> bool {
    longest(table) <= 32 && prefixes(table).len() <= 17
}

/// Entries that a table sets itself.
fn set_entries(table: &CodeTable, prefixes: &[String], p: &str) -> BTreeMap<usize, u8> {
    let mut set = BTreeMap::new();
    for (symbol, code) in table {
        let Some(exponent) = symbol else { continue };
        let Some(rest) = code.strip_prefix(p) else {
            continue;
        };
        let (bits, value) = if rest.len() <= 8 {
            (format!("{rest:0<8}"), *exponent)
        } else {
            let next = &code[..p.len() + 8];
            let index = prefixes
                .iter()
                .position(|q| q == next)
                .expect("every byte of a code has a table");
            (rest[..8].to_owned(), (256 - index) as u8)
        };
        set.insert(usize::from_str_radix(&bits, 2).expect("bits"), value);
    }
    set
}

/// The `luts` rows, `carry` as the official tool. Also the tables that have no entry 0.
pub fn luts(table: &CodeTable, carry: bool) -> (Vec<[u8; 256]>, Vec<usize>) {
    let prefixes = prefixes(table);
    let mut rows = Vec::new();
    let mut headless = Vec::new();
    let mut current = None;
    for (index, p) in prefixes.iter().enumerate() {
        let set = set_entries(table, &prefixes, p);
        let first = *set.values().next().expect("a table is not empty");
        if !set.contains_key(&0) {
            headless.push(index);
        }
        if current.is_none() || !carry {
            current = Some(first);
        }
        let mut row = [0; 256];
        for (i, entry) in row.iter_mut().enumerate() {
            current = set.get(&i).copied().or(current);
            *entry = current.expect("set above");
        }
        rows.push(row);
    }
    let mut lengths = [0; 256];
    for (symbol, code) in table {
        if let Some(e) = symbol {
            lengths[usize::from(*e)] = code.len() as u8;
        }
    }
    rows.push(lengths);
    (rows, headless)
}

/// Gives a headless table its own first value.
pub fn refill(rows: &mut [[u8; 256]], table: &CodeTable, index: usize) {
    let prefixes = prefixes(table);
    let set = set_entries(table, &prefixes, &prefixes[index]);
    let (&from, &value) = set.iter().next().expect("a table is not empty");
    rows[index][..from].fill(value);
}

/// Stream, gaps (one a window) and positions.
#[derive(Debug, PartialEq, Eq)]
pub struct Stream {
    pub bytes: Vec<u8>,
    pub gaps: Vec<u8>,
    pub positions: Vec<u32>,
    pub bits: usize,
}

pub fn encode(exponents: &[u8], table: &CodeTable) -> Stream {
    let code = |symbol| {
        &table
            .iter()
            .find(|(s, _)| *s == symbol)
            .expect("symbol has a code")
            .1
    };
    let (mut gaps, mut positions, mut bits) = (Vec::new(), Vec::new(), String::new());
    let open = |at: usize, index: usize, gaps: &mut Vec<u8>, positions: &mut Vec<u32>| {
        if at / 64 + 1 > gaps.len() {
            gaps.push((at % 64) as u8);
        }
        if at / 32768 + 1 > positions.len() {
            positions.push(index as u32);
        }
    };
    for (index, &e) in exponents.iter().enumerate() {
        open(bits.len(), index, &mut gaps, &mut positions);
        bits.push_str(code(Some(e)));
    }
    let total = bits.len();
    if total % 8 != 0 {
        open(total, exponents.len(), &mut gaps, &mut positions);
        bits.push_str(code(None));
        bits.truncate(total.next_multiple_of(8));
        while bits.len() % 8 != 0 {
            bits.push('0');
        }
    }
    positions.push(exponents.len() as u32);
    let bytes: Vec<u8> = bits
        .as_bytes()
        .chunks(8)
        .map(|byte| byte.iter().fold(0, |b, &c| b << 1 | (c - b'0')))
        .collect();
    gaps.resize(bytes.len().div_ceil(4096) * 512, 0);
    Stream {
        bytes,
        gaps,
        positions,
        bits: total,
    }
}

pub fn pack_gaps(gaps: &[u8]) -> Vec<u8> {
    let bits: Vec<u8> = gaps
        .iter()
        .flat_map(|gap| (0..5).rev().map(move |i| gap >> i & 1))
        .collect();
    bits.chunks(8)
        .map(|byte| byte.iter().fold(0, |b, bit| b << 1 | bit))
        .collect()
}

/// What the GPU makes of a unit: the exponents, or `None` where a thread loops for ever.
pub fn gpu_decode(rows: &[[u8; 256]], stream: &Stream, weights: usize) -> Option<Vec<u8>> {
    let lengths = rows.last().expect("rows");
    let byte_at = |bit: usize| {
        let byte = |at: usize| u16::from(stream.bytes.get(at).copied().unwrap_or(0));
        ((byte(bit / 8) << 8 | byte(bit / 8 + 1)) >> (8 - bit % 8)) as u8
    };
    let mut out = vec![0; weights];
    for (window, &gap) in stream.gaps.iter().enumerate() {
        if window % 512 == 0 {
            out.truncate(stream.positions[window / 512] as usize);
        }
        let mut pos = usize::from(gap);
        while pos < 64 {
            let bit = window * 64 + pos;
            let mut table = 0;
            let mut value = 0;
            for level in 0..4 {
                value = rows[table][usize::from(byte_at(bit + 8 * level))];
                if value < 240 {
                    break;
                }
                table = 256 - usize::from(value);
            }
            let length = usize::from(lengths[usize::from(value)]);
            if length == 0 {
                return None;
            }
            out.push(value);
            pos += length;
        }
    }
    out.truncate(weights);
    Some(out)
}
