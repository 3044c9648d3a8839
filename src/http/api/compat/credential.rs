//! API keys in the headers of the dialect: `X-PAT`, a whole key; `X-Client-Id` and
//! `X-Client-Secret`, its two parts. They take only keys of the profile `compat`. A bad one is
//! refused, whatever else the request presents.

use std::net::IpAddr;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};

use crate::gateway::Authenticator;
use crate::gateway::error::Error;
use crate::gateway::identity::authenticate::PresentedCredential;
use crate::gateway::identity::caller::Caller;
use crate::protocol::credential::ApiKey;
use crate::protocol::id::{CredentialId, TextId as _};

const PAT: &str = "X-PAT";
const CLIENT_ID: &str = "X-Client-Id";
const CLIENT_SECRET: &str = "X-Client-Secret";
pub const HEADERS: [&str; 3] = [PAT, CLIENT_ID, CLIENT_SECRET];

/// Whether a request presents a key in these headers.
pub fn is_presented(headers: &HeaderMap) -> bool {
    HEADERS.iter().any(|name| headers.contains_key(*name))
}

/// The caller of such a request. `usual` is the credential that it presents elsewhere.
///
/// The two parts of a key say who calls. A token beside them, in `X-PAT` or elsewhere, must be
/// valid too and of the same tenant. Alone, `X-PAT` says who calls, and nothing else is looked at.
pub async fn authenticate(
    authenticator: &Authenticator,
    headers: &HeaderMap,
    usual: Option<PresentedCredential<'_>>,
    from: Option<IpAddr>,
) -> Result<Caller, Error> {
    let pat = headers.get(PAT);
    let pat = pat.map(|value| PresentedCredential::Key(text(value).and_then(ApiKey::parse)));
    let parts = [headers.get(CLIENT_ID), headers.get(CLIENT_SECRET)];
    if let [None, None] = parts {
        return of_profile(authenticator.authenticate(pat.as_ref(), from).await?);
    }
    let client = PresentedCredential::Key(key_of(parts));
    let client = of_profile(authenticator.authenticate(Some(&client), from).await?)?;
    let token = match pat {
        Some(pat) => of_profile(authenticator.authenticate(Some(&pat), from).await?)?,
        None if is_beside(headers, usual.as_ref()) => {
            authenticator.authenticate(usual.as_ref(), from).await?
        }
        None => return Ok(client),
    };
    let tenant = |caller: &Caller| caller.origin().map(|origin| origin.tenant.clone());
    if tenant(&token).is_none() || tenant(&token) != tenant(&client) {
        return Err(Error::InvalidToken);
    }
    Ok(client)
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

/// The key whose two parts these are; both are needed.
fn key_of(parts: [Option<&HeaderValue>; 2]) -> Option<ApiKey<'_>> {
    let [id, secret] = parts.map(|value| value.and_then(text));
    let id = CredentialId::parse(id?)?;
    Some(ApiKey {
        id,
        secret: secret?,
    })
}

/// Whether the request presents a token elsewhere, readable or not. A certificate is none.
fn is_beside(headers: &HeaderMap, usual: Option<&PresentedCredential<'_>>) -> bool {
    match usual {
        Some(PresentedCredential::Certificate(_)) => false,
        Some(_) => true,
        None => headers.contains_key(AUTHORIZATION) || headers.contains_key("x-api-key"),
    }
}

fn of_profile(caller: Caller) -> Result<Caller, Error> {
    let origin = caller.origin();
    if origin.is_some_and(|origin| origin.profile.is_compat()) {
        Ok(caller)
    } else {
        Err(Error::InvalidToken)
    }
}
