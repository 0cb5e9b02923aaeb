//! Sources that are something else than a BF16 checkpoint, recognised by names and dtypes.

use safetensors::Dtype;
use serde::Deserialize;

use crate::{
    error::{Code, Error},
    header::TensorInfo,
    source::Source,
};

/// What the `comfy_quant` tensor beside a quantised weight says, as JSON.
#[derive(Deserialize)]
struct ComfyQuant {
    format: String,
}

const COMFY_QUANT: &str = ".comfy_quant";
/// More than any such tensor has.
const MAX_COMFY_QUANT_BYTES: u64 = 4096;

/// Name endings that quantisers leave, and what they are left by.
const MARKERS: [(&str, &str); 8] = [
    (".weight_scale_2", "nvfp4"),
    (".weight_scale", "scaled, marked by weight_scale"),
    (".scale_weight", "scaled fp8, marked by scale_weight"),
    ("scaled_fp8", "scaled fp8, marked by scaled_fp8"),
    (".weight.quant_map", "bitsandbytes, 4 bits"),
    (".SCB", "bitsandbytes, int8"),
    ("_proj_blocks", "mxfp4"),
    (".qweight", "GPTQ or AWQ, marked by qweight"),
];

/// The refusal of a file whose model, the tensors under `prefix`, is compressed or quantised already. What lies beside it is left out
/// anyway.
pub fn refusal(source: &Source, prefix: &str) -> Option<Error> {
    let tensors = || {
        let tensors = source.header().tensors.iter();
        tensors.filter(|tensor| tensor.name.starts_with(prefix))
    };
    let ends = |suffix: &str| tensors().find(|tensor| tensor.name.ends_with(suffix));
    if let (Some(tensor), Some(_)) = (ends(".encoded_exponent"), ends(".sign_mantissa")) {
        let error = Error::new(Code::AlreadyDf11, "the file already is a DFloat11 file")
            .in_tensor(&tensor.name);
        return Some(error.hint("Load it with a DFloat11 loader as it is."));
    }
    let by_comfy = || {
        let tensor = ends(COMFY_QUANT)?;
        let format = comfy_format(source, tensor);
        let format = format.unwrap_or_else(|| "that cannot be read".to_owned());
        Some((tensor, format!("comfy_quant format {format}")))
    };
    let by_name = || {
        let mut markers = MARKERS.iter();
        markers.find_map(|(marker, what)| Some((ends(marker)?, (*what).to_owned())))
    };
    let by_dtype = || {
        let tensor = tensors().find(|tensor| is_quantized(tensor.dtype))?;
        Some((tensor, tensor.dtype.to_string()))
    };
    let (tensor, what) = by_comfy().or_else(by_name).or_else(by_dtype)?;
    let message =
        format!("the weights are quantised ({what}), so there is nothing lossless to gain");
    Some(
        Error::new(Code::Quantized, message)
            .in_tensor(&tensor.name)
            .hint("Use the BF16 file of the model."),
    )
}

/// The format that a `comfy_quant` tensor names.
fn comfy_format(source: &Source, tensor: &TensorInfo) -> Option<String> {
    if tensor.bytes() > MAX_COMFY_QUANT_BYTES {
        return None;
    }
    let mut text = vec![0; tensor.bytes() as usize];
    source.read(&mut text, tensor.start).ok()?;
    let quant: ComfyQuant = serde_json::from_slice(&text).ok()?;
    Some(quant.format)
}

fn is_quantized(dtype: Dtype) -> bool {
    matches!(
        dtype,
        Dtype::F4
            | Dtype::F6_E2M3
            | Dtype::F6_E3M2
            | Dtype::F8_E4M3
            | Dtype::F8_E5M2
            | Dtype::F8_E8M0
            | Dtype::F8_E4M3FNUZ
            | Dtype::F8_E5M2FNUZ
            | Dtype::I8
    )
}
