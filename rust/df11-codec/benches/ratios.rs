//! Rates of every kernel on every distribution, and their ratios to a byte-at-a-time encoder and to each other.
//!
//! `cargo bench -p df11-codec --bench ratios [-- MILLIONS [SECONDS [DISTRIBUTION]]]`: millions of weights, seconds that each figure may
//! take, and a word of the distributions wanted. One core, memory to memory. Each rate is the best of as many repetitions as fit, since
//! other processes only ever make it worse. Ratios are of the best, and behind them the median of the repetitions' own: in each, all
//! works take turns, so that what else the machine does meets them alike.
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
    println!(
        "{weights} weights, one core; million weights a second, best of {seconds:?}; ratios of the best / median ratio\n"
    );
    println!(
        "distribution    kernel       histogram    encode      unit     check   unit / byte-at-a-time   check / encode   check / unit"
    );
    let distributions = distributions::ALL.into_iter();
    for (name, distribution) in distributions.filter(|(name, _)| name.contains(&wanted)) {
        let weights = distribution(weights);
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
        let times = Times::of(seconds, &mut works);
        let rate = |work: usize| weights.len() as f64 / 2e6 / times.best(work);
        println!(
            "{name:15} {:12} {:>9} {:>9} {:9.0}",
            "byte-wise",
            "",
            "",
            rate(0)
        );
        for (kernel, first) in kernels.iter().zip((1..).step_by(4)) {
            let [count, encode, whole, check] = [first, first + 1, first + 2, first + 3];
            println!(
                "{name:15} {:12} {:9.0} {:9.0} {:9.0} {:9.0} {:>23} {:>16} {:>14}",
                kernel.name(),
                rate(count),
                rate(encode),
                rate(whole),
                rate(check),
                times.ratio(whole, 0),
                times.ratio(check, encode),
                times.ratio(check, whole)
            );
        }
    }
}

/// Seconds that each work took, by repetition.
struct Times(Vec<Vec<f64>>);

impl Times {
    /// Repeats the works, one after the other, for so long each.
    fn of(each: Duration, works: &mut [Box<dyn FnMut() + '_>]) -> Self {
        let limit = each * works.len() as u32;
        let began = Instant::now();
        let mut times = vec![Vec::new(); works.len()];
        while began.elapsed() < limit {
            for (work, times) in works.iter_mut().zip(&mut times) {
                let start = Instant::now();
                work();
                times.push(start.elapsed().as_secs_f64());
            }
        }
        Self(times)
    }

    /// The shortest.
    fn best(&self, work: usize) -> f64 {
        self.0[work].iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// How many times as fast a work is as another: by their best, and by the median of the repetitions.
    fn ratio(&self, work: usize, other: usize) -> String {
        let pairs = self.0[work].iter().zip(&self.0[other]);
        let mut ratios: Vec<f64> = pairs.map(|(work, other)| other / work).collect();
        ratios.sort_by(f64::total_cmp);
        let best = self.best(other) / self.best(work);
        let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
        format!("{best:.2} / {median:.2}")
    }
}

/// Both have encoded the same, but for the end of the last byte.
fn assert_same(bytewise: &Bytewise, tensors: &Tensors) {
    let without_last = |stream: &[u8]| stream[..stream.len() - 1].to_vec();
    assert!(bytewise.sign_mantissa == tensors.sign_mantissa);
    assert!(without_last(&bytewise.encoded_exponent) == without_last(&tensors.encoded_exponent));
    assert!(bytewise.gaps == tensors.gaps);
    assert!(bytewise.output_positions == tensors.output_positions);
}
