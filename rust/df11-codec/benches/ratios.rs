//! Rates of every kernel on every distribution, and their ratios to a byte-at-a-time encoder and to each other.
//!
//! `cargo bench -p df11-codec --bench ratios [-- MILLIONS [SECONDS [DISTRIBUTION]]]`: millions of weights, seconds that each figure may
//! take, and a word of the distributions wanted. One core, memory to memory. Each figure is the best of as many repetitions as fit, since other processes only ever make it worse.
#![allow(missing_docs, clippy::print_stdout)]

#[path = "common/bytewise.rs"]
mod bytewise;
#[path = "../tests/common/distributions.rs"]
mod distributions;
#[path = "common/unit.rs"]
mod unit;

use std::time::{Duration, Instant};

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
        "distribution    kernel       histogram    encode      unit     check   unit / byte-at-a-time   check / encode"
    );
    let distributions = distributions::ALL.into_iter();
    for (name, distribution) in distributions.filter(|(name, _)| name.contains(&wanted)) {
        let weights = distribution(weights);
        let rate = |work: &mut dyn FnMut()| weights.len() as f64 / 2e6 / best(seconds, work);
        let mut bytewise = Bytewise::default();
        let baseline = rate(&mut || bytewise.encode(&weights).expect("encodable"));
        println!(
            "{name:15} {:12} {:>9} {:>9} {baseline:9.0}",
            "byte-wise", "", ""
        );
        for kernel in Kernel::available() {
            let unit = Unit::new(kernel, &weights);
            let tensors = Tensors::new(kernel, &unit);
            assert_same(&bytewise, &tensors);
            let mut piece = EncodedPiece::default();
            let count = rate(&mut || drop(std::hint::black_box(unit::count(kernel, &weights))));
            let encode = rate(&mut || unit.encode(kernel, &mut piece, |_| ()));
            let whole =
                rate(&mut || Unit::new(kernel, &weights).encode(kernel, &mut piece, |_| ()));
            let tables = DecodeTables::with_kernel(kernel, &tensors.luts).expect("own tables");
            let check = rate(&mut || tensors.check(&tables, &unit));
            println!(
                "{name:15} {:12} {count:9.0} {encode:9.0} {whole:9.0} {check:9.0} {:23.2} {:16.2}",
                kernel.name(),
                whole / baseline,
                check / encode
            );
        }
    }
}

/// The shortest of the times that `work` takes, in seconds.
fn best(limit: Duration, work: &mut dyn FnMut()) -> f64 {
    let began = Instant::now();
    let mut best = f64::INFINITY;
    while began.elapsed() < limit {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// Both have encoded the same, but for the end of the last byte.
fn assert_same(bytewise: &Bytewise, tensors: &Tensors) {
    let without_last = |stream: &[u8]| stream[..stream.len() - 1].to_vec();
    assert!(bytewise.sign_mantissa == tensors.sign_mantissa);
    assert!(without_last(&bytewise.encoded_exponent) == without_last(&tensors.encoded_exponent));
    assert!(bytewise.gaps == tensors.gaps);
    assert!(bytewise.output_positions == tensors.output_positions);
}
