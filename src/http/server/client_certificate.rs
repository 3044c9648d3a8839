//! Reads client certificates. TLS, or the proxy that terminated it, has verified them.

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::gateway::identity::authenticate::ClientCertificate;

/// Nothing if it is no certificate: one that cannot be read stands for nobody.
pub fn read(der: &[u8]) -> Option<ClientCertificate> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let expires_at = certificate.validity().not_after.timestamp();
    let expires_at = OffsetDateTime::from_unix_timestamp(expires_at).ok()?;
    Some(ClientCertificate {
        thumbprint: Sha256::digest(der).into(),
        expires_at: expires_at.into(),
    })
}
