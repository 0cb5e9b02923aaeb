//! Places where a test of this crate lets a thread of a job fail. In what users get, nothing happens there.

/// A thread has come to this place.
#[cfg(test)]
pub fn here(place: &'static str) {
    tests::meet(place);
}

/// Nothing.
#[cfg(not(test))]
#[inline]
pub fn here(_: &'static str) {}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
        time::Duration,
    };

    use tempfile::TempDir;

    use crate::{Code, Error, Job, Options, options::Io, plan, sync::lock};

    /// The place at which threads fail, and how often they come there before.
    static ARMED: std::sync::Mutex<Option<&'static str>> = std::sync::Mutex::new(None);
    static BEFORE: AtomicUsize = AtomicUsize::new(0);

    pub fn meet(place: &'static str) {
        let armed = *lock(&ARMED) == Some(place);
        let is_due = || BEFORE.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        assert!(!armed || is_due().is_ok(), "on purpose, in {place}");
    }

    fn arm(place: &'static str, before: usize) {
        BEFORE.store(before, Relaxed);
        *lock(&ARMED) = Some(place);
    }

    const ARCHITECTURE: &str = r#"
schema = 1
id = "Toy"
name = "a toy"
source = "made up for tests"

[loader]
node = "ToyLoader"
pack = "toys"
url = "https://example.org"

[detect]
all = ["marker"]

[[units]]
pattern = 'one\.\d+'
attributes = []
"#;

    /// A source of two units that are read in lanes and flushed several times, in a folder of its own.
    fn source() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let weights = crate::bench::synthetic(8 << 20);
        let mut members =
            vec![r#""marker":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#.to_owned()];
        let mut data = vec![0];
        for unit in 0..2 {
            let (start, end) = (data.len(), data.len() + weights.len());
            members.push(format!(
                r#""one.{unit}.weight":{{"dtype":"BF16","shape":[{}],"data_offsets":[{start},{end}]}}"#,
                weights.len() / 2
            ));
            data.extend_from_slice(&weights);
        }
        let json = format!("{{{}}}", members.join(","));
        let file = [&(json.len() as u64).to_le_bytes(), json.as_bytes(), &data].concat();
        fs::write(folder.path().join("model.safetensors"), file).unwrap();
        fs::write(folder.path().join("toy.toml"), ARCHITECTURE).unwrap();
        folder
    }

    fn files(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn compress(folder: &TempDir, io: Io) -> Result<(), Error> {
        let options = Options {
            definitions: vec![folder.path().to_path_buf()],
            io,
            ..Options::default()
        };
        let plan = plan(&folder.path().join("model.safetensors"), None, options).unwrap();
        let job = Job::start(plan).unwrap();
        assert!(job.join(Some(Duration::from_secs(60))), "it hangs");
        job.result().map(drop)
    }

    /// Whichever thread fails, and when: the job ends at once with a fault of its own, nothing is left, and the next one ends well.
    #[test]
    fn a_thread_that_fails_ends_its_job() {
        let folder = source();
        let before = files(&folder);
        for (place, passed, io) in [
            ("read", 0, Io::Auto),
            ("read", 1, Io::Auto),
            ("lane", 0, Io::Sequential),
            ("lane", 20, Io::Parallel),
            ("encode", 0, Io::Auto),
            ("encode", 40, Io::Auto),
            ("check", 0, Io::Auto),
            ("check", 40, Io::Auto),
            ("step", 0, Io::Auto),
            ("step", 2, Io::Auto),
            ("write", 0, Io::Auto),
            ("write", 40, Io::Auto),
            ("flush", 0, Io::Auto),
        ] {
            arm(place, passed);
            let error = compress(&folder, io).expect_err(place);
            assert_eq!(error.code, Code::Internal, "{place} {passed}: {error}");
            assert!(!error.hint.is_empty());
            assert_eq!(files(&folder), before, "{place} {passed}");
        }
        *lock(&ARMED) = None;
        compress(&folder, Io::Auto).unwrap();
    }
}
