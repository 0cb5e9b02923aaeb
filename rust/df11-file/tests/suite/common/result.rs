//! Result files, read with the reference crate and decoded with the kernel-shaped decoder.

use std::{collections::HashMap, fs, path::Path};

use df11_codec::{ChunkRun, DecodeTables};
use safetensors::{Dtype, SafeTensors};

use super::expected;

/// A tensor as the reference crate sees it.
pub type Found = (Dtype, Vec<usize>, Vec<u8>);

/// A result file.
pub struct ResultFile {
    pub metadata: HashMap<String, String>,
    pub tensors: HashMap<String, Found>,
    /// Names in the order of their data.
    pub order: Vec<String>,
    /// File offsets of the tensors.
    pub offsets: HashMap<String, u64>,
}

impl ResultFile {
    pub fn read(path: &Path) -> Self {
        Self::parse(&fs::read(path).unwrap())
    }

    pub fn parse(bytes: &[u8]) -> Self {
        let (header_bytes, header) = SafeTensors::read_metadata(bytes).unwrap();
        let file = SafeTensors::deserialize(bytes).unwrap();
        let start =
            |name: &str| (8 + header_bytes + header.info(name).unwrap().data_offsets.0) as u64;
        let offsets: HashMap<_, _> = file
            .names()
            .into_iter()
            .map(|name| (name.to_owned(), start(name)))
            .collect();
        let view = |name: &&str| {
            let view = file.tensor(name).unwrap();
            (view.dtype(), view.shape().to_vec(), view.data().to_vec())
        };
        let tensors = file
            .names()
            .iter()
            .map(|name| ((*name).to_owned(), view(name)))
            .collect();
        let mut order: Vec<_> = offsets.keys().cloned().collect();
        order.sort_by_key(|name| (offsets[name], header.info(name).unwrap().data_offsets.1));
        Self {
            metadata: header.metadata().clone().unwrap_or_default(),
            tensors,
            order,
            offsets,
        }
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.tensors[name].2
    }

    /// The unit's five U8 tensors are the codec's, and the kernel-shaped decoder gives its weights.
    pub fn assert_unit(&self, unit: &str, weights: &[u8]) {
        for (field, bytes) in expected::unit(weights) {
            // No assert_eq: the bytes are too many to print.
            assert!(
                self.bytes(&format!("{unit}.{field}")) == bytes,
                "{unit}.{field} differs"
            );
        }
        self.assert_decodes(unit, weights);
    }

    /// The kernel-shaped decoder gives these weights.
    pub fn assert_decodes(&self, unit: &str, weights: &[u8]) {
        assert!(
            self.decode(unit, weights.len() / 2) == weights,
            "{unit} decodes to other weights"
        );
    }

    fn decode(&self, unit: &str, weights: usize) -> Vec<u8> {
        let field = |name: &str| self.bytes(&format!("{unit}.{name}"));
        let run = ChunkRun {
            first_chunk: 0,
            unit_weights: weights as u64,
            unit_bytes: field("encoded_exponent").len() as u64,
            encoded_exponent: field("encoded_exponent"),
            gaps: field("gaps"),
            output_positions: field("output_positions"),
            sign_mantissa: field("sign_mantissa"),
        };
        let mut decoded = vec![0; weights * 2];
        DecodeTables::new(field("luts"))
            .unwrap()
            .decode_chunks(&run, &mut decoded)
            .unwrap();
        decoded
    }
}
