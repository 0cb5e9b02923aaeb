//! Rates of every kernel on every distribution, and their ratios to a byte-at-a-time encoder and to each other.
//!
//! `cargo bench -p df11-codec --bench ratios [-- MILLIONS [SECONDS [DISTRIBUTION]]]`: millions of weights, seconds that each figure may
//! take, and a word of the distributions wanted. `DF11_REAL_WEIGHTS` may name a file of BF16 weights (`scripts/real_weights.py` makes one). One
//! core, memory to memory. Each figure is the best of as many repetitions as fit, since other processes only ever make it worse.
#![allow(missing_docs, clippy::print_stdout)]

#[path = "common/bytewise.rs"]
mod bytewise;
#[path = "../tests/common/distributions.rs"]
mod distributions;
#[path = "common/unit.rs"]
mod unit;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bytewise::Bytewise;
use df11_codec::{DecodeTables, EncodedPiece, Kernel};
use unit::{Tensors, Unit};

fn main() {
    let arguments = || {
        std::env::args()
            .skip(1)
            .filter(|argument| argument != "--bench")
    };
    let mut numbers = arguments().filter_map(|argument| argument.parse::<f64>().ok());
    let wanted = arguments().nth(2).unwrap_or_default();
    let weights = (numbers.next().unwrap_or(16.0) * 1e6) as usize;
    let seconds = Duration::from_secs_f64(numbers.next().unwrap_or(2.0));
    println!("{weights} weights, one core; million weights a second, best of {seconds:?}\n");
    println!(
        "distribution    kernel       histogram    encode      unit     check   unit / byte-at-a-time   check / encode   check / unit"
    );
    let measured = distributions::measured(weights);
    for (name, weights) in measured.filter(|(name, _)| name.contains(&wanted)) {
        let mut bytewise = Bytewise::default();
        bytewise.encode(&weights).expect("encodable");
        let kernels = Kernel::available();
        let units: Vec<Unit<'_>> = kernels
            .iter()
            .map(|&kernel| Unit::new(kernel, &weights))
            .collect();
        let tensors: Vec<Tensors> = kernels
            .iter()
            .zip(&units)
            .map(|(&kernel, unit)| Tensors::new(kernel, unit))
            .collect();
        for tensors in &tensors {
            assert_same(&bytewise, tensors);
        }
        let mut works: Vec<Box<dyn FnMut() + '_>> =
            vec![Box::new(|| bytewise.encode(&weights).expect("encodable"))];
        for ((&kernel, unit), tensors) in kernels.iter().zip(&units).zip(&tensors) {
            let tables = DecodeTables::with_kernel(kernel, &tensors.luts).expect("own tables");
            let (mut piece, mut other) = (EncodedPiece::default(), EncodedPiece::default());
            let weights = &weights;
            works.push(Box::new(move || {
                drop(black_box(unit::count(kernel, weights)));
            }));
            works.push(Box::new(move || unit.encode(kernel, &mut piece, |_| ())));
            works.push(Box::new(move || {
                Unit::new(kernel, weights).encode(kernel, &mut other, |_| ());
            }));
            works.push(Box::new(move || tensors.check(&tables, unit)));
        }
        let rates = best(seconds, &mut works).map(|seconds| weights.len() as f64 / 2e6 / seconds);
        let rates: Vec<f64> = rates.collect();
        let baseline = rates[0];
        println!(
            "{name:15} {:12} {:>9} {:>9} {baseline:9.0}",
            "byte-wise", "", ""
        );
        for (kernel, rates) in kernels.iter().zip(rates[1..].chunks_exact(4)) {
            let [count, encode, whole, check] = [0, 1, 2, 3].map(|stage| rates[stage]);
            println!(
                "{name:15} {:12} {count:9.0} {encode:9.0} {whole:9.0} {check:9.0} {:23.2} {:16.2} {:14.2}",
                kernel.name(),
                whole / baseline,
                check / encode,
                check / whole
            );
        }
    }
}

/// The shortest times of each work in seconds. They take turns, so that what else the machine does meets all of them.
fn best(each: Duration, works: &mut [Box<dyn FnMut() + '_>]) -> impl Iterator<Item = f64> {
    let limit = each * works.len() as u32;
    let began = Instant::now();
    let mut best = vec![f64::INFINITY; works.len()];
    while began.elapsed() < limit {
        for (work, best) in works.iter_mut().zip(&mut best) {
            let start = Instant::now();
            work();
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best.into_iter()
}

/// Both have encoded the same, but for the end of the last byte.
fn assert_same(bytewise: &Bytewise, tensors: &Tensors) {
    let without_last = |stream: &[u8]| stream[..stream.len() - 1].to_vec();
    assert!(bytewise.sign_mantissa == tensors.sign_mantissa);
    assert!(without_last(&bytewise.encoded_exponent) == without_last(&tensors.encoded_exponent));
    assert!(bytewise.gaps == tensors.gaps);
    assert!(bytewise.output_positions == tensors.output_positions);
}
