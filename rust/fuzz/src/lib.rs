//! What the fuzz targets do with a target's bytes: `make fuzz` runs them, and the tests `replay` of the crates replay `seeds/`.
//!
//! Every module has a function `run` that panics where something is wrong, and takes any bytes.

pub mod check_hostile;
pub mod codec_round_trip;
pub mod header;
pub mod input;
pub mod journal;
pub mod kernels;
pub mod stored;
#[allow(dead_code)]
#[path = "../../df11-codec/tests/common/unit.rs"]
pub mod unit;
