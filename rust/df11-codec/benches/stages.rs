//! Each stage of every kernel in weights a second (an "elem" is a weight): histogram, encode, whole unit, check; and the byte-at-a-time encoder.
//!
//! `cargo bench -p df11-codec --bench stages [-- FILTER]`, for instance `-- unit/gaussian`. One core, memory to memory. `--bench ratios`
//! gives the ratios.
#![allow(missing_docs)]

#[path = "common/bytewise.rs"]
mod bytewise;
#[path = "../tests/common/distributions.rs"]
mod distributions;
#[path = "common/unit.rs"]
mod unit;

use std::{hint::black_box, time::Duration};

use bytewise::Bytewise;
use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use df11_codec::{DecodeTables, EncodedPiece, Kernel};
use unit::{Tensors, Unit};

/// Enough to be read from memory, not from a cache.
const WEIGHTS: usize = 16 << 20;

fn stages(criterion: &mut Criterion) {
    for (name, weights) in distributions::measured(WEIGHTS) {
        let bench =
            |criterion: &mut Criterion, stage: &str, kernel: &str, work: &mut dyn FnMut()| {
                let mut group = criterion.benchmark_group(format!("{stage}/{name}"));
                group.throughput(Throughput::Elements(weights.len() as u64 / 2));
                group
                    .sample_size(10)
                    .sampling_mode(SamplingMode::Flat)
                    .warm_up_time(Duration::from_millis(300))
                    .measurement_time(Duration::from_secs(1));
                group.bench_function(BenchmarkId::from_parameter(kernel), |bencher| {
                    bencher.iter(&mut *work);
                });
                group.finish();
            };
        let mut bytewise = Bytewise::default();
        bench(criterion, "unit", "byte-wise", &mut || {
            bytewise.encode(&weights).expect("encodable");
        });
        for kernel in Kernel::available() {
            let unit = Unit::new(kernel, &weights);
            let tensors = Tensors::new(kernel, &unit);
            let tables = DecodeTables::with_kernel(kernel, &tensors.luts).expect("own tables");
            let mut piece = EncodedPiece::default();
            bench(criterion, "histogram", kernel.name(), &mut || {
                black_box(unit::count(kernel, &weights));
            });
            bench(criterion, "encode", kernel.name(), &mut || {
                unit.encode(kernel, &mut piece, |_| ());
            });
            bench(criterion, "unit", kernel.name(), &mut || {
                Unit::new(kernel, &weights).encode(kernel, &mut piece, |_| ());
            });
            bench(criterion, "check", kernel.name(), &mut || {
                tensors.check(&tables, &unit);
            });
        }
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
