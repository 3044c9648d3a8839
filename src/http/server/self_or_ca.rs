//! Verifies client certificates: those that an authority signed, and the node's own. `countersign
//! health` presents the latter where certificates are required. No credential follows from it.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Verifies like `authorities`, and accepts `own`. The client must prove that it holds the key.
#[derive(Debug)]
pub struct SelfOrCaVerifier {
    authorities: Arc<dyn ClientCertVerifier>,
    own: Option<CertificateDer<'static>>,
}

impl SelfOrCaVerifier {
    pub fn new(
        authorities: Arc<dyn ClientCertVerifier>,
        own: Option<CertificateDer<'static>>,
    ) -> Arc<Self> {
        Arc::new(Self { authorities, own })
    }
}

impl ClientCertVerifier for SelfOrCaVerifier {
    fn offer_client_auth(&self) -> bool {
        self.authorities.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.authorities.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authorities.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.own.as_deref() == Some(end_entity.as_ref()) {
            return Ok(ClientCertVerified::assertion());
        }
        self.authorities
            .verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
