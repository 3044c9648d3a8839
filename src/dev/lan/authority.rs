//! The certificate authority of `dev --lan`. Phones trust it, so its name constraints let it sign
//! for addresses of private networks only: its key is worth nothing for any site of the internet.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};
use time::{Duration, OffsetDateTime};
use x509_parser::parse_x509_certificate;

use crate::dev::private_file::write_private;
use countersign::clock::Clock;

/// A phone has to trust a new authority once a year.
const AUTHORITY_LIFETIME: Duration = Duration::days(365);
/// Each start issues a new one.
const CERTIFICATE_LIFETIME: Duration = Duration::days(60);
/// The clock of a phone may be behind.
const CLOCK_GRACE: Duration = Duration::days(1);

/// The networks that addresses may be in: RFC 1918, link-local, loopback; RFC 4193, loopback.
const NETWORKS_V4: [([u8; 4], u8); 5] = [
    ([10, 0, 0, 0], 8),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
    ([169, 254, 0, 0], 16),
    ([127, 0, 0, 0], 8),
];
const NETWORKS_V6: [(u128, u8); 2] = [(0xfc << 120, 7), (1, 128)];
/// No name ends like this (RFC 6761). Without a permitted name, all names would be permitted.
const NO_NAME: &str = "invalid";

pub struct LanAuthority {
    /// The file with its certificate, in PEM.
    pub file: PathBuf,
    /// The certificate, in DER.
    pub certificate: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl LanAuthority {
    /// The kept one, or a new one if there is none or it is about to expire.
    pub fn open(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let (file, key_file) = (directory.join("ca.crt"), directory.join("ca.key"));
        let now = Clock::system().now().inner();
        if let (Ok(certificate), Ok(key)) = (
            CertificateDer::from_pem_file(&file),
            std::fs::read_to_string(&key_file),
        ) && let Ok(key) = KeyPair::from_pem(&key)
            && expires_at(&certificate) > Some(now + CERTIFICATE_LIFETIME)
        {
            return Ok(Self {
                file,
                certificate: certificate.to_vec(),
                issuer: Issuer::new(parameters(now), key),
            });
        }
        let key = KeyPair::generate()?;
        let parameters = parameters(now);
        let certificate = parameters.self_signed(&key)?;
        write_private(&key_file, key.serialize_pem().as_bytes())?;
        write_private(&file, certificate.pem().as_bytes())?;
        Ok(Self {
            file,
            certificate: certificate.der().to_vec(),
            issuer: Issuer::new(parameters, key),
        })
    }

    /// Writes a certificate for this address, and its key.
    pub fn issue(&self, address: IpAddr, certificate: &Path, key: &Path) -> anyhow::Result<()> {
        let now = Clock::system().now().inner();
        let mut parameters = CertificateParams::new(vec![address.to_string()])?;
        // Not a common name: OpenSSL would take it for a host, which is not permitted.
        parameters.distinguished_name = DistinguishedName::new();
        (parameters.distinguished_name).push(DnType::OrganizationName, "Countersign dev");
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.use_authority_key_identifier_extension = true;
        parameters.not_before = now - CLOCK_GRACE;
        parameters.not_after = now + CERTIFICATE_LIFETIME;
        let own_key = KeyPair::generate()?;
        let made: Certificate = parameters.signed_by(&own_key, &self.issuer)?;
        write_private(key, own_key.serialize_pem().as_bytes())?;
        write_private(certificate, made.pem().as_bytes()).context("the certificate of --lan")
    }

    /// SHA-256 of the certificate, as phones show it.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(&self.certificate);
        let pairs: Vec<_> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }
}

fn parameters(now: OffsetDateTime) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let host = nix::unistd::gethostname().ok();
    let host = host.and_then(|name| name.into_string().ok());
    let name = format!(
        "Countersign dev on {}",
        host.as_deref().unwrap_or("this machine")
    );
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let v4 = NETWORKS_V4.map(|(start, prefix)| CidrSubnet::from_v4_prefix(start, prefix));
    let v6 =
        NETWORKS_V6.map(|(start, prefix)| CidrSubnet::from_v6_prefix(start.to_be_bytes(), prefix));
    let addresses = v4.into_iter().chain(v6).map(GeneralSubtree::IpAddress);
    let none = GeneralSubtree::DnsName(NO_NAME.to_owned());
    parameters.name_constraints = Some(NameConstraints {
        permitted_subtrees: addresses.chain([none]).collect(),
        excluded_subtrees: Vec::new(),
    });
    parameters.not_before = now - CLOCK_GRACE;
    parameters.not_after = now + AUTHORITY_LIFETIME;
    parameters
}

fn expires_at(certificate: &CertificateDer<'_>) -> Option<OffsetDateTime> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.to_datetime())
}
