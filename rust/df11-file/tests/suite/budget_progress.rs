//! The division of a memory budget, and the numbers that a running job shows.

use std::time::Duration;

use crate::common::{
    checkpoint::Tensor,
    weights,
    world::{SMALL_BUDGET, World},
};
use df11_file::{
    Code, Options, Phase,
    budget::{Budget, MIN_BUDGET, PIECE_WEIGHTS},
    options::{Cast, HeaderMode, Verify},
};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_budget_never_promises_more_than_it_has(
        bytes in MIN_BUDGET..4 << 30,
        threads in 1_usize..300,
        largest in 1_u64..1 << 31,
        plan in 0_u64..1 << 26,
    ) {
        let options = Options { max_memory: Some(bytes), threads: Some(threads), ..Options::default() };
        let counts = largest.div_ceil(PIECE_WEIGHTS) * 256 * 8;
        let fixed = 20 * MIB + plan.saturating_sub(8 * MIB);
        let Ok(budget) = Budget::for_plan(&options, largest, plan) else {
            // At least half of what is left belongs to the unit.
            prop_assert!(fixed + 2 * (counts + 9 * MIB) > bytes);
            return Ok(());
        };
        let spans = budget.spans * (2 * budget.span_weights + budget.span_weights / PIECE_WEIGHTS * 256 * 8);
        prop_assert!(budget.spans >= 8 && (8..=budget.spans as usize).contains(&budget.spans_for(largest)));
        prop_assert!(budget.threads >= 1 && budget.threads <= threads);
        prop_assert!(budget.span_weights > 0 && budget.span_weights % PIECE_WEIGHTS == 0);
        prop_assert!(budget.threads as u64 * 4 * MIB + spans + counts + fixed <= budget.bytes);
        prop_assert_eq!(budget.bytes, bytes);
    }
}

#[test]
fn budgets_that_cannot_be() {
    let budget = |max_memory: Option<u64>, threads: Option<usize>| {
        let options = Options {
            max_memory,
            threads,
            ..Options::default()
        };
        Budget::new(&options, 1 << 20)
    };
    assert_eq!(
        budget(Some(MIN_BUDGET - 1), None).unwrap_err().code,
        Code::Option
    );
    assert_eq!(budget(Some(0), None).unwrap_err().code, Code::Option);
    assert_eq!(budget(None, Some(0)).unwrap_err().code, Code::Option);
    budget(Some(MIN_BUDGET), None).unwrap();
    let unasked = budget(None, None).unwrap();
    assert!((MIN_BUDGET..=1 << 30).contains(&unasked.bytes));
    assert!(unasked.threads >= 1);
}

/// Watches a job from start to end: no number ever falls, the bytes end at their total, and the units at theirs.
fn watch(world: &World, options: Options) {
    let job = world.start(options);
    let mut before = job.snapshot();
    let mut total = 0;
    while !job.join(Some(Duration::from_micros(200))) {
        let now = job.snapshot();
        assert!(now.bytes_in >= before.bytes_in, "{before:?} {now:?}");
        assert!(now.bytes_out >= before.bytes_out && now.units_done >= before.units_done);
        assert!(now.elapsed >= before.elapsed);
        assert!(
            now.bytes_total == 0 || now.bytes_in <= now.bytes_total,
            "{now:?}"
        );
        assert!(total == 0 || total == now.bytes_total, "the total changed");
        assert!(
            now.unit
                .is_none_or(|unit| unit < job.plan().units.len() as u64)
        );
        total = now.bytes_total;
        before = now;
    }
    let report = job.result().unwrap();
    let end = job.snapshot();
    assert_eq!(end.phase, Phase::Done);
    assert_eq!(end.bytes_in, end.bytes_total, "{report:?}");
    assert!(end.bytes_total > 0);
    assert_eq!(
        (end.units_done, end.unit),
        (job.plan().units.len() as u64, None)
    );
    assert!(end.bytes_out <= report.target_bytes);
    std::fs::remove_file(world.target()).unwrap();
}

#[test]
fn progress_rises_to_its_total() {
    let world = World::new(vec![
        Tensor::bf16("three.0.a.weight", weights::realistic(1, 9_000_001)),
        Tensor::f32("three.0.b.weight", &[0.3; 70_001]),
        Tensor::new("three.0.c.weight", "F16", &[33], vec![0x21; 66]),
        Tensor::f32("norm.weight", &[0.7; 300_000]),
        Tensor::bf16("one.0.weight", weights::near_constant(2, 3_000_000, 40_000)),
        Tensor::new("empty", "F32", &[0], Vec::new()),
        Tensor::bf16("one.1.weight", weights::realistic(3, 5)),
    ]);
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        for (threads, max_memory, verify) in [
            (1, SMALL_BUDGET, Verify::Full),
            (3, 1 << 30, Verify::Full),
            (5, SMALL_BUDGET, Verify::Off),
        ] {
            watch(
                &world,
                Options {
                    header,
                    verify,
                    cast: Cast::ToBf16,
                    threads: Some(threads),
                    max_memory: Some(max_memory),
                    ..world.options()
                },
            );
        }
    }
}

#[test]
fn the_brake_holds_and_nothing_else_does() {
    let world = World::of_unit(weights::realistic(1, 2_000_000));
    let report = world
        .run(Options {
            max_rate: Some(4_000_000),
            ..world.options()
        })
        .unwrap();
    assert!(
        report.seconds >= 0.95,
        "{} s for one second's worth",
        report.seconds
    );
}
