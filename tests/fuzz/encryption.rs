//! Checks of arbitrary bundles and ciphertexts: each reading ends, never panics, has one spelling,
//! and nothing that was not made with the keys is ever opened, followed or accepted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::e2e::{
    ArtifactContext, Ciphertext, DeviceBundle, DeviceId, DeviceKeys, DeviceName, DeviceTrust,
    EndorsementRequest, EnforcerBundle, EnforcerKeys, Error, OwnRequest, PairingAnswer,
    PairingLink, PinnedEnforcer, PlainArtifact, PlainPrompt, SealPurpose, SignedIntroduction,
    SignedStatement, accept, open_artifact,
};
use super::subject::canonical::Sha256Hex;
use super::subject::id::{ApproverId, EnforcerId, RequestId, TenantId, TextId};
use super::subject::json;
use super::subject::timestamp::Timestamp;

/// Bundles, answers, links and ids, as they travel and as the JSON inside them.
pub fn bundle(data: &[u8]) {
    let inside = URL_SAFE_NO_PAD.encode(data);
    let travelling = std::str::from_utf8(data);
    for text in travelling.into_iter().chain([inside.as_str()]) {
        if let Ok(bundle) = DeviceBundle::parse(text) {
            assert_eq!(bundle.to_text().as_deref(), Ok(text));
            let id = bundle.id().to_string();
            assert_eq!(DeviceId::parse(&id), Ok(bundle.id()));
        }
        if let Ok(bundle) = EnforcerBundle::parse(text) {
            assert_eq!(bundle.to_text().as_deref(), Ok(text));
        }
        if let Ok(answer) = PairingAnswer::parse(text) {
            assert_eq!(answer.to_text().as_deref(), Ok(text));
            assert!(DeviceBundle::parse(text).is_err(), "an answer is no bundle");
        }
        if let Ok(id) = DeviceId::parse(text) {
            assert_eq!(id.to_string(), text);
        }
        if let Ok(link) = PairingLink::parse(text) {
            let whole = link.expose("https://page.example");
            let again = PairingLink::parse(&whole).expect("a link that was printed");
            assert_eq!(*again.expose("https://page.example"), *whole);
        }
        if let Ok(request) = EndorsementRequest::parse(text) {
            let whole = request.link("https://page.example").expect("a link");
            assert_eq!(EndorsementRequest::parse(&whole), Ok(request));
        }
    }
}

fn id<T: TextId>(text: &str) -> T {
    T::parse(text).expect("an id")
}

/// Ciphertexts, statements, decisions and plaintexts. The keys are used nowhere else, so nothing
/// may pass.
pub fn ciphertext(data: &[u8]) {
    if let Ok(artifact) = PlainArtifact::parse(data) {
        assert_eq!(artifact.text().as_bytes(), data);
    }
    if let Ok(prompt) = PlainPrompt::parse(data) {
        assert_eq!(prompt.text().as_bytes(), data);
    }
    let Ok(node) = json::parse(data) else {
        return;
    };
    let device = DeviceKeys::from_secrets(&[1; 32], &[2; 32]);
    let enforcer = EnforcerKeys::from_secret(&[3; 32]);
    let (request_id, enforcer_id) = (id::<RequestId>("request"), id::<EnforcerId>("bot"));
    let pinned = PinnedEnforcer::from_own_records(enforcer_id.clone(), enforcer.encryption_key());
    let context = ArtifactContext {
        request_id: request_id.clone(),
        artifact_type: "command.review".to_owned(),
        artifact_hash: Sha256Hex::of(b"fuzz"),
        expires_at: "2026-02-21T12:10:00Z".to_owned(),
        enforcer_id: enforcer_id.clone(),
    };
    for purpose in [
        SealPurpose::Artifact,
        SealPurpose::Prompt,
        SealPurpose::Hints,
    ] {
        let Ok(sealed) = Ciphertext::parse(purpose, &node) else {
            continue;
        };
        let text = sealed.to_text().expect("a ciphertext that was read");
        let again = json::parse(text.as_bytes()).expect("JSON");
        assert_eq!(Ciphertext::parse(purpose, &again).as_ref(), Ok(&sealed));
        assert!(open_artifact(&device, &pinned, &context, &sealed).is_err());
    }
    let name = DeviceName::parse("fuzz").expect("a name");
    let bundle = DeviceBundle::of(&device, name).expect("a bundle");
    let (tenant, approver) = (id::<TenantId>("acme"), id::<ApproverId>("alice"));
    let known = DeviceTrust::from_own_records(tenant, approver, vec![bundle], [].into());
    if let Ok(signed) = SignedIntroduction::parse(&node) {
        let text = signed.to_text();
        let again = json::parse(text.as_bytes()).expect("JSON");
        assert_eq!(SignedIntroduction::parse(&again).as_ref(), Ok(&signed));
        assert!(signed.accept(&known).is_err());
    }
    if let Ok(signed) = SignedStatement::parse(&node) {
        let text = signed.to_text();
        let again = json::parse(text.as_bytes()).expect("JSON");
        assert_eq!(SignedStatement::parse(&again).as_ref(), Ok(&signed));
        let mut trust = known.clone();
        let _outcome = trust.follow(&signed);
        assert_eq!(trust, known, "nobody signed this");
    }
    let expires_at = Timestamp::parse("2026-02-21T12:10:00Z").expect("a time");
    let now = Timestamp::parse("2026-02-21T12:00:00Z").expect("a time");
    let request = OwnRequest {
        request_id,
        artifact_hash: Sha256Hex::of(b"fuzz"),
        repo_ref: String::new(),
        expires_at,
        enforcer_id,
    };
    let refused = accept(&node, &request, &enforcer, &[&known], now);
    assert!(!matches!(refused, Ok(_) | Err(Error::Random)));
}
