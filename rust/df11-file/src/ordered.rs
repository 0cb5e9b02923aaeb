//! Work in parallel, results in order.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use crossbeam_channel::bounded;

use crate::{
    error::Result,
    task::{spawn_scoped, stopped},
};

/// Does `work` for 0, 1, ... `count` - 1 on some threads, and gives the results to `take` in order. Each piece of memory carries one
/// result at a time, so there are never more under way than there are memories.
///
/// # Errors
/// The first failure of `work`, by its order, or of `take`.
pub fn in_order<M: Send>(
    count: u64,
    threads: usize,
    memories: Vec<M>,
    work: impl Fn(u64, &mut M) -> Result<()> + Sync,
    mut take: impl FnMut(u64, &mut M) -> Result<()>,
) -> Result<()> {
    let width = memories.len();
    let (give, tasks) = bounded::<(u64, M)>(width);
    let (tell, done) = bounded(width);
    thread::scope(|scope| {
        // Gone at this block's end, whatever that is; then the threads end.
        let give = give;
        for _ in 0..threads.max(1) {
            let (tasks, tell, work) = (tasks.clone(), tell.clone(), &work);
            let run = move || {
                for (index, mut memory) in tasks {
                    // A fault in here must not keep the other side waiting.
                    let outcome = catch_unwind(AssertUnwindSafe(|| work(index, &mut memory)));
                    let outcome = outcome.unwrap_or_else(|_| Err(stopped()));
                    if tell.send((index, memory, outcome)).is_err() {
                        break;
                    }
                }
            };
            spawn_scoped(scope, "df11-ordered", run)?;
        }
        drop((tasks, tell));
        let (mut sent, mut taken) = (0, 0);
        let mut waiting: Vec<(u64, M, Result<()>)> = Vec::with_capacity(width);
        let mut free = memories;
        while taken < count {
            while let Some(memory) = (sent < count).then(|| free.pop()).flatten() {
                give.send((sent, memory)).map_err(|_| stopped())?;
                sent += 1;
            }
            waiting.push(done.recv().map_err(|_| stopped())?);
            while let Some(found) = waiting.iter().position(|(index, _, _)| *index == taken) {
                let (index, mut memory, outcome) = waiting.swap_remove(found);
                outcome?;
                take(index, &mut memory)?;
                free.push(memory);
                taken += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::{Code, Error};

    #[test]
    fn results_come_in_order_and_the_first_failure_ends_it() {
        for threads in [1, 2, 7] {
            let mut taken = Vec::new();
            let outcome = in_order(
                100,
                threads,
                vec![0; threads + 2],
                |index, memory| {
                    thread::sleep(Duration::from_micros(index * 7919 % 300));
                    *memory = index * 2;
                    if index == 60 {
                        return Err(Error::new(Code::Verify, "sixty"));
                    }
                    Ok(())
                },
                |index, memory| {
                    assert_eq!(*memory, index * 2);
                    taken.push(index);
                    Ok(())
                },
            );
            assert_eq!(outcome.expect_err("sixty fails").message, "sixty");
            assert_eq!(taken, (0..60).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_fault_is_an_error_and_nobody_waits() {
        let outcome = in_order(
            10,
            2,
            vec![(); 3],
            |index, ()| {
                assert!(index < 5, "on purpose");
                Ok(())
            },
            |_, ()| Ok(()),
        );
        assert_eq!(outcome.expect_err("a fault").code, Code::Internal);
    }
}
