//! What the DF11 decode kernel does, thread by thread, in the steps in which it does it.
//!
//! Each thread loads its window of 8 bytes and 4 more, takes its gap, and counts the codes that start in the window. A block adds its counts up,
//! from its output position on; then each thread walks again and puts its weights into shared memory, and the block copies them out. It
//! trusts what the kernel trusts (tables, gaps, output positions) and shares no code with the decoder that it is compared with.

use std::collections::BTreeMap;

use crate::state::{Code, ILLEGAL_ADDRESS, INVALID_VALUE, LAUNCH_TIMEOUT};

/// Bytes of arguments: six addresses and three numbers.
pub const ARGUMENT_BYTES: usize = 60;
const WINDOW_BYTES: usize = 8;
const WINDOW_BITS: u32 = 64;
/// Values from here on lead to another table.
const FIRST_JUMP: u8 = 240;
/// Tables that one code can lead through.
const LEVELS: usize = 4;

/// A launch in one dimension.
#[derive(Clone, Copy)]
pub struct Launch {
    pub grid: u32,
    pub block: u32,
    pub shared: u32,
}

/// A thread: its 64 bits and the 32 behind them at the top of `bits`, and where its first code starts.
struct Thread {
    bits: u128,
    gap: u32,
}

/// What the kernel reads.
struct Inputs<'a> {
    luts: &'a [u8],
    codes: &'a [u8],
    sign_mantissa: &'a [u8],
    positions: &'a [u8],
    gaps: &'a [u8],
    rows: usize,
    code_bytes: usize,
    weights: u32,
}

/// Runs the kernel on the GPU's memory.
///
/// # Errors
/// `ILLEGAL_ADDRESS` where it reads or writes what was not allocated, `LAUNCH_TIMEOUT` where it would never end.
pub fn run(
    memory: &mut BTreeMap<u64, Vec<u8>>,
    launch: Launch,
    arguments: &[u8],
) -> Result<(), Code> {
    if arguments.len() != ARGUMENT_BYTES {
        return Err(INVALID_VALUE);
    }
    let (addresses, numbers) = arguments.split_at(48);
    let addresses: Vec<u64> = addresses
        .chunks_exact(8)
        .filter_map(|eight| Some(u64::from_ne_bytes(*eight.first_chunk()?)))
        .collect();
    let numbers: Vec<u32> = numbers
        .chunks_exact(4)
        .filter_map(|four| Some(u32::from_ne_bytes(*four.first_chunk()?)))
        .collect();
    let mut outputs = memory.remove(&addresses[5]).ok_or(ILLEGAL_ADDRESS)?;
    let outcome = (|| {
        let input = |index: usize| {
            memory
                .get(&addresses[index])
                .map(Vec::as_slice)
                .ok_or(ILLEGAL_ADDRESS)
        };
        let inputs = Inputs {
            luts: input(0)?,
            codes: input(1)?,
            sign_mantissa: input(2)?,
            positions: input(3)?,
            gaps: input(4)?,
            rows: numbers[0] as usize,
            code_bytes: numbers[1] as usize,
            weights: numbers[2],
        };
        (0..launch.grid).try_for_each(|block| inputs.block(launch, block as usize, &mut outputs))
    })();
    memory.insert(addresses[5], outputs);
    outcome
}

impl Inputs<'_> {
    fn block(&self, launch: Launch, block: usize, outputs: &mut [u8]) -> Result<(), Code> {
        let size = launch.block as usize;
        let first = self.position(block)?;
        let threads: Vec<Thread> = (0..size)
            .map(|index| self.thread(block * size + index))
            .collect::<Result<_, _>>()?;
        let counts: Vec<u32> = threads
            .iter()
            .map(|thread| self.count(thread))
            .collect::<Result<_, _>>()?;
        // Shared memory: a word for each thread and one more, then the block's weights.
        let weights_at = 4 * (size + 1);
        let mut shared = vec![0; launch.shared as usize];
        let mut start = first;
        for (thread, count) in threads.iter().zip(counts) {
            let end = start.wrapping_add(count).min(self.weights);
            self.write(
                thread,
                start..end,
                first,
                shared.get_mut(weights_at..).ok_or(ILLEGAL_ADDRESS)?,
            )?;
            start = start.wrapping_add(count);
        }
        let behind = self.position(block + 1)?;
        let count = behind
            .wrapping_sub(first)
            .min(self.weights.wrapping_sub(first)) as usize;
        let to = 2 * first as usize;
        let decoded = shared
            .get(weights_at..weights_at + 2 * count)
            .ok_or(ILLEGAL_ADDRESS)?;
        outputs
            .get_mut(to..to + 2 * count)
            .ok_or(ILLEGAL_ADDRESS)?
            .copy_from_slice(decoded);
        Ok(())
    }

    fn thread(&self, index: usize) -> Result<Thread, Code> {
        let mut bits = 0;
        for at in index * WINDOW_BYTES..index * WINDOW_BYTES + WINDOW_BYTES + 4 {
            // Bytes behind the stream are 0, also where there is memory.
            let byte = if at < self.code_bytes {
                *self.codes.get(at).ok_or(ILLEGAL_ADDRESS)?
            } else {
                0
            };
            bits = bits << 8 | u128::from(byte);
        }
        let (byte, bit) = (index * 5 / 8, index * 5 % 8);
        // Always two bytes, also where the gap lies in the first alone.
        let two = self.gaps.get(byte..byte + 2).ok_or(ILLEGAL_ADDRESS)?;
        let gap = u32::from(two[0]) << 8 | u32::from(two[1]);
        Ok(Thread {
            bits: bits << 32,
            gap: gap >> (11 - bit) & 31,
        })
    }

    /// How many codes start in a thread's window.
    fn count(&self, thread: &Thread) -> Result<u32, Code> {
        let (mut bit, mut count) = (thread.gap, 0);
        while bit < WINDOW_BITS {
            bit += self.code(thread, bit)?.1;
            count += 1;
        }
        Ok(count)
    }

    /// Walks again, and writes the weights of a thread to the block's.
    fn write(
        &self,
        thread: &Thread,
        range: std::ops::Range<u32>,
        first: u32,
        weights: &mut [u8],
    ) -> Result<(), Code> {
        let mut bit = thread.gap;
        for index in range {
            let (exponent, length) = self.code(thread, bit)?;
            let half = *self
                .sign_mantissa
                .get(index as usize)
                .ok_or(ILLEGAL_ADDRESS)?;
            let weight =
                u16::from(half & 0x80) << 8 | u16::from(exponent) << 7 | u16::from(half & 0x7F);
            let at = 2 * (index - first) as usize;
            weights
                .get_mut(at..at + 2)
                .ok_or(ILLEGAL_ADDRESS)?
                .copy_from_slice(&weight.to_le_bytes());
            bit += length;
        }
        Ok(())
    }

    /// The exponent and length of the code at a bit of a window.
    fn code(&self, thread: &Thread, bit: u32) -> Result<(u8, u32), Code> {
        let entry = |at: usize| self.luts.get(at).copied().ok_or(ILLEGAL_ADDRESS);
        let word = ((thread.bits << bit) >> 96) as u32;
        let (mut table, mut value) = (0, 0);
        for byte in &word.to_be_bytes()[..LEVELS] {
            value = entry(table * 256 + usize::from(*byte))?;
            if value < FIRST_JUMP {
                break;
            }
            table = 256 - usize::from(value);
        }
        match entry((self.rows - 1) * 256 + usize::from(value))? {
            0 => Err(LAUNCH_TIMEOUT),
            length => Ok((value, u32::from(length))),
        }
    }

    fn position(&self, entry: usize) -> Result<u32, Code> {
        let four = self
            .positions
            .get(4 * entry..4 * entry + 4)
            .and_then(|four| four.first_chunk());
        Ok(u32::from_le_bytes(*four.ok_or(ILLEGAL_ADDRESS)?))
    }
}
