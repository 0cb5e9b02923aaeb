//! What a self-describing file says about itself is complete and true.

use std::{collections::HashMap, io::Read, path::Path};

use crate::common::{
    checkpoint::{Layout, Tensor},
    result::ResultFile,
    weights,
    world::World,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use df11_file::{Options, Source, options::HeaderMode};
use flate2::read::ZlibDecoder;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

fn unpack(text: &str) -> Vec<u8> {
    let packed = STANDARD.decode(text).unwrap();
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed.as_slice())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

fn metadata(pairs: &[(&str, &str)]) -> Layout {
    let owned = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Layout {
        metadata: owned.collect(),
        odd: true,
        reversed_data: true,
    }
}

/// All kinds of tensors, and names that need escapes.
fn world() -> World {
    let small = |name: &str, n: usize| Tensor::bf16(name, weights::realistic(n as u64, n));
    World::with_layout(
        vec![
            small("three.1.b.weight", 3_000),
            small("three.1.a.weight", 70_000),
            small("three.1.c.weight", 1),
            small("one.0.weight", 40_000),
            small("three.1.norm.scale", 64),
            Tensor::f32("norm \"é\\日本", &[1.5, -2.5]),
            Tensor::new("flags", "BOOL", &[3], vec![1, 0, 1]),
            Tensor::new("wide", "F64", &[1], vec![9; 8]),
            Tensor::new("bytes", "U8", &[5], vec![1, 2, 3, 4, 5]),
            Tensor::new("empty", "I32", &[0, 7], Vec::new()),
            Tensor::new("junk.state", "U8", &[3], vec![7, 8, 9]),
            Tensor::new("junk.nothing", "F32", &[0], Vec::new()),
        ],
        &metadata(&[
            ("modelspec.title", "Zeit \"µ\"\n"),
            ("df11.format", "not ours"),
            ("empty", ""),
        ]),
    )
}

/// A compressed world: source and result side by side.
struct Described {
    world: World,
    source: Source,
    source_file: Vec<u8>,
    result: ResultFile,
}

impl Described {
    fn new(world: World) -> Self {
        world.run(world.options()).unwrap();
        Self {
            source: Source::open(&world.source()).unwrap(),
            source_file: std::fs::read(world.source()).unwrap(),
            result: ResultFile::read(&world.target()),
            world,
        }
    }

    fn meta(&self, key: &str) -> &str {
        &self.result.metadata[key]
    }

    /// The bytes of the source's tensors, by name.
    fn source_tensors(&self) -> HashMap<&str, &[u8]> {
        let data = &self.source_file[8 + self.source.header_json().len()..];
        let tensors = self.source.header().tensors.iter();
        tensors
            .map(|tensor| {
                (
                    tensor.name.as_str(),
                    &data[tensor.start as usize..tensor.end as usize],
                )
            })
            .collect()
    }

    /// Hashes that the file holds, as hexadecimal digits.
    fn hashes(&self, of: &str) -> Vec<String> {
        let all = json(self.meta("df11.xxh3").as_bytes());
        let digits = all[of].as_str().unwrap().as_bytes();
        let text = |hash: &[u8]| String::from_utf8(hash.to_vec()).unwrap();
        digits.chunks(16).map(text).collect()
    }
}

fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// The texts of a JSON list.
fn texts(list: &Value) -> Vec<&str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item.as_str().unwrap()).collect()
}

#[test]
fn identity_header_and_foreign_metadata() {
    let file = Described::new(world());
    assert_eq!(
        unpack(file.meta("df11.source_header")),
        file.source.header_json()
    );
    assert_eq!(file.meta("df11.format"), "df11-self-describing/1");
    assert_eq!(file.meta("df11.source_name"), "model.safetensors");
    assert_eq!(file.meta("modelspec.title"), "Zeit \"µ\"\n");
    assert_eq!(file.meta("empty"), "");
    assert!(file.meta("df11.tool").starts_with("dfloat11-compress "));
    let stamp = json(file.meta("df11.stamp").as_bytes());
    assert_eq!(stamp["bytes"], file.source_file.len());
    assert_eq!(stamp["header_xxh3"], hash(file.source.header_json()));
    assert_eq!(
        (&stamp["architecture"], &stamp["cast"]),
        (&"Toy".into(), &"none".into())
    );
}

/// Every source tensor is in exactly one place, and that place holds its bytes or its weights.
#[test]
fn every_tensor_has_its_place() {
    let file = Described::new(world());
    let sources = file.source_tensors();
    let names = json(&unpack(file.meta("df11.names")));
    assert_eq!(names["prefix"], "");
    let (mut seen, mut placed) = (Vec::new(), Vec::new());
    for unit in names["units"].as_array().unwrap() {
        let (mut weights, mut sums) = (Vec::new(), Vec::new());
        for member in unit[1].as_array().unwrap() {
            let source = texts(member)[1];
            assert_eq!(texts(member), [source, source]);
            seen.push(source);
            weights.extend_from_slice(sources[source]);
            sums.extend((weights.len() as u64 / 2).to_le_bytes());
        }
        let unit = unit[0].as_str().unwrap();
        file.result.assert_unit(unit, &weights);
        let splits = file.result.bytes(&format!("{unit}.split_positions"));
        assert_eq!(splits, &sums[..sums.len() - 8]);
        let fields = [
            "encoded_exponent",
            "gaps",
            "luts",
            "output_positions",
            "sign_mantissa",
            "split_positions",
        ];
        placed.extend(fields.iter().map(|field| format!("{unit}.{field}")));
    }
    for pair in names["passthrough"].as_array().unwrap() {
        let (name, source) = (texts(pair)[0], texts(pair)[1]);
        assert_eq!(name, source.replace(".scale", ".weight"));
        assert_eq!(file.result.bytes(name), sources[source]);
        seen.push(source);
        placed.push(name.to_owned());
    }
    let dropped = texts(&names["dropped"]);
    assert_eq!(dropped, ["junk.state", "junk.nothing"]);
    assert_eq!(unpack(file.meta("df11.dropped")), [7, 8, 9]);
    seen.extend(dropped);

    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    assert_eq!(
        sorted(owned(seen)),
        sorted(owned(sources.keys().copied().collect()))
    );
    assert_eq!(sorted(placed), sorted(file.result.order.clone()));
}

/// The result's hashes stand in the order of its header, the source's in the order of its own.
#[test]
fn hashes_are_those_of_the_tensors() {
    let file = Described::new(world());
    let result = header_order(&file.world.target()).into_iter();
    let expected: Vec<_> = result.map(|name| hash(file.result.bytes(&name))).collect();
    assert_eq!(file.hashes("tensors"), expected);
    let sources = file.source_tensors();
    let expected: Vec<_> = header_order(&file.world.source())
        .iter()
        .map(|name| match name.as_str() {
            // Dropped tensors are not hashed.
            "junk.state" => "................".to_owned(),
            name => hash(sources[name]),
        })
        .collect();
    assert_eq!(file.hashes("source"), expected);
}

fn header_order(path: &Path) -> Vec<String> {
    let source = Source::open(path).unwrap();
    source
        .header()
        .tensors
        .iter()
        .map(|tensor| tensor.name.clone())
        .collect()
}

#[test]
fn tensors_lie_aligned_and_in_the_order_of_the_header() {
    let world = world();
    world.run(world.options()).unwrap();
    let target = Source::open(&world.target()).unwrap();
    let base = 8 + target.header_json().len() as u64;
    let mut position = 0;
    for tensor in &target.header().tensors {
        assert_eq!(tensor.start, position, "{}", tensor.name);
        position = tensor.end;
        let width = (tensor.dtype.bitsize() as u64 / 8).max(1);
        assert_eq!((base + tensor.start) % width, 0, "{}", tensor.name);
    }
    let dtypes: Vec<_> = target
        .header()
        .tensors
        .iter()
        .map(|tensor| tensor.dtype)
        .collect();
    let first_u8 = dtypes
        .iter()
        .position(|dtype| *dtype == safetensors::Dtype::U8)
        .unwrap();
    assert!(
        dtypes[first_u8..]
            .iter()
            .all(|dtype| *dtype == safetensors::Dtype::U8)
    );
    assert!(dtypes[..first_u8].is_sorted_by(|a, b| a >= b));
}

#[test]
fn an_official_file_says_nothing_and_is_cast() {
    let world = world();
    world
        .run(Options {
            header: HeaderMode::Official,
            ..world.options()
        })
        .unwrap();
    let result = ResultFile::read(&world.target());
    assert!(result.metadata.is_empty());
    assert_eq!(
        result.tensors["norm \"é\\日本"],
        (
            safetensors::Dtype::BF16,
            vec![2],
            vec![0xC0, 0x3F, 0x20, 0xC0]
        )
    );
    let mut sorted = result.order.clone();
    let rank = |name: &String| result.tensors[name].0;
    sorted.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.cmp(b)));
    assert_eq!(header_order(&world.target()), sorted);
}

#[test]
fn foreign_metadata_is_left_out_where_the_header_would_grow_too_large() {
    let unit = || vec![Tensor::bf16("one.0.weight", weights::realistic(1, 100))];
    let header_bytes = |world: &World| {
        world.run(world.options()).unwrap();
        Source::open(&world.target()).unwrap().header_json().len() + 8
    };
    // Letters at random, so that the source's packed header stays below the limit but is not negligible.
    let mut random = weights::Random(1);
    let long = |n: usize, random: &mut weights::Random| -> String {
        (0..n)
            .map(|_| char::from(b'a' + (random.next() % 4) as u8))
            .collect()
    };
    let fits = World::with_layout(unit(), &metadata(&[("notes", &long(600_000, &mut random))]));
    assert!(header_bytes(&fits) <= 1 << 20);
    let result = ResultFile::read(&fits.target());
    assert_eq!(result.metadata["notes"].len(), 600_000);

    let large = World::with_layout(
        unit(),
        &metadata(&[("notes", &long(1_040_000, &mut random)), ("b", "c")]),
    );
    assert!(header_bytes(&large) <= 1 << 20);
    let result = ResultFile::read(&large.target());
    assert!(result.metadata.keys().all(|key| key.starts_with("df11.")));
    let source = Source::open(&large.source()).unwrap();
    assert_eq!(
        unpack(&result.metadata["df11.source_header"]),
        source.header_json()
    );
}

#[test]
fn large_dropped_tensors_are_only_named() {
    let with_junk = |bytes: usize| {
        World::new(vec![
            Tensor::bf16("one.0.weight", weights::realistic(1, 100)),
            Tensor::new("junk.large", "U8", &[bytes as u64], vec![1; bytes]),
        ])
    };
    let notes = |world: &World| world.run(world.options()).unwrap().notes.join("\n");
    let small = notes(&with_junk(65_536));
    assert!(
        small.contains("1 tensors") && !small.contains("cannot be restored"),
        "{small}"
    );
    let world = with_junk(65_537);
    let large = notes(&world);
    assert!(
        large.contains("1 tensors") && large.contains("cannot be restored"),
        "{large}"
    );
    let result = ResultFile::read(&world.target());
    assert!(!result.metadata.contains_key("df11.dropped"));
    assert_eq!(
        json(&unpack(&result.metadata["df11.names"]))["dropped"][0],
        "junk.large"
    );
}
