//! `[page]`: the page of the approvers.

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::oidc::Oidc;
use super::require::require;

section! {
    Page {
        /// Whether nodes serve it, at `/`.
        enabled: bool = true,
        /// Its public URL, for links; `server.listen`, if empty.
        url: String = String::new(),
        oidc: Oidc = Oidc::default(),
    }
}

impl Page {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let host = ["https://", "http://"]
            .iter()
            .find_map(|scheme| self.url.strip_prefix(scheme));
        let is_url = host.is_some_and(|rest| {
            !rest.is_empty()
                && !rest.starts_with('/')
                && rest
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'?')
        });
        require(
            self.url.is_empty() || is_url,
            "page.url",
            "must be a URL such as https://approve.example.com, without a query and without #",
        )
    }
}
