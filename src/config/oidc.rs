//! `[page.oidc]`: sign-in on the approvers' page with OpenID Connect. A half-finished configuration
//! is an error.

use http::Uri;
use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::require::{require, require_encrypted};

section! {
    Oidc {
        /// The provider, exactly as `issuer` in its discovery document; sign-in is off if empty.
        issuer: String = String::new(),
        /// The page's id at the provider: a public client.
        client_id: String = String::new(),
        /// The scopes to request, separated by spaces.
        scope: String = "openid offline_access".into(),
        /// The parameter `audience` of the authorization request; not sent if empty.
        audience: String = String::new(),
        /// The parameter `resource` (RFC 8707); not sent if empty.
        resource: String = String::new(),
        /// Origins of the provider's endpoints, where they differ from that of `issuer`: the page
        /// may call no others.
        origins: Vec<String> = Vec::new(),
    }
}

impl Oidc {
    pub fn is_enabled(&self) -> bool {
        !self.issuer.is_empty()
    }

    /// The origins that the page has to call: none without sign-in.
    pub fn connect_origins(&self) -> Vec<String> {
        let own = origin_of(&self.issuer);
        own.into_iter()
            .chain(self.origins.iter().cloned())
            .collect()
    }

    /// Whether the page's policy allows it to call this URL.
    pub fn may_call(&self, url: &str) -> bool {
        origin_of(url).is_some_and(|origin| self.connect_origins().contains(&origin))
    }

    /// `accepts_tokens` says whether nodes accept tokens of any provider.
    pub(super) fn validate(&self, accepts_tokens: bool) -> Result<(), ConfigError> {
        let rest = [&self.client_id, &self.audience, &self.resource];
        let is_begun = rest.into_iter().any(|value| !value.is_empty()) || !self.origins.is_empty();
        if !self.is_enabled() && !is_begun {
            return Ok(());
        }
        require(
            self.is_enabled(),
            "page.oidc.issuer",
            "is needed for sign-in",
        )?;
        require_encrypted("page.oidc.issuer", &self.issuer)?;
        require(
            origin_of(&self.issuer).is_some() && is_plain(&self.issuer, "?#"),
            "page.oidc.issuer",
            "must be a URL such as https://login.example.com/realms/acme, without a query and without #",
        )?;
        require(
            !self.client_id.is_empty() && is_plain(&self.client_id, ""),
            "page.oidc.client_id",
            "is needed for sign-in, as the provider names the page: printable ASCII without spaces",
        )?;
        let mut scopes = self.scope.split(' ');
        require(
            scopes.clone().any(|scope| scope == "openid")
                && scopes.all(|scope| !scope.is_empty() && is_plain(scope, "")),
            "page.oidc.scope",
            "must contain openid, and be separated by single spaces",
        )?;
        for (key, value) in [
            ("page.oidc.audience", &self.audience),
            ("page.oidc.resource", &self.resource),
        ] {
            require(is_plain(value, ""), key, "must be ASCII without spaces")?;
        }
        for origin in &self.origins {
            require_encrypted("page.oidc.origins", origin)?;
            require(
                origin_of(origin).as_deref() == Some(origin),
                "page.oidc.origins",
                "must be origins such as https://login.example.com, in lower case and without a path",
            )?;
        }
        require(
            accepts_tokens,
            "page.oidc.issuer",
            "needs auth.jwt_issuer or auth.introspection_url: without them nodes accept no token of the provider",
        )
    }
}

/// Printable ASCII without spaces and without the `forbidden` characters.
fn is_plain(text: &str, forbidden: &str) -> bool {
    text.chars()
        .all(|character| character.is_ascii_graphic() && !forbidden.contains(character))
}

/// The origin of a URL. It goes into a header of the page, so its host has the characters of a host
/// and no others.
fn origin_of(url: &str) -> Option<String> {
    let uri = url.parse::<Uri>().ok()?;
    let authority = uri.authority()?.as_str();
    let is_host =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte);
    authority
        .bytes()
        .all(is_host)
        .then(|| format!("{}://{authority}", uri.scheme_str().unwrap_or("https")))
}
