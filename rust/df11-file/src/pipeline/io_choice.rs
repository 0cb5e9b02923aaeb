//! Whether to read one piece after the other or several at once.
//!
//! One reader is what a spinning disk wants. A fast disk answers several requests sooner than one, and copies out of the page cache take
//! more than one core's time. What a disk calls itself says little, so both ways are tried on the job's own first reads.

use std::time::Duration;

use crate::options::Io;

/// Bytes read in each way before one is chosen.
const TRIAL_BYTES: u64 = 128 << 20;
/// By how much the sequential way must be faster to be chosen: it is the one tried first, while nothing else works yet.
const GAIN: f64 = 1.15;

/// Which way to read.
pub struct Choice {
    io: Io,
    /// Bytes and time of the trials, sequential and parallel.
    trials: [(u64, Duration); 2],
}

impl Choice {
    /// Begins with nothing known.
    pub fn new(io: Io) -> Self {
        Self {
            io,
            trials: Default::default(),
        }
    }

    /// The way for the next run.
    pub fn now(&self) -> Io {
        match self.io {
            Io::Auto if self.trials[0].0 < TRIAL_BYTES => Io::Sequential,
            Io::Auto => Io::Parallel,
            chosen => chosen,
        }
    }

    /// Told what the last run took.
    pub fn took(&mut self, bytes: u64, time: Duration) {
        if self.io != Io::Auto {
            return;
        }
        let trial = &mut self.trials[usize::from(self.now() == Io::Parallel)];
        trial.0 += bytes;
        trial.1 += time;
        let [sequential, parallel] = self.trials;
        if parallel.0 >= TRIAL_BYTES {
            let rate = |(bytes, time): (u64, Duration)| bytes as f64 / time.as_secs_f64().max(1e-9);
            let gains = rate(sequential) > rate(parallel) * GAIN;
            self.io = if gains { Io::Sequential } else { Io::Parallel };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way after trials that take these times a byte, in nanoseconds.
    fn chosen(io: Io, sequential: u64, parallel: u64) -> Io {
        let mut choice = Choice::new(io);
        for _ in 0..64 {
            let time = match choice.now() {
                Io::Parallel => parallel,
                Io::Sequential | Io::Auto => sequential,
            };
            choice.took(8 << 20, Duration::from_nanos(time * (8 << 20)));
        }
        choice.now()
    }

    #[test]
    fn the_faster_way_is_chosen_and_a_wish_is_kept() {
        assert_eq!(chosen(Io::Auto, 10, 5), Io::Parallel);
        assert_eq!(chosen(Io::Auto, 10, 20), Io::Sequential);
        assert_eq!(chosen(Io::Auto, 95, 100), Io::Parallel, "hardly slower");
        assert_eq!(chosen(Io::Sequential, 10, 1), Io::Sequential);
        assert_eq!(chosen(Io::Parallel, 1, 10), Io::Parallel);
    }
}
