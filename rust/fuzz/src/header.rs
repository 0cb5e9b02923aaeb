//! A header of any bytes is read or refused without a panic, and what is read the safetensors crate reads too.

use df11_file::header;

use crate::input::Input;

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let data_bytes = input.number();
    let json = input.0;
    if header::parse(json, data_bytes).is_ok() {
        let file = [&(json.len() as u64).to_le_bytes(), json].concat();
        header::check_with_reference(&file, data_bytes).expect("the reference reads it too");
    }
}
