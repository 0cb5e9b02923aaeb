//! The `config.json` of a model folder: read once, kept as text, never written.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    error::{Code, Error, Result},
    plan::CONFIG_KEY,
};

/// Its name, in both layouts.
pub const NAME: &str = "config.json";
/// Longest that is read; real ones have some kilobytes.
const MAX_BYTES: u64 = 1 << 20;

/// A model's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file's text.
    pub text: Arc<str>,
    /// Its members.
    pub members: Arc<Map<String, Value>>,
}

impl Config {
    /// The configuration in `folder`; none where it has none.
    ///
    /// # Errors
    /// `E_CONFIG` where it is no JSON object; `E_READ`.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let stat = match fs::metadata(&path) {
            Ok(stat) => stat,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(&path, &error)),
        };
        let fault = |message: String| {
            Error::new(Code::Config, message)
                .hint("Download the file again.")
                .at_path(&path)
        };
        if !stat.is_file() || stat.len() > MAX_BYTES {
            return Err(fault("this is no configuration of a model".to_owned()));
        }
        let bytes = fs::read(&path).map_err(|error| Error::read(&path, &error))?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| fault("it is not text in UTF-8".to_owned()))?;
        let config = Self::parse(&text);
        config.map(Some).map_err(|error| error.at_path(&path))
    }

    /// A configuration from its text.
    ///
    /// # Errors
    /// `E_CONFIG` where it is no JSON object.
    pub fn parse(text: &str) -> Result<Self> {
        let members = serde_json::from_str(text).map_err(|error| {
            Error::new(Code::Config, format!("it is no JSON object: {error}"))
                .hint("Download the file again.")
        })?;
        Ok(Self {
            text: text.into(),
            members: Arc::new(members),
        })
    }

    /// Whether it is that of a DF11 model.
    pub fn is_df11(&self) -> bool {
        self.members.contains_key(CONFIG_KEY)
    }
}
