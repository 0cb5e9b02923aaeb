//! Rates of the code in memory, on given weights: `memory_rates FILE THREADS SECONDS [UNIT]`, with FILE of little-endian BF16 weights.
//! Prints one JSON object. SECONDS is the time of each of the two rates; UNIT how many weights are one unit, else all.
#![allow(clippy::print_stdout)]

use std::{error::Error, time::Duration};

use df11_file::{bench, options::kernel};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, threads, seconds, unit @ ..] = &arguments[..] else {
        return Err("usage: memory_rates FILE THREADS SECONDS [UNIT]".into());
    };
    let weights = std::fs::read(file)?;
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    let unit = unit
        .first()
        .map_or(Ok(weights.len() / 2), |unit| unit.parse())?;
    let units = (&weights[..], unit);
    let rates = bench::measure(kernel(None)?, threads.parse()?, units, seconds, &|| false)?;
    println!("{}", serde_json::to_string(&rates)?);
    Ok(())
}
