//! Rates of the code in memory, on given weights: `memory_rates FILE THREADS SECONDS [KERNEL]`, with FILE of little-endian BF16 weights.
//! Prints one JSON object. SECONDS is the time of each of the two rates.
#![allow(clippy::print_stdout)]

use std::{error::Error, time::Duration};

use df11_file::{bench, options::kernel};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, threads, seconds, name @ ..] = &arguments[..] else {
        return Err("usage: memory_rates FILE THREADS SECONDS [KERNEL]".into());
    };
    let weights = std::fs::read(file)?;
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    let kernel = kernel(name.first().map(String::as_str))?;
    let rates = bench::measure(kernel, threads.parse()?, &weights, seconds, &|| false)?;
    println!("{}", serde_json::to_string(&rates)?);
    Ok(())
}
