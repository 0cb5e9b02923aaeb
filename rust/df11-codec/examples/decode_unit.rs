//! Decodes one unit: `decode_unit FOLDER OUTPUT`.
//!
//! The folder holds the unit's raw tensors, one file each, named as the field; the output is little-endian BF16. Tests decode units
//! of other origin with it.

use std::{error::Error, fs, path::Path};

use df11_codec::{ChunkRun, DecodeTables};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: decode_unit FOLDER OUTPUT".into());
    };
    let field = |name: &str| {
        let path = Path::new(&folder).join(name);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let tables = DecodeTables::new(&field("luts")?)?;
    let sign_mantissa = field("sign_mantissa")?;
    let encoded_exponent = field("encoded_exponent")?;
    let unit = ChunkRun {
        first_chunk: 0,
        unit_weights: sign_mantissa.len() as u64,
        unit_bytes: encoded_exponent.len() as u64,
        encoded_exponent: &encoded_exponent,
        gaps: &field("gaps")?,
        output_positions: &field("output_positions")?,
        sign_mantissa: &sign_mantissa,
    };
    let mut weights = vec![0; 2 * sign_mantissa.len()];
    tables
        .decode_chunks(&unit, &mut weights)
        .map_err(|mismatch| format!("the unit cannot be decoded: {mismatch:?}"))?;
    fs::write(output, weights)?;
    Ok(())
}
