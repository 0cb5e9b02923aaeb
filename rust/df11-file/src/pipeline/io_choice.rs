//! Whether to read one piece after the other or several at once.
//!
//! One reader is what a spinning disk wants. A fast disk answers several requests sooner than one, and copies out of the page cache take
//! more than one core's time. What a disk calls itself says little, so both ways are tried on the job's own first reads.

use std::time::Duration;

use crate::options::Io;

/// Bytes of one trial.
const TRIAL_BYTES: u64 = 128 << 20;
/// The trials. The first does not count: nothing else works yet while it reads.
const TRIALS: [Io; 5] = [
    Io::Parallel,
    Io::Sequential,
    Io::Parallel,
    Io::Sequential,
    Io::Parallel,
];
/// By how much the sequential way must be faster to be chosen: a disk that has to seek loses more than this, and trials scatter.
const GAIN: f64 = 1.5;

/// Which way to read.
pub struct Choice {
    io: Io,
    /// Trials that have ended.
    ended: usize,
    /// Bytes and time of each trial.
    taken: [(u64, Duration); TRIALS.len()],
}

impl Choice {
    /// Begins with nothing known.
    pub fn new(io: Io) -> Self {
        Self {
            io,
            ended: 0,
            taken: Default::default(),
        }
    }

    /// The way for the next run.
    pub fn now(&self) -> Io {
        match self.io {
            Io::Auto => TRIALS[self.ended],
            chosen => chosen,
        }
    }

    /// Told what the last run took.
    pub fn took(&mut self, bytes: u64, time: Duration) {
        if self.io != Io::Auto {
            return;
        }
        let trial = &mut self.taken[self.ended];
        trial.0 += bytes;
        trial.1 += time;
        self.ended += usize::from(trial.0 >= TRIAL_BYTES);
        if self.ended == TRIALS.len() {
            let faster = self.rate(Io::Sequential) > self.rate(Io::Parallel) * GAIN;
            self.io = if faster { Io::Sequential } else { Io::Parallel };
        }
    }

    /// Bytes a second of the trials that count.
    fn rate(&self, io: Io) -> f64 {
        let trials = TRIALS.iter().zip(self.taken).skip(1);
        let sum = trials
            .filter(|(way, _)| **way == io)
            .fold((0, Duration::ZERO), |sum, (_, (bytes, time))| {
                (sum.0 + bytes, sum.1 + time)
            });
        sum.0 as f64 / sum.1.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way after trials that take these times a byte, in nanoseconds.
    fn chosen(io: Io, sequential: u64, parallel: u64) -> Io {
        let mut choice = Choice::new(io);
        for _ in 0..96 {
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
        assert_eq!(chosen(Io::Auto, 90, 100), Io::Parallel, "hardly slower");
        assert_eq!(chosen(Io::Sequential, 10, 1), Io::Sequential);
        assert_eq!(chosen(Io::Parallel, 1, 10), Io::Parallel);
    }
}
