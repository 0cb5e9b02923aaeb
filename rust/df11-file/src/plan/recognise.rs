//! Sources that are something else than a BF16 checkpoint, recognised by names and dtypes.

use safetensors::Dtype;

use crate::{
    error::{Code, Error},
    header::Header,
};

/// Name endings that quantisers leave.
const MARKERS: [&str; 4] = [
    ".comfy_quant",
    ".scale_weight",
    ".weight_scale",
    "scaled_fp8",
];

/// The refusal of a file whose model, the tensors under `prefix`, is compressed or quantised already. What lies beside it is left out
/// anyway.
pub fn refusal(header: &Header, prefix: &str) -> Option<Error> {
    let tensors = || {
        header
            .tensors
            .iter()
            .filter(|tensor| tensor.name.starts_with(prefix))
    };
    let ends = |suffix: &str| tensors().find(|tensor| tensor.name.ends_with(suffix));
    if let (Some(tensor), Some(_)) = (ends(".encoded_exponent"), ends(".sign_mantissa")) {
        let error = Error::new(Code::AlreadyDf11, "the file already is a DFloat11 file")
            .in_tensor(&tensor.name);
        return Some(error.hint("Load it with a DFloat11 loader as it is."));
    }
    let quantized = |what: String, tensor: &str| {
        Error::new(
            Code::Quantized,
            format!("the weights are quantised ({what}), so there is nothing lossless to gain"),
        )
        .in_tensor(tensor)
        .hint("Use the BF16 file of the model.")
    };
    if let Some(tensor) = tensors().find(|tensor| is_quantized(tensor.dtype)) {
        return Some(quantized(tensor.dtype.to_string(), &tensor.name));
    }
    let marked = MARKERS
        .iter()
        .find_map(|marker| Some((marker, ends(marker)?)));
    marked.map(|(marker, tensor)| {
        quantized(
            format!("marked by {}", marker.trim_start_matches('.')),
            &tensor.name,
        )
    })
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
