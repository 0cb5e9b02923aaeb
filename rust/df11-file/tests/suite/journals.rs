//! Journals that another version of this program has written: only what is understood and proven is used.

use std::fs;

use df11_file::journal::{Record, frame, parse};

use crate::{
    common::world::World,
    resume::{REPLACED, WENT_ON, finish, interrupt, note, world},
};

const MARK: &[u8] = b"DF11-JOURNAL/1\r\n";

/// The records of the journal that a run has left.
fn records(world: &World) -> Vec<Record> {
    let journal = fs::read(world.journal()).unwrap();
    let (_, records, end) = parse(&journal[..]).unwrap();
    assert_eq!(end, journal.len() as u64);
    records
}

/// Writes a journal of these records.
fn write(world: &World, payloads: impl IntoIterator<Item = Vec<u8>>) {
    let (mut journal, mut framed) = (MARK.to_vec(), Vec::new());
    for payload in payloads {
        let write = |frame: &mut Vec<u8>| {
            frame.extend(&payload);
            Ok::<(), ()>(())
        };
        frame(journal.len() as u64, &mut framed, write).unwrap();
        journal.extend(&framed);
    }
    fs::write(world.journal(), journal).unwrap();
}

fn json(record: &Record) -> Vec<u8> {
    serde_json::to_vec(record).unwrap()
}

#[test]
fn one_that_another_version_has_written() {
    let world = world();
    let options = world.options();
    let undisturbed = world.result(options.clone());
    interrupt(&world, &options, 60);
    let mut found = records(&world);
    for record in &mut found {
        if let Record::Job(fingerprint) = record {
            fingerprint.tool = "99.0.0".to_owned();
        }
    }
    write(&world, found.iter().map(json));
    let report = finish(&world, &options, &undisturbed);
    let why = "it is of another version of this program";
    assert_eq!(note(&report, REPLACED), format!("{REPLACED}{why}"));
    assert_eq!(report.resumed_bytes, 0);
}

#[test]
fn one_of_another_format() {
    let world = world();
    let options = world.options();
    let undisturbed = world.result(options.clone());
    interrupt(&world, &options, 60);
    let mut journal = fs::read(world.journal()).unwrap();
    journal[13] = b'2';
    fs::write(world.journal(), journal).unwrap();
    let report = finish(&world, &options, &undisturbed);
    let why = "it has no journal that can be read";
    assert_eq!(note(&report, REPLACED), format!("{REPLACED}{why}"));
}

/// What stands before a record of an unknown kind is used, nothing behind it.
#[test]
fn one_with_records_of_an_unknown_kind() {
    let world = world();
    let options = world.options();
    let undisturbed = world.result(options.clone());
    interrupt(&world, &options, 80);
    let found = records(&world);
    let mut units = found.iter().enumerate();
    let mut units = units
        .by_ref()
        .filter(|(_, record)| matches!(record, Record::Unit(_)));
    let (second, _) = units.nth(1).expect("two units");
    let mut payloads: Vec<_> = found.iter().map(json).collect();
    payloads.insert(second, br#"{"telepathy":{"unit":"one.0"}}"#.to_vec());
    write(&world, payloads);
    let report = finish(&world, &options, &undisturbed);
    note(&report, WENT_ON);
    let all: u64 = report.units.iter().map(|unit| unit.df11_bytes).sum();
    assert!(report.resumed_bytes > 0 && report.resumed_bytes < all / 2);
}
