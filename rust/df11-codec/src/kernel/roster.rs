//! Which kernels may be used on this machine.

use std::sync::OnceLock;

use super::{Kernel, Stages, self_test};

/// The outcomes of self-tests. A kernel is tested when it is first asked for, and most runs ask for one alone.
pub struct Roster {
    /// By the kernel's place in [`Kernel::ALL`].
    is_sound: [OnceLock<bool>; Kernel::ALL.len()],
    stages: fn(Kernel) -> Stages,
}

impl Roster {
    pub fn of_this_machine() -> &'static Self {
        static ROSTER: Roster = Roster::new(Kernel::stages);
        &ROSTER
    }

    const fn new(stages: fn(Kernel) -> Stages) -> Self {
        Self {
            is_sound: [const { OnceLock::new() }; Kernel::ALL.len()],
            stages,
        }
    }

    /// Whether a kernel that the processor can run passes.
    pub fn is_sound(&self, kernel: Kernel) -> bool {
        kernel == Kernel::Reference
            || *self.is_sound[kernel as usize]
                .get_or_init(|| self_test::passes(&(self.stages)(kernel)))
    }

    /// The kernels that the processor can run and that pass, the slowest first.
    pub fn usable(&self) -> impl DoubleEndedIterator<Item = Kernel> {
        Kernel::ALL
            .into_iter()
            .filter(|&kernel| kernel.is_supported() && self.is_sound(kernel))
    }

    /// Those that have failed so far.
    pub fn disabled(&self) -> impl Iterator<Item = Kernel> {
        let outcomes = Kernel::ALL.into_iter().zip(&self.is_sound);
        outcomes
            .filter(|(_, outcome)| outcome.get() == Some(&false))
            .map(|(kernel, _)| kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Input, Output};

    /// No kernel but the reference passes on a machine that gets these loops wrong.
    fn assert_disabled(stages: fn(Kernel) -> Stages) {
        let roster = Roster::new(stages);
        assert_eq!(roster.usable().next_back(), Some(Kernel::Reference));
        assert!(roster.disabled().eq(supported().skip(1)));
    }

    fn supported() -> impl Iterator<Item = Kernel> {
        Kernel::ALL
            .into_iter()
            .filter(|kernel| kernel.is_supported())
    }

    /// The true encoder, and a place to spoil its output.
    fn spoiled(input: &Input<'_>, out: &mut Output<'_>, spoil: fn(&mut Output<'_>)) -> u64 {
        let end = (Kernel::Scalar.stages().encode)(input, out);
        spoil(out);
        end
    }

    fn flip_last(bytes: &mut [u8]) {
        if let Some(byte) = bytes.last_mut() {
            *byte ^= 1;
        }
    }

    #[test]
    fn kernels_are_tested_when_asked_for() {
        let roster = Roster::new(Kernel::stages);
        assert!(
            roster
                .is_sound
                .iter()
                .all(|outcome| outcome.get().is_none())
        );
        let best = roster.usable().next_back().expect("the reference at least");
        let tested: Vec<_> = roster.is_sound.iter().map(OnceLock::get).collect();
        assert_eq!(tested.iter().flatten().count(), 1);
        assert_eq!(tested[best as usize], Some(&true));
        assert_eq!(roster.disabled().count(), 0);
    }

    /// A fault of the fastest kernel leaves the next one.
    #[test]
    fn the_next_best_is_taken() {
        let roster = Roster::new(|kernel| {
            let sound = kernel.stages();
            if kernel == Kernel::Scalar {
                return sound;
            }
            Stages {
                count: |_, _| (),
                ..sound
            }
        });
        assert_eq!(roster.usable().next_back(), Some(Kernel::Scalar));
        assert!(roster.disabled().eq(supported().skip(2)));
    }

    #[test]
    fn a_wrong_count_disables() {
        assert_disabled(|kernel| Stages {
            count: |counts, weights| {
                (Kernel::Scalar.stages().count)(counts, weights);
                counts[17] ^= u64::from(weights.len() > 2000);
            },
            ..kernel.stages()
        });
    }

    #[test]
    fn a_check_that_sees_too_little_disables() {
        assert_disabled(|kernel| Stages {
            equal_chunks: |_, slices, _, _, _| slices.chunks - 1,
            ..kernel.stages()
        });
    }

    #[test]
    fn a_check_that_sees_the_end_disables() {
        assert_disabled(|kernel| Stages {
            equal_chunks: |tables, slices, run, source, buffers| {
                let equal_chunks = Kernel::Scalar.stages().equal_chunks;
                let equal = equal_chunks(tables, slices, run, source, buffers);
                equal + usize::from(equal == slices.chunks - 1)
            },
            ..kernel.stages()
        });
    }

    #[test]
    fn a_wrong_bit_of_any_tensor_disables() {
        assert_disabled(|kernel| Stages {
            encode: |i, o| spoiled(i, o, |out| flip_last(out.sign_mantissa)),
            ..kernel.stages()
        });
        assert_disabled(|kernel| Stages {
            encode: |i, o| spoiled(i, o, |out| flip_last(out.stream)),
            ..kernel.stages()
        });
        assert_disabled(|kernel| Stages {
            encode: |i, o| spoiled(i, o, |out| flip_last(out.gaps)),
            ..kernel.stages()
        });
        assert_disabled(|kernel| Stages {
            encode: |i, o| spoiled(i, o, |out| flip_last(out.positions)),
            ..kernel.stages()
        });
        assert_disabled(|kernel| Stages {
            encode: |i, o| (Kernel::Scalar.stages().encode)(i, o) ^ 1,
            ..kernel.stages()
        });
    }
}
