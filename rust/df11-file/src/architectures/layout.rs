//! How a model is stored: what its source is, and which of the official tool's outputs a loader expects.

use serde::{Deserialize, Serialize};

/// What a model's `config.json` says.
pub type Config = serde_json::Map<String, serde_json::Value>;

/// How models of an architecture are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One file under the names of ComfyUI's modules.
    #[default]
    Comfyui,
    /// A diffusers model folder; DF11 as a folder with a shard for each unit.
    Diffusers,
    /// A diffusers model folder; DF11 as one file.
    DiffusersSingle,
    /// A transformers model folder; DF11 as a folder with a shard for each unit.
    Transformers,
}
