//! Which names can be those of a file, on every system: names of units, shards and sources are text from files.

/// Longest name that is taken, in bytes. File systems have 255, and the partial file's name is longer.
pub const MAX_BYTES: usize = 200;
/// Names, before the first dot, that Windows gives to devices.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// The same with a digit behind.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// Why `name` cannot be that of a file in a folder, on some system; none where it can.
pub fn complaint(name: &str) -> Option<&'static str> {
    let forbidden = |c: char| c.is_control() || "<>:\"|?*/\\".contains(c);
    let cases = [
        (name.is_empty(), "it is empty"),
        (name.len() > MAX_BYTES, "it is too long"),
        (
            name.contains(forbidden),
            "it has a character that file names cannot have",
        ),
        (
            name.starts_with(['.', ' ']),
            "it begins with a dot or space",
        ),
        (name.ends_with(['.', ' ']), "it ends with a dot or space"),
        (is_device(name), "Windows has a device of this name"),
    ];
    let found = cases.iter().find(|(applies, _)| *applies);
    found.map(|(_, why)| *why)
}

/// What two names have in common that some file systems take for one: letters of either case.
pub fn folded(name: &str) -> String {
    name.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_ascii_lowercase();
    let numbered = |device: &&str| {
        let number = stem.strip_prefix(*device);
        number.is_some_and(|number| {
            ["\u{b9}", "\u{b2}", "\u{b3}"].contains(&number)
                || matches!(number.as_bytes(), [b'0'..=b'9'])
        })
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(numbered)
}
