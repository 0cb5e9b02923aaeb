//! Damaged files and descriptions that lie: a code, and no file.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    checkpoint::Tensor, forged::Forged, result::ResultFile, weights, world::World,
};
use df11_file::{
    Code, Error,
    check::{self, CheckOptions},
    restore::{self, RestoreOptions},
};

/// A unit of three tensors and one of one, copied tensors of several dtypes, and two kept ones.
fn world() -> World {
    let unit = |name: &str, n: usize| Tensor::bf16(name, weights::realistic(n as u64, n));
    let world = World::new(vec![
        unit("three.1.a.weight", 90_000),
        unit("three.1.b.weight", 30_000),
        unit("three.1.c.weight", 10),
        unit("one.0.weight", 40_000),
        Tensor::f32("norm", &[1.5, -2.5]),
        Tensor::new("bytes", "U8", &[5], vec![1, 2, 3, 4, 5]),
        Tensor::new("junk.state", "U8", &[3], vec![7, 8, 9]),
        Tensor::new("junk.more", "U8", &[2], vec![1, 1]),
    ]);
    world.run(world.options()).unwrap();
    fs::remove_file(world.source()).unwrap();
    world
}

fn restored(world: &World) -> Result<(), Error> {
    let task = restore::start(&world.target(), None, RestoreOptions::default())?;
    task.result().map(|_| ())
}

/// Fails with `code`, and leaves nothing but the DF11 file.
fn assert_fails(world: &World, code: Code, what: &str) {
    let error = restored(world).expect_err(what);
    assert_eq!(error.code, code, "{what}: {error}");
    assert_eq!(error.path, Some(world.target()), "{what}: {error}");
    let left = ["architectures", "model-DF11.safetensors"];
    assert_eq!(world.files(), left, "{what}");
}

/// A change of a list of the name map.
type Change = fn(&mut Value);
/// A change of anything.
type ForgedChange = fn(&mut Forged);

#[test]
fn name_maps_that_do_not_fit() {
    let world = world();
    let sound = Forged::read(&world.target());
    let changes: [(&str, Change); 16] = [
        ("no units", |names| names["units"] = json!([])),
        ("a unit that is not there", |names| {
            names["units"][0][0] = "one.9".into();
        }),
        ("a unit twice", |names| {
            let unit = names["units"][0].clone();
            names["units"].as_array_mut().unwrap().push(unit);
        }),
        ("a member less", |names| {
            names["units"][0][1].as_array_mut().unwrap().pop();
        }),
        ("members in another order", |names| {
            let units = names["units"].as_array_mut().unwrap();
            let unit = units.iter_mut().find(|unit| unit[0] == "three.1").unwrap();
            unit[1].as_array_mut().unwrap().swap(0, 1);
        }),
        ("a member of another unit", |names| {
            names["units"][0][1][0][1] = "one.0.weight".into();
            names["units"][1][1][0][1] = "one.0.weight".into();
        }),
        ("a member that the source did not have", |names| {
            names["units"][0][1][0][1] = "nothing".into();
        }),
        ("a copied tensor that is not there", |names| {
            names["passthrough"][0][0] = "nothing".into();
        }),
        ("a copied tensor that the source did not have", |names| {
            names["passthrough"][0][1] = "../nothing".into();
        }),
        ("a copied tensor twice", |names| {
            let tensor = names["passthrough"][0].clone();
            names["passthrough"].as_array_mut().unwrap().push(tensor);
        }),
        ("a copied tensor less", |names| {
            names["passthrough"].as_array_mut().unwrap().pop();
        }),
        ("a copied tensor as a dropped one", |names| {
            let tensor = names["passthrough"].as_array_mut().unwrap().pop().unwrap();
            let dropped = names["dropped"].as_array_mut().unwrap();
            dropped.push(tensor[1].clone());
        }),
        ("one field of a unit as a copied tensor", |names| {
            names["passthrough"][0][0] = "one.0.gaps".into();
        }),
        ("a dropped tensor less", |names| {
            names["dropped"].as_array_mut().unwrap().pop();
        }),
        ("a dropped tensor twice", |names| {
            names["dropped"][1] = "junk.state".into();
        }),
        ("no list", |names| names["dropped"] = 3.into()),
    ];
    for (what, change) in changes {
        let mut forged = Forged::read(&world.target());
        forged.names(change);
        forged.write(&world.target());
        assert_fails(&world, Code::Structure, what);
        sound.write(&world.target());
    }
    restored(&world).unwrap();
}

/// The same whoever asks: verify opens the source by what the stamp says.
#[test]
fn stamps_of_other_programs() {
    let world = world();
    let mut forged = Forged::read(&world.target());
    forged.json("stamp", |stamp| stamp["cast"] = "to-bf12".into());
    forged.write(&world.target());
    assert_fails(&world, Code::Structure, "a cast that is not known");
    let options = CheckOptions {
        against: Some(world.source()),
        ..CheckOptions::default()
    };
    let error = check::start(&world.target(), options).expect_err("a refusal");
    assert_eq!(
        (error.code, error.path.clone()),
        (Code::Structure, Some(world.target()))
    );
    assert!(error.message.contains("to-bf12"), "{error}");
}

#[test]
fn source_headers_that_do_not_fit() {
    let world = world();
    let sound = Forged::read(&world.target());
    let changes: [(&str, Change); 7] = [
        ("another tensor", |header| {
            header["more"] = json!({"dtype": "U8", "shape": [0], "data_offsets": [0, 0]});
        }),
        ("another shape", |header| {
            header["norm"]["shape"] = json!([1, 2]);
        }),
        ("another dtype", |header| {
            header["norm"]["dtype"] = "I32".into();
        }),
        ("other sizes of members", |header| {
            let end = 90_002 * 2;
            header["three.1.a.weight"]["shape"] = json!([90_002]);
            header["three.1.a.weight"]["data_offsets"][1] = end.into();
            header["three.1.b.weight"]["shape"] = json!([29_998]);
            header["three.1.b.weight"]["data_offsets"][0] = end.into();
        }),
        ("a huge tensor", |header| {
            let last = &mut header["toy.marker"];
            last["shape"] = json!([1_u64 << 50]);
            let start = last["data_offsets"][0].as_u64().unwrap();
            last["data_offsets"][1] = (start + (1 << 51)).into();
        }),
        ("a hole", |header| {
            let offsets = &mut header["toy.marker"]["data_offsets"];
            let shifted: Vec<_> = (0..2).map(|at| offsets[at].as_u64().unwrap() + 1).collect();
            *offsets = json!(shifted);
        }),
        ("no tensor", |header| *header = json!({})),
    ];
    for (what, change) in changes {
        let mut forged = Forged::read(&world.target());
        forged.source_header(change);
        if what == "another tensor" {
            forged.json("xxh3", |hashes| {
                let more = format!("{}{}", hashes["source"].as_str().unwrap(), ".".repeat(16));
                hashes["source"] = more.into();
            });
        }
        forged.write(&world.target());
        assert_fails(&world, Code::Structure, what);
        sound.write(&world.target());
    }
}

/// The source's header without some tensors, and their data gone from it.
fn without(forged: &mut Forged, gone: &[&str]) {
    let header: Value = serde_json::from_slice(&forged.unpacked("source_header")).unwrap();
    let tensors = header.as_object().unwrap().keys();
    let left: Vec<bool> = tensors.map(|name| !gone.contains(&name.as_str())).collect();
    forged.json("xxh3", |hashes| {
        let digits = hashes["source"].as_str().unwrap().as_bytes().chunks(16);
        let digits = digits.zip(&left).filter(|(_, left)| **left);
        let text = digits.flat_map(|(digits, _)| digits).copied().collect();
        hashes["source"] = String::from_utf8(text).unwrap().into();
    });
    forged.source_header(|header| {
        let tensors = header.as_object_mut().unwrap();
        let mut at = 0;
        for (_, tensor) in tensors
            .iter_mut()
            .filter(|(name, _)| !gone.contains(&name.as_str()))
        {
            let offset = |end: usize| tensor["data_offsets"][end].as_u64().unwrap();
            let bytes = offset(1) - offset(0);
            tensor["data_offsets"] = json!([at, at + bytes]);
            at += bytes;
        }
        tensors.retain(|name, _| !gone.contains(&name.as_str()));
    });
}

/// A file that holds more than it says has tensors that nobody knows.
#[test]
fn tensors_that_no_part_names() {
    let world = world();
    let sound = Forged::read(&world.target());
    let mut forged = Forged::read(&world.target());
    without(&mut forged, &["norm"]);
    forged.names(|names| {
        let copied = names["passthrough"].as_array_mut().unwrap();
        copied.retain(|tensor| tensor[0] != "norm");
    });
    forged.write(&world.target());
    assert_fails(&world, Code::Structure, "a copied tensor");
    sound.write(&world.target());
    let mut forged = Forged::read(&world.target());
    without(&mut forged, &["one.0.weight"]);
    forged.names(|names| {
        let units = names["units"].as_array_mut().unwrap();
        units.retain(|unit| unit[0] != "one.0");
    });
    forged.write(&world.target());
    assert_fails(&world, Code::Structure, "a unit");
}

#[test]
fn other_metadata_that_does_not_fit() {
    let world = world();
    let sound = Forged::read(&world.target());
    let changes: [(&str, ForgedChange, Code); 14] = [
        ("no stamp", |file| file.remove("stamp"), Code::Structure),
        ("no names", |file| file.remove("names"), Code::Structure),
        ("no hashes", |file| file.remove("xxh3"), Code::Structure),
        (
            "no source header",
            |file| file.remove("source_header"),
            Code::Structure,
        ),
        (
            "nothing kept",
            |file| file.remove("dropped"),
            Code::NotRestorable,
        ),
        (
            "less kept",
            |file| file.pack("dropped", &[7, 8, 9, 1]),
            Code::Structure,
        ),
        (
            "more kept",
            |file| file.pack("dropped", &[0; 6]),
            Code::Structure,
        ),
        (
            "a copied tensor kept too",
            |file| {
                file.names(|names| names["dropped"].as_array_mut().unwrap().push("norm".into()));
                file.pack("dropped", &[7, 8, 9, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
            },
            Code::Structure,
        ),
        (
            "far too much kept",
            |file| file.pack("dropped", &vec![0; 100_000_000]),
            Code::Structure,
        ),
        (
            "another size of the source",
            |file| file.json("stamp", |stamp| stamp["bytes"] = 5.into()),
            Code::Structure,
        ),
        (
            "the largest size of the source",
            |file| file.json("stamp", |stamp| stamp["bytes"] = u64::MAX.into()),
            Code::Structure,
        ),
        (
            "another header's hash",
            |file| file.json("stamp", |stamp| stamp["header_xxh3"] = "0".into()),
            Code::Structure,
        ),
        (
            "another name map's hash",
            |file| file.json("stamp", |stamp| stamp["names_xxh3"] = "0".into()),
            Code::Structure,
        ),
        (
            "no hash of a tensor",
            |file| {
                file.json("xxh3", |hashes| {
                    let text = hashes["source"].as_str().unwrap();
                    hashes["source"] = format!("................{}", &text[16..]).into();
                });
            },
            Code::Structure,
        ),
    ];
    for (what, change, code) in changes {
        let mut forged = Forged::read(&world.target());
        change(&mut forged);
        forged.write(&world.target());
        assert_fails(&world, code, what);
        sound.write(&world.target());
    }
}

/// A wrong hash of any tensor of the source that was read, or of a dropped one that has one.
#[test]
fn hashes_of_other_bytes() {
    let world = world();
    let sound = Forged::read(&world.target());
    for tensor in 0..9 {
        let mut forged = Forged::read(&world.target());
        forged.json("xxh3", |hashes| {
            let mut text = hashes["source"].as_str().unwrap().to_owned();
            text.replace_range(tensor * 16..tensor * 16 + 16, "0123456789abcdef");
            hashes["source"] = text.into();
        });
        forged.write(&world.target());
        // A copied tensor has two hashes, which differ then.
        let error = restored(&world).unwrap_err();
        let codes = [Code::Verify, Code::Structure];
        assert!(codes.contains(&error.code), "{error}");
        assert_fails(&world, error.code, &format!("tensor {tensor}"));
        sound.write(&world.target());
    }
}

/// One bit of every tensor of the file.
#[test]
fn a_flipped_bit() {
    let world = world();
    let intact = fs::read(world.target()).unwrap();
    let file = ResultFile::parse(&intact);
    for name in &file.order {
        let length = file.bytes(name).len();
        // The last two bytes of codes may hold nothing but what follows the last one.
        for at in [0, length / 2, length.saturating_sub(3)] {
            if length == 0 || name.rsplit('.').next() == Some("luts") && at > 0 {
                continue;
            }
            let mut damaged = intact.clone();
            damaged[file.offsets[name] as usize + at] ^= 4;
            fs::write(world.target(), damaged).unwrap();
            let error = restored(&world).expect_err(name);
            let expected = [Code::Verify, Code::Structure];
            assert!(expected.contains(&error.code), "{name} {at}: {error}");
            let left = ["architectures", "model-DF11.safetensors"];
            assert_eq!(world.files(), left, "{name} {at}");
        }
    }
}

#[test]
fn a_flipped_letter_of_packed_metadata() {
    let world = world();
    let sound = Forged::read(&world.target());
    for key in ["names", "source_header", "dropped"] {
        let mut forged = Forged::read(&world.target());
        let mut text = forged.meta(key).as_str().unwrap().to_owned();
        let middle = text.len() / 2;
        let other = if text.as_bytes()[middle] == b'A' {
            "B"
        } else {
            "A"
        };
        text.replace_range(middle..=middle, other);
        forged.set(key, &text);
        forged.write(&world.target());
        assert_fails(&world, Code::Structure, key);
        sound.write(&world.target());
    }
}
