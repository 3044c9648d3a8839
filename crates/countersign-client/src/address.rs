//! The address of a gateway: `https`, or plain `http` on this machine.

use std::net::IpAddr;

use reqwest::Url;

use crate::error::{ClientError, Result};
use crate::visible::visible;

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    match address {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// The address of a gateway. Plain `http` is refused beyond this machine, unless it is allowed.
pub fn parse_url(text: &str, allow_http: bool) -> Result<Url> {
    let refuse = |problem: &str| {
        let text = visible(text);
        Err(ClientError::Address(format!("{text}: {problem}")))
    };
    let Ok(url) = Url::parse(text) else {
        return refuse("expected an address such as https://gateway.example.org");
    };
    match url.scheme() {
        "https" => {}
        "http" if allow_http || is_loopback(&url) => {}
        "http" => {
            return refuse(
                "plain http would show the credential to the network; use https, or --allow-http if you accept that",
            );
        }
        _ => return refuse("expected https://…"),
    }
    if url.host_str().is_none()
        || !url.username().is_empty()
        || url.query().is_some()
        || url.fragment().is_some()
        || url.password().is_some()
    {
        return refuse("expected only a host, an optional port and an optional path");
    }
    Ok(url)
}
