//! Our header code against the reference crate, on random tensor sets.

use std::collections::HashMap;

use df11_file::header::{self, Dtype, Header, TensorEntry, official_order};
use proptest::{collection, prelude::*, sample};
use safetensors::{SafeTensors, tensor::TensorView};

const DTYPES: [Dtype; 13] = [
    Dtype::BOOL,
    Dtype::U8,
    Dtype::I8,
    Dtype::F8_E4M3,
    Dtype::I16,
    Dtype::F16,
    Dtype::BF16,
    Dtype::I32,
    Dtype::F32,
    Dtype::C64,
    Dtype::F64,
    Dtype::I64,
    Dtype::U64,
];

/// Names with dots, quotes, escapes, control characters and all of Unicode.
fn names() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9._]{1,12}", "\\PC{0,6}", any::<String>()]
}

fn tensor_sets() -> impl Strategy<Value = Vec<TensorEntry>> {
    let shapes = collection::vec(0_u64..5, 0..4);
    let tensor = (names(), sample::select(&DTYPES[..]), shapes);
    collection::btree_map(names(), tensor, 0..12).prop_map(|set| {
        set.into_iter()
            .filter(|(name, _)| name != "__metadata__")
            .map(|(name, (_, dtype, shape))| TensorEntry {
                bytes: shape.iter().product::<u64>() * dtype.bitsize() as u64 / 8,
                name,
                dtype,
                shape,
            })
            .collect()
    })
}

/// The reference's file of zeros.
fn reference(tensors: &[TensorEntry], metadata: Option<HashMap<String, String>>) -> Vec<u8> {
    let zeros = vec![0; tensors.iter().map(|tensor| tensor.bytes).max().unwrap_or(0) as usize];
    let view = |tensor: &TensorEntry| {
        let shape = tensor.shape.iter().map(|&side| side as usize).collect();
        TensorView::new(tensor.dtype, shape, &zeros[..tensor.bytes as usize]).unwrap()
    };
    let views: Vec<_> = tensors
        .iter()
        .map(|tensor| (&tensor.name, view(tensor)))
        .collect();
    safetensors::serialize(views, metadata).unwrap()
}

/// The header text of a file and the number of bytes behind it.
fn split(file: &[u8]) -> (&[u8], u64) {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    (&file[8..8 + length], (file.len() - 8 - length) as u64)
}

fn sorted(tensors: &[TensorEntry]) -> Vec<TensorEntry> {
    let mut sorted = tensors.to_vec();
    sorted.sort_by(official_order);
    sorted
}

fn assert_agrees(file: &[u8], ours: &Header) {
    let (_, theirs) = SafeTensors::read_metadata(file).unwrap();
    assert_eq!(ours.tensors.len(), theirs.tensors().len());
    for tensor in &ours.tensors {
        let info = theirs.info(&tensor.name).unwrap();
        let shape: Vec<_> = info.shape.iter().map(|&side| side as u64).collect();
        assert_eq!((tensor.dtype, &tensor.shape), (info.dtype, &shape));
        let range = (tensor.start as usize, tensor.end as usize);
        assert_eq!(range, info.data_offsets);
    }
    let metadata: HashMap<_, _> = ours.metadata.iter().cloned().collect();
    assert_eq!(metadata, theirs.metadata().clone().unwrap_or_default());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_reference_writes_is_read_alike(
        tensors in tensor_sets(),
        metadata in proptest::option::of(collection::hash_map(any::<String>(), any::<String>(), 0..4)),
    ) {
        // The reference writes no sound JSON for an empty file with empty metadata.
        prop_assume!(!tensors.is_empty());
        let file = reference(&tensors, metadata);
        let (json, data_bytes) = split(&file);
        assert_agrees(&file, &header::parse(json, data_bytes).unwrap());
    }

    #[test]
    fn the_writer_gives_the_bytes_of_the_reference(tensors in tensor_sets(), value in any::<String>()) {
        let ours = header::serialize(&sorted(&tensors), &[], 0);
        prop_assert!(reference(&tensors, None).starts_with(&ours));
        // One pair, since the reference keeps metadata in a hash map.
        let pair = [("a \"key\"".to_owned(), value)];
        let ours = header::serialize(&sorted(&tensors), &pair, 0);
        prop_assert!(reference(&tensors, Some(pair.into())).starts_with(&ours));
    }

    #[test]
    fn a_header_with_reserved_space_is_read_alike(tensors in tensor_sets(), reserved in 0_u64..4096) {
        let reserved = reserved * 8;
        let mut file = header::serialize(&sorted(&tensors), &[], reserved);
        prop_assert!(file.len() as u64 >= reserved && file.len().is_multiple_of(8));
        let data_bytes = tensors.iter().map(|tensor| tensor.bytes).sum::<u64>();
        header::check_with_reference(&file, data_bytes).unwrap();
        prop_assert!(header::check_with_reference(&file, data_bytes + 1).is_err());
        file.resize(file.len() + data_bytes as usize, 0);
        let (json, data_bytes) = split(&file);
        assert_agrees(&file, &header::parse(json, data_bytes).unwrap());
    }

    #[test]
    fn whatever_we_accept_the_reference_accepts(
        tensors in tensor_sets(),
        changes in collection::vec((any::<sample::Index>(), any::<u8>()), 1..4),
        // Digits, quotes and brackets reach more rules than random bytes do.
        structural in any::<bool>(),
    ) {
        let mut file = reference(&tensors, None);
        let length = split(&file).0.len();
        for (place, byte) in changes {
            let byte = if structural { b"0123456789\",:[]{} "[usize::from(byte) % 18] } else { byte };
            if length > 0 {
                file[8 + place.index(length)] = byte;
            }
        }
        let (json, data_bytes) = split(&file);
        if let Ok(header) = header::parse(json, data_bytes) {
            assert_agrees(&file, &header);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(json in collection::vec(any::<u8>(), 0..300), data_bytes in any::<u64>()) {
        let _ = header::parse(&json, data_bytes);
        let braced = [b"{\"a\":".as_slice(), &json, b"}"].concat();
        let _ = header::parse(&braced, data_bytes);
    }

    #[test]
    fn arbitrary_numbers_never_panic(shape in collection::vec(any::<u64>(), 0..4), start in any::<u64>(), end in any::<u64>()) {
        let json = format!(r#"{{"a":{{"dtype":"F64","shape":{shape:?},"data_offsets":[{start},{end}]}}}}"#);
        let _ = header::parse(json.as_bytes(), end);
    }
}
