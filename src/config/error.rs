//! The errors of a configuration.

use std::path::PathBuf;

use figment::Source;
use figment::error::Kind;

use super::environment::variable;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read, or a value has the wrong type.
    #[error(transparent)]
    Unreadable(Box<figment::Error>),
    #[error("{place} sets {key}, which does not exist; did you mean {nearest}?")]
    UnknownKey {
        /// A file or a variable.
        place: String,
        key: String,
        nearest: String,
    },
    /// A file that a key names cannot be read.
    #[error("{key}: cannot read {}: {error}", path.display())]
    File {
        key: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{key}: {problem}")]
    Invalid { key: &'static str, problem: String },
}

impl ConfigError {
    pub(crate) fn invalid(key: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::Invalid { key, problem }
    }
}

impl From<figment::Error> for ConfigError {
    /// Names the nearest key where one is unknown.
    fn from(error: figment::Error) -> Self {
        let Kind::UnknownField(name, known) = &error.kind else {
            return Self::Unreadable(Box::new(error));
        };
        let likeness = |key: &&&str| strsim::jaro_winkler(name, key);
        let nearest = known
            .iter()
            .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        let mut near = error.path.clone();
        if let (Some(last), Some(nearest)) = (near.last_mut(), nearest) {
            (*nearest).clone_into(last);
        }
        let metadata = error.metadata.as_ref();
        let source = metadata.and_then(|data| data.source.as_ref());
        let (place, nearest) = match source {
            Some(Source::File(file)) => (file.display().to_string(), near.join(".")),
            _ => (variable(&error.path), variable(&near)),
        };
        Self::UnknownKey {
            place,
            key: error.path.join("."),
            nearest,
        }
    }
}
