//! Which certificates prove that the other side is the gateway.

use std::path::Path;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::error::{ClientError, Result};

/// With the root certificates in `ca`, or else the system's (those in `SSL_CERT_FILE`, if set).
/// Without encryption none are loaded, which saves time.
pub(super) fn config(encrypted: bool, ca: Option<&Path>) -> Result<ClientConfig> {
    let refused = |problem: String| ClientError::Address(problem);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(error.to_string()))?;
    let builder = match ca {
        Some(file) => {
            let unreadable = |error: &dyn std::fmt::Display| {
                refused(format!("the certificates in {}: {error}", file.display()))
            };
            let mut roots = RootCertStore::empty();
            let certificates =
                CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                (roots.add(certificate)).map_err(|error| unreadable(&error))?;
            }
            if roots.is_empty() {
                return Err(unreadable(&"there are none"));
            }
            builder.with_root_certificates(roots)
        }
        None if encrypted => (builder.with_native_roots())
            .map_err(|error| refused(format!("the system's root certificates: {error}")))?,
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}
