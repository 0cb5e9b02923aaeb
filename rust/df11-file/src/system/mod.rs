//! What the machine offers: positioned I/O, memory, cores, free space, thread priority. The only module with platform code.

pub mod disk;
mod identity;
mod position;
pub mod reserve;

use std::{fs::File, io, path::Path};

pub use identity::{file_id, is_at, is_file_of_one_name, is_same_file};
pub use position::{read_exact_at, write_all_at};

/// Whether a folder can get another name while a file in it is open.
pub const RENAMES_OPEN_FOLDERS: bool = !cfg!(windows);

/// Makes a rename in `folder` durable, where the system can. Windows has no such call and needs none; some file systems refuse it,
/// and a folder that may be written to need not be readable.
pub fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// When a process was started, in seconds since a moment that stays where it is when the clock is set: the machine's start on Linux, 1970 elsewhere.
/// None where there is no such process.
pub fn process_start(process: u32) -> Option<u64> {
    use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate};
    let (process, mut system) = (Pid::from_u32(process), sysinfo::System::new());
    let asked = ProcessesToUpdate::Some(&[process]);
    system.refresh_processes_specifics(asked, true, ProcessRefreshKind::nothing());
    let started = system.process(process)?.start_time();
    if cfg!(target_os = "linux") {
        // Of a process Linux tells the time since its own start; what is added to it to have a date moves with the clock.
        return started.checked_sub(sysinfo::System::boot_time());
    }
    Some(started)
}

/// What tells one start of the machine from the next (Linux); empty where nothing does.
pub fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// The machine's name; empty where it has none.
pub fn host_name() -> String {
    sysinfo::System::host_name().unwrap_or_default()
}

/// What process numbers are counted in: on Linux a container may have a space of its own.
pub fn process_space() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid");
    link.map_or_else(|_| String::new(), |link| link.display().to_string())
}

/// Bytes that this process has had read from devices so far, where the system tells (Linux).
pub fn device_bytes_read() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = counters
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "))?;
    line.trim().parse().ok()
}

/// Bytes free for this user on the disk of `folder`.
pub fn free_space(folder: &Path) -> Option<u64> {
    fs4::available_space(folder).ok()
}

/// Cores that this process may use (affinity and cgroup quota included).
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Memory that is not touched yet, in large pages where the system has any: the first touch of small ones takes longer than reading what
/// is put there.
///
/// # Errors
/// Those of the operating system.
pub fn block_of_memory(bytes: usize) -> io::Result<memmap2::MmapMut> {
    let memory = memmap2::MmapMut::map_anon(bytes.max(1))?;
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

/// Threads to work with: all cores, or as many as are wished for, within reason.
pub fn threads(wanted: Option<usize>) -> usize {
    const MOST: usize = 256;
    wanted.unwrap_or_else(cores).clamp(1, MOST)
}

/// The operating system and its kernel, as they name themselves.
pub fn name() -> String {
    let parts = [
        sysinfo::System::long_os_version(),
        Some(sysinfo::System::kernel_long_version()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// The processor's name; its architecture where it tells none.
pub fn processor() -> String {
    let mut system = sysinfo::System::new();
    system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
    let brand = system.cpus().first().map_or("", |cpu| cpu.brand()).trim();
    if brand.is_empty() {
        return sysinfo::System::cpu_arch();
    }
    brand.to_owned()
}

/// Bytes of memory that the machine has.
pub fn total_memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.total_memory()
}

/// Bytes of memory that can be taken without harm: what the system calls available, or less where a cgroup says so.
pub fn available_memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    cgroup_headroom().map_or(system.available_memory(), |room| {
        room.min(system.available_memory())
    })
}

/// What the memory cgroups of this process leave, version 1 or 2; every ancestor counts.
fn cgroup_headroom() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let number = |path: &Path| {
        std::fs::read_to_string(path)
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let mut smallest: Option<u64> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let (mount, limit, usage) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            "memory" => (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => continue,
        };
        for ancestor in Path::new(group).ancestors() {
            let folder = Path::new(mount).join(ancestor.strip_prefix("/").unwrap_or(ancestor));
            if let Some(limit) = number(&folder.join(limit)) {
                // The kernel gives page cache back under pressure, so usage beyond half the limit says little.
                let usage = number(&folder.join(usage)).unwrap_or(0).min(limit / 2);
                smallest = Some(smallest.map_or(limit - usage, |room| room.min(limit - usage)));
            }
        }
    }
    smallest
}

/// Lets the calling thread give way to others. Best effort: a refusal by the system changes nothing but speed.
pub fn lower_thread_priority() {
    let _ = thread_priority::set_current_thread_priority(thread_priority::ThreadPriority::Min);
}
