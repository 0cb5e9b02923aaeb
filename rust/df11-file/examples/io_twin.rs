//! The reads, writes and flushes of a compression without its work: `io_twin SOURCE TARGET TARGET_BYTES THREADS`.
//!
//! One thread reads the source into spans, calls of 1 MiB, while THREADS threads write the span before it; a thread of its own flushes
//! every 64 MiB. The target gets its name last. What a compression takes longer than this, its work costs.

use std::{
    error::Error,
    fs::{self, File},
    io::{self, Read},
    path::Path,
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
};

/// Bytes of one call.
const CALL: usize = 1 << 20;
/// Bytes that one thread reads while the others write.
const SPAN: usize = 128 << 20;
/// Bytes between two flushes.
const FLUSH: u64 = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, bytes, threads] = &arguments[..] else {
        return Err("usage: io_twin SOURCE TARGET TARGET_BYTES THREADS".into());
    };
    let (source, target) = (File::open(source)?, Path::new(target));
    let partial = target.with_extension("partial");
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&partial)?;
    copy(source, &file, bytes.parse()?, threads.parse()?)?;
    file.sync_all()?;
    fs::rename(&partial, target)?;
    if let Some(folder) = target.parent().filter(|folder| folder.is_dir()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn copy(mut source: File, file: &File, bytes: u64, threads: usize) -> io::Result<()> {
    let total = source.metadata()?.len();
    let (filled, spans) = mpsc::sync_channel::<(u64, Vec<u8>)>(1);
    let (give_back, free) = mpsc::channel();
    for _ in 0..2 {
        let _ = give_back.send(Vec::with_capacity(SPAN));
    }
    let (ask, asked) = mpsc::sync_channel::<()>(1);
    thread::scope(|scope| {
        let reading = scope.spawn(move || -> io::Result<()> {
            let mut start = 0;
            while start < total {
                let Ok(mut span) = free.recv() else {
                    break;
                };
                span.resize(SPAN.min((total - start) as usize), 0);
                for call in span.chunks_mut(CALL) {
                    source.read_exact(call)?;
                }
                let length = span.len() as u64;
                if filled.send((start, span)).is_err() {
                    break;
                }
                start += length;
            }
            Ok(())
        });
        let flushing = scope.spawn(move || asked.iter().try_for_each(|()| file.sync_all()));
        let mut asked_at = 0;
        for (start, span) in spans {
            // The part of the target that belongs to this part of the source.
            let place =
                |offset: u64| (u128::from(bytes) * u128::from(offset) / u128::from(total)) as u64;
            let (from, to) = (place(start), place(start + span.len() as u64));
            write(file, &span[..(to - from) as usize], from, threads)?;
            if to >= asked_at + FLUSH && ask.try_send(()).is_ok() {
                asked_at = to;
            }
            let _ = give_back.send(span);
        }
        drop(ask);
        let stopped = |_| io::Error::other("a thread stopped");
        reading.join().map_err(stopped)??;
        flushing.join().map_err(stopped)?
    })
}

/// Writes `bytes` at `offset`, calls of 1 MiB on all threads.
fn write(file: &File, bytes: &[u8], offset: u64, threads: usize) -> io::Result<()> {
    let calls: Vec<_> = bytes.chunks(CALL).collect();
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let write = || {
            loop {
                let call = next.fetch_add(1, Relaxed);
                let Some(bytes) = calls.get(call as usize) else {
                    return Ok(());
                };
                write_at(file, bytes, offset + call * CALL as u64)?;
            }
        };
        let writing: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
        writing.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_| io::Error::other("a thread stopped"))?
        })
    })
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn write_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
