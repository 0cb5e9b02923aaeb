//! A journal of any bytes is read without a panic, as far as it is sound; and what is added to a sound one is read again.

use df11_file::journal::{self, Kind};

pub fn run(data: &[u8]) {
    check(data);
    // Hardly any bytes have the hashes of records: the same, as records that have them.
    let mut framed = b"DF11-JOURNAL/1\r\n".to_vec();
    let mut record = Vec::new();
    for line in data.split(|&byte| byte == b'\n') {
        let written = journal::frame(framed.len() as u64, &mut record, |out| {
            out.extend_from_slice(line);
            Ok::<_, ()>(())
        });
        written.expect("nothing fails");
        framed.extend_from_slice(&record);
    }
    check(&framed);
}

fn check(bytes: &[u8]) {
    let (kind, records, end) = journal::parse(bytes).expect("memory can be read");
    if records.is_empty() {
        return;
    }
    assert_eq!(kind, Kind::Ours);
    let (_, again, same) = journal::parse(&bytes[..end as usize]).expect("memory can be read");
    assert_eq!((&again, same), (&records, end));
    // Torn in the last record: that one is lost, and no other.
    let torn = &bytes[..end as usize - 1];
    let (_, fewer, _) = journal::parse(torn).expect("memory can be read");
    assert_eq!(fewer, records[..records.len() - 1]);
}
