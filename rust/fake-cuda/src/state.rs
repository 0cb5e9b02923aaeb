//! What the driver remembers, and what tests have asked it to do.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

/// A result of the driver API.
pub type Code = i32;

pub const INVALID_VALUE: Code = 1;
pub const OUT_OF_MEMORY: Code = 2;
pub const NOT_INITIALIZED: Code = 3;
pub const INVALID_CONTEXT: Code = 201;
pub const INVALID_PTX: Code = 218;
pub const NOT_FOUND: Code = 500;
pub const ILLEGAL_ADDRESS: Code = 700;
pub const LAUNCH_TIMEOUT: Code = 702;

/// Names of results, as far as tests meet them.
pub const NAMES: [(Code, &str); 9] = [
    (INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE\0"),
    (OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY\0"),
    (NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED\0"),
    (100, "CUDA_ERROR_NO_DEVICE\0"),
    (INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT\0"),
    (INVALID_PTX, "CUDA_ERROR_INVALID_PTX\0"),
    (NOT_FOUND, "CUDA_ERROR_NOT_FOUND\0"),
    (ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS\0"),
    (LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT\0"),
];

/// Where the GPU's memory begins: nothing of the host lies there.
const FIRST_ADDRESS: u64 = 0x7000_0000_0000_0000;
/// Allocations begin at multiples of this.
const ALIGNMENT: u64 = 256;

/// What a launch does wrong.
#[derive(Clone, Copy)]
pub enum Spoil {
    /// It changes one bit of a weight.
    Weight(u64),
    /// It does nothing at all.
    Everything,
}

#[derive(Default)]
pub struct State {
    /// Every call so far, with its result.
    pub log: Vec<String>,
    /// Calls so far, by function.
    counts: HashMap<String, u32>,
    /// Which call fails how.
    pub failures: HashMap<(String, u32), Code>,
    /// Which call waits.
    pub hold: Option<(String, u32)>,
    pub is_held: bool,
    /// What the launch of this number does wrong.
    pub spoil: HashMap<u32, Spoil>,
    pub launches: u32,
    /// Bytes of memory that the GPU has.
    pub memory_bytes: Option<u64>,
    pub is_initialized: bool,
    /// The context, by the thread that made it.
    pub context: Option<ThreadId>,
    /// Texts of the loaded modules.
    pub modules: BTreeMap<usize, String>,
    /// Functions that were found.
    pub functions: BTreeSet<usize>,
    handles: usize,
    pub memory: BTreeMap<u64, Vec<u8>>,
    /// Things that were alive when their context was destroyed.
    pub forgotten: usize,
    /// What a kernel did wrong: from then on every call fails so.
    pub fault: Option<Code>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static RELEASED: Condvar = Condvar::new();

/// The state, locked.
pub fn with<T>(use_it: impl FnOnce(&mut State) -> T) -> T {
    use_it(lock().get_or_insert_default())
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what a test asks for: a word, and what belongs to it.
pub fn obey(command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    with(|state| match words[..] {
        ["fail", function, nth, code] => {
            state.failures.insert(
                (function.to_owned(), number(nth) as u32),
                number(code) as Code,
            );
        }
        ["hold", function, nth] => state.hold = Some((function.to_owned(), number(nth) as u32)),
        ["release"] => {
            state.hold = None;
            RELEASED.notify_all();
        }
        ["spoil", launch] => drop(state.spoil.insert(number(launch) as u32, Spoil::Everything)),
        ["spoil", launch, weight] => drop(
            state
                .spoil
                .insert(number(launch) as u32, Spoil::Weight(number(weight))),
        ),
        ["memory", bytes] => state.memory_bytes = Some(number(bytes)),
        _ => {}
    });
    with(|state| match words[..] {
        ["held"] => state.is_held.to_string(),
        ["left"] => (state.live() + state.forgotten).to_string(),
        ["log"] => state.log.join("\n"),
        _ => String::new(),
    })
}

/// One call of the driver: `detail` is what the log says about it, `work` what it does unless a test wants it to fail.
pub fn call(
    function: &str,
    detail: &str,
    work: impl FnOnce(&mut State) -> Result<(), Code>,
) -> Code {
    let nth = with(|state| {
        let count = state.counts.entry(function.to_owned()).or_default();
        *count += 1;
        *count
    });
    let here = (function.to_owned(), nth);
    let mut guard = lock();
    while let Some(state) = guard
        .as_mut()
        .filter(|state| state.hold.as_ref() == Some(&here))
    {
        state.is_held = true;
        guard = RELEASED.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    let state = guard.get_or_insert_default();
    let outcome = match (state.failures.get(&here), state.fault) {
        (Some(&code), _) => Err(code),
        // A context with a fault can only be destroyed.
        (None, Some(code)) if function != "cuCtxDestroy_v2" => Err(code),
        _ => work(state),
    };
    let code = outcome.err().unwrap_or(0);
    state.log.push(format!("{function}{detail} = {code}"));
    code
}

impl State {
    /// An error where the calling thread has no context.
    pub fn check_context(&self) -> Result<(), Code> {
        if !self.is_initialized {
            return Err(NOT_INITIALIZED);
        }
        let current = self.context == Some(thread::current().id());
        if current {
            Ok(())
        } else {
            Err(INVALID_CONTEXT)
        }
    }

    /// A new handle: no address of anything.
    pub fn handle(&mut self) -> usize {
        self.handles += 1;
        self.handles
    }

    pub fn free_bytes(&self) -> u64 {
        let used: usize = self.memory.values().map(Vec::len).sum();
        self.memory_bytes
            .unwrap_or(1 << 40)
            .saturating_sub(used as u64)
    }

    /// A new allocation of exactly so many bytes, full of what nobody expects.
    pub fn allocate(&mut self, bytes: usize) -> Result<u64, Code> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        if bytes as u64 > self.free_bytes() {
            return Err(OUT_OF_MEMORY);
        }
        let last = self.memory.last_key_value();
        let end = last.map_or(FIRST_ADDRESS, |(start, bytes)| start + bytes.len() as u64);
        let address = (end + 1).next_multiple_of(ALIGNMENT);
        self.memory.insert(address, vec![0xA5; bytes]);
        Ok(address)
    }

    /// Bytes of one allocation.
    pub fn bytes(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], Code> {
        let (start, all) = self
            .memory
            .range_mut(..=address)
            .next_back()
            .ok_or(INVALID_VALUE)?;
        let from = (address - start) as usize;
        all.get_mut(from..from + bytes).ok_or(INVALID_VALUE)
    }

    /// What has not been given back.
    pub fn live(&self) -> usize {
        self.memory.len() + self.modules.len() + usize::from(self.context.is_some())
    }
}
