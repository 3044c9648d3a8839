//! Why a gateway cannot be reached, as a person can act on it.

use std::error::Error;

use crate::error::ClientError;
use crate::visible::visible;

pub(super) fn unreachable(url: &str, error: &reqwest::Error) -> ClientError {
    ClientError::Unreachable {
        url: url.to_owned(),
        cause: other_scheme(url, error).unwrap_or_else(|| cause_of(error)),
    }
}

/// What to say if the other side speaks `http` instead of `https`, or the other way round.
pub(super) fn other_scheme(url: &str, error: &reqwest::Error) -> Option<String> {
    if let Some(rest) = url.strip_prefix("https://") {
        let is_plain = |it: &rustls::Error| matches!(it, rustls::Error::InvalidMessage(_));
        let has_answered = has_cause(error, is_plain);
        return has_answered
            .then(|| format!("it does not use TLS; if that is intended, use http://{rest}"));
    }
    let rest = url.strip_prefix("http://")?;
    let has_answered = has_cause(error, hyper::Error::is_parse);
    has_answered.then(|| format!("it does not speak plain HTTP; use https://{rest}"))
}

/// Whether the other side's certificate is not one to trust, which no second attempt changes.
pub(super) fn is_untrusted(error: &reqwest::Error) -> bool {
    has_cause(error, |it| {
        matches!(it, rustls::Error::InvalidCertificate(_))
    })
}

fn has_cause<E: Error + 'static>(error: &reqwest::Error, is: impl Fn(&E) -> bool) -> bool {
    causes(error).any(|cause| cause.downcast_ref().is_some_and(&is))
}

/// From the outermost on. An I/O error does not name its contents as its source.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&cause| {
        let inner = cause.downcast_ref().and_then(std::io::Error::get_ref);
        let inner = inner.map(|inner| inner as &(dyn Error + 'static));
        inner.or_else(|| cause.source())
    })
}

/// The innermost cause, such as "Connection refused". The layers around it only repeat that a
/// request failed.
pub(super) fn cause_of(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    visible(&cause.to_string())
}
