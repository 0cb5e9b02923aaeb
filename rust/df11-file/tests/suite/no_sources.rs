//! Models that cannot be compressed: each is refused by its name.

use df11_file::{Code, Options, plan};

use crate::{
    common::{checkpoint::Tensor, weights},
    inputs::{PREFIX, Place, QKV, assert_says, bf16, bytes, doors, flux, quantised, with},
};

#[test]
#[allow(clippy::too_many_lines)] // a table
fn models_that_are_no_source() {
    let scale = 0.002_f32.to_le_bytes();
    let comfy = |format: &str| format!(r#"{{"format": "{format}"}}"#).into_bytes();
    let quant = "double_blocks.0.img_attn.qkv.comfy_quant";
    let scaled = "double_blocks.0.img_attn.qkv.weight_scale";
    let old_scaled = "double_blocks.0.img_attn.qkv.scale_weight";
    let unit: &[&str] = &["unit double_blocks.0", QKV];
    let f16 = |tensor: &Tensor| Tensor {
        dtype: "F16",
        ..tensor.clone()
    };
    let bare = [
        "double_blocks.0.luts",
        "double_blocks.0.encoded_exponent",
        "double_blocks.0.sign_mantissa",
        "double_blocks.0.output_positions",
        "double_blocks.0.gaps",
    ];
    let prefixed = |prefix: &str| -> Vec<Tensor> {
        let named = flux().into_iter().map(|mut tensor| {
            tensor.name.insert_str(0, prefix);
            tensor
        });
        named.collect()
    };
    let shaped = |name: &str, shape: &[u64]| {
        let count = shape.iter().product::<u64>() as usize;
        Tensor::new(name, "BF16", shape, vec![0; count * 2])
    };
    let quantized = Code::Quantized;
    let cases: Vec<(Vec<Tensor>, Code, Vec<&str>)> = vec![
        (
            quantised(&[(QKV, "F8_E4M3", &[1; 8])]),
            quantized,
            vec![QKV, "F8_E4M3", "BF16 file"],
        ),
        (
            quantised(&[
                (QKV, "F8_E4M3", &[1; 8]),
                (old_scaled, "F32", &scale),
                ("scaled_fp8", "F8_E4M3", &[]),
            ]),
            quantized,
            vec![old_scaled, "scaled fp8"],
        ),
        (
            quantised(&[(QKV, "F8_E4M3", &[1; 8]), (scaled, "F32", &scale)]),
            quantized,
            vec![scaled, "scaled"],
        ),
        (
            quantised(&[
                (QKV, "F8_E4M3", &[1; 8]),
                (scaled, "F32", &scale),
                (quant, "U8", &comfy("float8_e4m3fn")),
            ]),
            quantized,
            vec![quant, "comfy_quant format float8_e4m3fn"],
        ),
        (
            quantised(&[
                (QKV, "I8", &[1; 8]),
                (quant, "U8", &comfy("int8_tensorwise")),
            ]),
            quantized,
            vec![quant, "comfy_quant format int8_tensorwise"],
        ),
        (
            quantised(&[(quant, "U8", b"nonsense")]),
            quantized,
            vec![quant, "cannot be read"],
        ),
        (
            quantised(&[(QKV, "I8", &[1; 8])]),
            quantized,
            vec![QKV, "I8"],
        ),
        (
            quantised(&[("a.weight", "I8", &[1; 8]), ("a.SCB", "F32", &scale)]),
            quantized,
            vec!["a.SCB", "int8"],
        ),
        (
            quantised(&[
                (QKV, "U8", &[1; 8]),
                (scaled, "F8_E4M3", &[1]),
                ("b.weight_scale_2", "F32", &scale),
            ]),
            quantized,
            vec!["b.weight_scale_2", "nvfp4"],
        ),
        (
            quantised(&[
                ("a_proj_blocks", "U8", &[1; 8]),
                ("a_proj_scales", "U8", &[1]),
            ]),
            quantized,
            vec!["a_proj_blocks", "mxfp4"],
        ),
        (
            quantised(&[(QKV, "U8", &[1; 8]), ("b.weight.quant_map", "F32", &scale)]),
            quantized,
            vec!["b.weight.quant_map", "bitsandbytes"],
        ),
        (
            bare.map(|name| Tensor::new(name, "U8", &[8], vec![0; 8]))
                .to_vec(),
            Code::AlreadyDf11,
            vec!["encoded_exponent", "Load it"],
        ),
        (
            [
                "transformer_blocks.0.attn.add_q_proj.weight",
                "single_transformer_blocks.0.proj_mlp.weight",
                "x_embedder.weight",
                "context_embedder.weight",
            ]
            .map(bf16)
            .to_vec(),
            Code::ArchRefused,
            vec!["diffusers", "query, key and value", "ModelSave"],
        ),
        (
            [
                "transformer_blocks.0.attn.to_q.weight",
                "single_transformer_blocks.0.proj_mlp.weight",
            ]
            .map(bf16)
            .to_vec(),
            Code::ArchUnknown,
            vec!["diffusers layout", "architecture file can add one"],
        ),
        (
            (0..3)
                .map(|at| bf16(&format!("down_blocks.{at}.conv.weight")))
                .collect(),
            Code::ArchUnknown,
            vec!["no known one is similar"],
        ),
        (
            flux()
                .into_iter()
                .filter(|tensor| !tensor.name.contains("vector_in"))
                .collect(),
            Code::ArchUnknown,
            vec!["nearest: ", "Flux (FLUX.1 dev"],
        ),
        (
            Vec::new(),
            Code::ArchUnknown,
            vec!["no known one is similar"],
        ),
        (
            flux()
                .into_iter()
                .filter(|tensor| tensor.name != "double_blocks.0.txt_mlp.2.weight")
                .collect(),
            Code::UnitIncomplete,
            vec![
                "unit double_blocks.0",
                "lacks double_blocks.0.txt_mlp.2.weight",
            ],
        ),
        (
            with(f16(&bf16(QKV))),
            Code::Dtype,
            [unit, &["1 of 10 tensors", "F16", "to-bf16"]].concat(),
        ),
        (
            flux().iter().map(f16).collect(),
            Code::Dtype,
            vec!["10 of 10 tensors", "3 of 3 tensors", "F16", "to-bf16"],
        ),
        (
            with(Tensor::f32(QKV, &[0.5; 96])),
            Code::Dtype,
            [unit, &["1 of 10 tensors", "F32", "BF16 checkpoint"]].concat(),
        ),
        (
            with(bf16("double_blocks.0.img_attn.norm.key_norm.weight")),
            Code::NameCollision,
            vec!["key_norm.scale", "key_norm.weight", "Remove one"],
        ),
        (
            [
                prefixed(PREFIX),
                vec![bf16(
                    "model.diffusion_model.double_blocks.0.img_attn.norm.key_norm.weight",
                )],
            ]
            .concat(),
            Code::NameCollision,
            vec!["key_norm.scale", "Remove one"],
        ),
        // FLUX.1 Fill and Cosmos Video2World: the loader has no entry for them.
        (
            with(shaped("img_in.weight", &[1, 384])),
            Code::ArchRefused,
            vec!["FLUX.1 Fill", "KeyError", "Keep the BF16 file"],
        ),
        (
            vec![
                bf16("blocks.0.mlp.layer1.weight"),
                shaped("x_embedder.proj.1.weight", &[1, 72]),
            ],
            Code::ArchRefused,
            vec!["video2world", "KeyError", "Keep the BF16 file"],
        ),
    ];
    for (tensors, code, words) in cases {
        let place = Place::new(&bytes(&tensors));
        let error = plan(&place.file(), None, Options::default()).expect_err("a refusal");
        assert_says(&error, code, &place.file(), &words);
        // They are no result either. Some look like one, and are damaged.
        let [_, checked, restored] = doors(&place.file());
        let code = match code {
            Code::AlreadyDf11 => Code::Structure,
            _ => Code::NotDf11,
        };
        for error in [checked, restored] {
            assert_says(&error, code, &place.file(), &[]);
        }
    }
}

/// It compresses, but another loader node is needed, and is named.
#[test]
fn another_loader_is_named() {
    let shaped = |name: &str, shape: &[u64]| {
        let count = shape.iter().product::<u64>() as usize;
        Tensor::new(name, "BF16", shape, weights::realistic(1, count))
    };
    let key = "input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight";
    let names = [
        "input_blocks.4.1.transformer_blocks.1.attn2.to_k.weight",
        "input_blocks.7.1.transformer_blocks.9.attn2.to_k.weight",
        "middle_block.1.transformer_blocks.9.attn1.to_q.weight",
        "output_blocks.5.1.transformer_blocks.1.attn1.to_q.weight",
    ];
    let mut tensors: Vec<_> = names.into_iter().map(bf16).collect();
    tensors.extend([
        shaped(key, &[1, 2048]),
        shaped("label_emb.0.0.weight", &[1, 2816]),
        shaped("input_blocks.0.0.weight", &[320, 4]),
    ]);
    let place = Place::new(&bytes(&tensors));
    // The units are not complete here; what a unit lacks is not what this is about.
    let error = plan(&place.file(), None, Options::default()).unwrap_err();
    assert_eq!(error.code, Code::UnitIncomplete, "{error}");
    let library = df11_file::architectures::Library::load(&[]).unwrap();
    let summaries = library.summaries();
    let sdxl = summaries.iter().find(|known| known.id == "SDXL").unwrap();
    let loader = serde_json::to_string(&sdxl.loader).unwrap();
    for words in [
        "CheckpointLoaderWithDFloat11",
        "DFloat11ModelLoader stops with a KeyError",
    ] {
        assert!(loader.contains(words), "{loader}");
    }
}
