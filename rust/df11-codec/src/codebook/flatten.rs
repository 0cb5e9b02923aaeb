//! Fewer long codes for units that need more decode tables than the kernel's jump values reach.

use super::Counts;

/// Raises every count to at least 2, 4, 8, ... until `build` succeeds; returns that floor and what it built.
///
/// `build` must succeed on equal counts, which give codes of at most 9 bits and at most 17 tables.
pub fn flatten<T>(counts: &Counts, build: impl Fn(&Counts) -> Option<T>) -> (u64, T) {
    let mut floor = 2;
    loop {
        let raised = counts.map(|count| if count > 0 { count.max(floor) } else { 0 });
        if let Some(built) = build(&raised) {
            return (floor, built);
        }
        floor *= 2;
    }
}
