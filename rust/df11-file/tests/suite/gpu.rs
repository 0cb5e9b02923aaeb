//! The level `kernel`: sound files pass, and a weight that the GPU decodes wrong is named. The driver is a stand-in.

use std::fs;

use df11_file::{Code, options::HeaderMode};

use crate::common::{gpu::GpuWorld, result::ResultFile, weights, world::World};

const HEADERS: [HeaderMode; 2] = [HeaderMode::SelfDescribing, HeaderMode::Official];

/// Units of every kind: tables, tails at borders, sizes.
fn kinds() -> Vec<World> {
    let kinds = [
        weights::realistic(1, 1),
        weights::realistic(2, 7),
        weights::realistic(3, 700_000),
        weights::many_tables(4, 300_000),
        weights::noise(5, 100_000),
        // One bit a weight, with the last code at, before and behind a border of a kernel chunk.
        weights::constant(6, 20_000),
        weights::constant(7, 23_550),
        weights::near_constant(8, 23_551, 30_000),
        weights::near_constant(9, 200_000, 30_000),
        weights::near_constant(10, 32_768, 9),
    ];
    kinds.into_iter().map(World::of_unit).collect()
}

/// What the loader launches the kernel with, from the positions of a unit.
fn expected_launch(file: &ResultFile, unit: &str) -> String {
    let positions: Vec<u32> = file
        .bytes(&format!("{unit}.output_positions"))
        .chunks_exact(4)
        .map(|four| u32::from_le_bytes(four.try_into().unwrap()))
        .collect();
    let widest = positions
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap();
    let chunks = file
        .bytes(&format!("{unit}.encoded_exponent"))
        .len()
        .div_ceil(4096);
    format!(
        "cuLaunchKernel(grid {chunks}, block 512, shared {}) = 0",
        512 * 4 + 4 + 2 * widest
    )
}

#[test]
fn sound_files_are_sound_on_the_gpu() {
    for header in HEADERS {
        let worlds = kinds()
            .into_iter()
            .map(|world| GpuWorld::new(world, header));
        for subject in worlds.chain([GpuWorld::plain(header)]) {
            let file = ResultFile::read(&subject.file);
            for against in [false, true] {
                let report = subject.check(against).unwrap();
                assert_eq!(report.level, "kernel");
                assert_eq!(report.chunks_decoded, report.chunks);
                assert_eq!(report.gpu.as_deref(), Some("Fake GPU, CUDA 12.4"));
                assert!(report.kernel_file.unwrap().ends_with("decode.ptx"));
                assert!(
                    report
                        .checked
                        .iter()
                        .any(|text| text.contains("on the GPU")),
                    "{:?}",
                    report.checked
                );
            }
            let mut units: Vec<_> = file
                .tensors
                .keys()
                .filter_map(|name| name.strip_suffix(".gaps"))
                .collect();
            units.sort_unstable();
            let expected: Vec<_> = units
                .iter()
                .map(|unit| expected_launch(&file, unit))
                .collect();
            assert_eq!(
                subject.calls("cuLaunchKernel"),
                [expected.clone(), expected].concat()
            );
            assert_eq!(subject.driver.left_over(), 0);
        }
    }
}

#[test]
fn the_most_shared_memory_is_what_the_loader_may_have() {
    let subject = GpuWorld::new(
        World::of_unit(weights::constant(1, 23_550)),
        HeaderMode::SelfDescribing,
    );
    subject.check(false).unwrap();
    assert_eq!(
        subject.calls("cuLaunchKernel"),
        ["cuLaunchKernel(grid 1, block 512, shared 49152) = 0"]
    );
}

#[test]
fn copies_are_bounded() {
    let subject = GpuWorld::new(
        World::of_unit(weights::realistic(1, 3_000_000)),
        HeaderMode::SelfDescribing,
    );
    subject.check(false).unwrap();
    let copies = subject.calls("cuMemcpy");
    let bytes: Vec<usize> = copies
        .iter()
        .map(|call| call.split(['(', ')']).nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(
        bytes.len() > 6 && bytes.iter().all(|&bytes| bytes <= 1 << 20),
        "{bytes:?}"
    );
}

#[test]
fn a_wrong_weight_is_named() {
    for (header, against) in [
        (HEADERS[0], false),
        (HEADERS[0], true),
        (HEADERS[1], false),
        (HEADERS[1], true),
    ] {
        let subject = GpuWorld::plain(header);
        subject.driver.spoil(2, 90_001 + 9);
        let error = subject.check(against).unwrap_err();
        assert_eq!(error.code, Code::Verify);
        assert_eq!(error.unit.as_deref(), Some("three.0"));
        // A file with an official header does not name the tensors of its source.
        let named = header == HeaderMode::SelfDescribing || against;
        let (tensor, index) = if named {
            (Some("three.0.b.weight"), 9)
        } else {
            (None, 90_010)
        };
        assert_eq!(
            (error.tensor.as_deref(), error.index),
            (tensor, Some(index)),
            "{error}"
        );
        let whose = if against {
            "the source has"
        } else {
            "the decoder of this program gives"
        };
        assert!(
            error.message.contains("kernel on the GPU") && error.message.contains(whose),
            "{error}"
        );
        assert_eq!(subject.driver.left_over(), 0);
    }
}

#[test]
fn weights_that_the_kernel_does_not_write_are_seen() {
    // The second unit is the first once more: what was decoded then must not be taken for its weights.
    let weights = weights::realistic(1, 30_000);
    let tensors = ["one.0.weight", "one.1.weight"]
        .map(|name| crate::common::checkpoint::Tensor::bf16(name, weights.clone()));
    let subject = GpuWorld::new(World::new(tensors.to_vec()), HeaderMode::SelfDescribing);
    subject.driver.skip(2);
    let error = subject.check(false).unwrap_err();
    assert_eq!(
        (error.code, error.unit.as_deref(), error.index),
        (Code::Verify, Some("one.1"), Some(0))
    );
    assert!(error.message.contains("gives 0xffff"), "{error}");
}

#[test]
fn a_damaged_unit_never_reaches_the_kernel() {
    for (field, at, against) in [
        ("sign_mantissa", 7, true),
        ("gaps", 11, false),
        ("encoded_exponent", 900, false),
        ("luts", 255, false),
    ] {
        let subject = GpuWorld::plain(HeaderMode::Official);
        let mut bytes = fs::read(&subject.file).unwrap();
        let offset = ResultFile::parse(&bytes).offsets[&format!("one.0.{field}")] as usize + at;
        bytes[offset] ^= 0x10;
        fs::write(&subject.file, bytes).unwrap();
        let error = subject.check(against).unwrap_err();
        assert_eq!(error.unit.as_deref(), Some("one.0"), "{error}");
        assert!(
            matches!(error.code, Code::Verify | Code::Structure),
            "{error}"
        );
        assert!(subject.calls("cuLaunchKernel").is_empty());
        assert_eq!(subject.driver.left_over(), 0);
    }
}
