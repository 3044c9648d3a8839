//! Values that are never printed.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ConfigError;

/// A value that never appears in logs or error messages.
#[derive(Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the value from the file that `key` names, if it names one. It is an error if the value
    /// is set directly, too.
    pub(super) fn read(
        &mut self,
        key: &'static str,
        path: Option<&Path>,
    ) -> Result<(), ConfigError> {
        // An empty path unsets what an earlier layer set.
        let Some(path) = path.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(());
        };
        let invalid = |problem| Err(ConfigError::invalid(key, problem));
        if !self.is_empty() {
            let value = key.trim_end_matches("_file");
            return invalid(format!("{value} is set too; set one of them"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::File {
            key,
            path: path.to_owned(),
            error,
        })?;
        text.trim_end_matches(['\r', '\n']).clone_into(&mut self.0);
        if self.is_empty() {
            return invalid(format!("{} is empty", path.display()));
        }
        Ok(())
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if self.0.is_empty() {
            "(none)"
        } else {
            "(redacted)"
        };
        f.write_str(shown)
    }
}
