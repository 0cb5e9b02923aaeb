//! Which kernels may be used on this machine.

use std::sync::OnceLock;

use super::{Kernel, Stages, self_test};

/// The kernels that the processor can run, by the outcome of their self-test; the slowest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Roster {
    pub usable: Vec<Kernel>,
    pub disabled: Vec<Kernel>,
}

impl Roster {
    /// Tested at first use.
    pub fn of_this_machine() -> &'static Self {
        static ROSTER: OnceLock<Roster> = OnceLock::new();
        ROSTER.get_or_init(|| {
            let supported = Kernel::ALL
                .into_iter()
                .filter(|kernel| kernel.is_supported());
            Self::examine(supported.map(|kernel| (kernel, kernel.stages())))
        })
    }

    /// Sorts kernels by whether they pass.
    fn examine(candidates: impl Iterator<Item = (Kernel, Stages)>) -> Self {
        let (usable, disabled): (Vec<_>, Vec<_>) = candidates.partition(|(kernel, stages)| {
            *kernel == Kernel::Reference || self_test::passes(stages)
        });
        let names = |kernels: Vec<(Kernel, Stages)>| kernels.into_iter().map(|(kernel, _)| kernel);
        Self {
            usable: names(usable).collect(),
            disabled: names(disabled).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Input, Output};

    fn with_sabotaged_scalar(sabotage: fn(&mut Stages)) -> Roster {
        let mut scalar = Kernel::Scalar.stages();
        sabotage(&mut scalar);
        let reference = (Kernel::Reference, Kernel::Reference.stages());
        Roster::examine([reference, (Kernel::Scalar, scalar)].into_iter())
    }

    fn assert_disabled(sabotage: fn(&mut Stages)) {
        let roster = with_sabotaged_scalar(sabotage);
        assert_eq!(roster.usable, [Kernel::Reference]);
        assert_eq!(roster.disabled, [Kernel::Scalar]);
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
    fn a_sound_kernel_is_kept() {
        let roster = with_sabotaged_scalar(|_| ());
        assert_eq!(roster.usable, [Kernel::Reference, Kernel::Scalar]);
        assert_eq!(roster.disabled, []);
    }

    #[test]
    fn a_wrong_count_disables() {
        assert_disabled(|stages| {
            stages.count = |counts, weights| {
                (Kernel::Scalar.stages().count)(counts, weights);
                counts[17] ^= u64::from(weights.len() > 2000);
            };
        });
    }

    #[test]
    fn a_check_that_sees_too_little_disables() {
        assert_disabled(|stages| {
            stages.equal_chunks = |_, slices, _, _, _| slices.chunks - 1;
        });
    }

    #[test]
    fn a_wrong_bit_of_any_tensor_disables() {
        assert_disabled(|stages| {
            stages.encode = |i, o| spoiled(i, o, |out| flip_last(out.sign_mantissa));
        });
        assert_disabled(|stages| {
            stages.encode = |i, o| spoiled(i, o, |out| flip_last(out.stream));
        });
        assert_disabled(|stages| {
            stages.encode = |i, o| spoiled(i, o, |out| flip_last(out.gaps));
        });
        assert_disabled(|stages| {
            stages.encode = |i, o| spoiled(i, o, |out| flip_last(out.positions));
        });
        assert_disabled(|stages| {
            stages.encode = |i, o| (Kernel::Scalar.stages().encode)(i, o) ^ 1;
        });
    }
}
