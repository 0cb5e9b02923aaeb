//! Who works on a partial file: for the message to a second run, and to know where no lock tells it that the first has ended.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::system;

/// Seconds by which the start of one process may seem to differ: some systems count it from a boot time that they round anew.
const SAME_START: u64 = 2;

/// A process that writes, or wrote, a partial file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    /// When it was started, as [`system::process_start`] tells it; none where the system does not.
    pub started: Option<u64>,
    /// The start of the machine since which it ran; empty where the system does not tell.
    #[serde(default)]
    pub boot: String,
    /// Name of its machine.
    pub host: String,
    /// What its process numbers are counted in, where the system has several such spaces (containers).
    pub space: String,
    /// When it took the file, in seconds since 1970.
    pub since: u64,
}

impl Holder {
    /// This process, from now on.
    pub fn here() -> Self {
        let process = std::process::id();
        Self {
            process,
            started: system::process_start(process),
            boot: system::boot(),
            host: system::host_name(),
            space: system::process_space(),
            since: now(),
        }
    }

    /// Whether it ran on this machine and has ended. False where that cannot be known.
    pub fn has_ended(&self) -> bool {
        self.has_ended_as_seen(&Self::here(), system::process_start(self.process))
    }

    /// The same as `here` sees it, where a process of this number was started at `found`.
    fn has_ended_as_seen(&self, here: &Self, found: Option<u64>) -> bool {
        let is_visible =
            !self.host.is_empty() && self.host == here.host && self.space == here.space;
        // A system that does not even tell of this process tells nothing of others.
        if !is_visible || here.started.is_none() {
            return false;
        }
        let has_boot = !self.boot.is_empty() && !here.boot.is_empty();
        if has_boot && self.boot != here.boot {
            return true;
        }
        match (self.started, found) {
            (_, None) => true,
            (Some(started), Some(found)) => started.abs_diff(found) > SAME_START,
            (None, Some(_)) => false,
        }
    }

    /// For a person: `process 4711 on larry, for 12 minutes`.
    pub fn describe(&self) -> String {
        let seconds = now().saturating_sub(self.since);
        let host = if self.host.is_empty() {
            "another machine"
        } else {
            &self.host
        };
        format!("process {} on {host}, for {}", self.process, span(seconds))
    }
}

/// A time in one unit.
fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> Holder {
        Holder {
            process: 7,
            started: Some(1000),
            boot: "b1".to_owned(),
            host: "larry".to_owned(),
            space: "pid:[1]".to_owned(),
            since: 1100,
        }
    }

    #[test]
    fn a_process_has_ended_only_where_that_is_certain() {
        let here = Holder {
            process: 9,
            ..holder()
        };
        let other_host = Holder {
            host: "moe".to_owned(),
            ..holder()
        };
        let no_host = Holder {
            host: String::new(),
            ..holder()
        };
        let other_space = Holder {
            space: "pid:[2]".to_owned(),
            ..holder()
        };
        let blind = Holder {
            started: None,
            ..here.clone()
        };
        let before_restart = Holder {
            boot: "b0".to_owned(),
            ..holder()
        };
        let no_boot = Holder {
            boot: String::new(),
            ..holder()
        };
        for (holder, here, found, expected) in [
            (no_boot, &here, Some(1000), false),
            (before_restart, &here, Some(1000), true),
            (holder(), &here, None, true),
            (holder(), &here, Some(1001), false),
            (holder(), &here, Some(1500), true),
            (
                Holder {
                    started: None,
                    ..holder()
                },
                &here,
                Some(1500),
                false,
            ),
            (other_host, &here, None, false),
            (other_space, &here, None, false),
            (no_host.clone(), &no_host, None, false),
            (holder(), &blind, None, false),
        ] {
            assert_eq!(
                holder.has_ended_as_seen(here, found),
                expected,
                "{holder:?}, {found:?}"
            );
        }
    }

    #[test]
    fn this_process_has_not_ended() {
        let here = Holder::here();
        assert!(!here.has_ended());
        assert!(!here.host.is_empty());
        assert!(here.started.is_some());
        if cfg!(target_os = "linux") {
            let uptime = sysinfo::System::uptime();
            assert!(
                here.started.is_some_and(|started| started <= uptime + 1),
                "no date"
            );
            assert!(!here.boot.is_empty());
        }
        let earlier = Holder {
            started: here.started.map(|started| started - 60),
            ..here
        };
        assert!(
            earlier.has_ended(),
            "its number belongs to another process by now"
        );
    }

    #[test]
    fn times_are_told_in_one_unit() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7200, "2 hours"),
            (200_000, "2 days"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }
}
