//! The people of the tests: one enforcer, and the devices of one approver.

use countersign_e2e::{
    ArtifactContext, ArtifactHints, Ciphertext, DecisionContent, DecisionScope, DeviceBundle,
    DeviceKeys, DeviceName, DeviceStatement, DeviceTrust, EnforcerBundle, EnforcerKeys, Error,
    Introduction, IntroductionClaims, OpenedArtifact, OwnRequest, PairingClaims, PairingSecret,
    PinnedDevice, PinnedEnforcer, PlainArtifact, RandomSource, ReceivedAnswer, SealPurpose,
    SignedIntroduction, SignedStatement, answer_by_link, open_artifact, receive_answer,
    seal_artifact,
};
use countersign_e2e::{AuthenticOffer, Fingerprint, StatementChange};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{ApproverId, EnforcerId, TenantId, TextId as _};
use countersign_protocol::json::{self, JsonNode};
use countersign_protocol::pairing::Nonce;
use countersign_protocol::timestamp::Timestamp;
use sha2::{Digest as _, Sha256};

/// Known bytes in place of random ones, different for each name, and a record of what was drawn.
pub struct Known {
    name: &'static str,
    pub drawn: Vec<Vec<u8>>,
}

impl RandomSource for Known {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        for (place, chunk) in bytes.chunks_mut(32).enumerate() {
            let text = format!("{} {} {place}", self.name, self.drawn.len());
            chunk.copy_from_slice(&Sha256::digest(text)[..chunk.len()]);
        }
        self.drawn.push(bytes.to_vec());
        Ok(())
    }
}

pub fn known(name: &'static str) -> Known {
    let drawn = Vec::new();
    Known { name, drawn }
}

pub fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub fn now() -> Timestamp {
    time("2026-02-21T12:01:00Z")
}

pub fn tenant() -> TenantId {
    TenantId::parse("acme").unwrap()
}

pub fn alice() -> ApproverId {
    ApproverId::parse("alice").unwrap()
}

pub fn bot() -> EnforcerId {
    EnforcerId::parse("build-bot").unwrap()
}

pub fn nonce() -> Nonce {
    Nonce::from_bytes([7; 32])
}

pub fn device(name: &'static str) -> (DeviceKeys, DeviceBundle) {
    let keys = DeviceKeys::generate(&mut known(name)).unwrap();
    let bundle = DeviceBundle::of(&keys, DeviceName::parse(name).unwrap()).unwrap();
    (keys, bundle)
}

pub fn node(text: &str) -> JsonNode<'_> {
    json::parse(text.as_bytes()).unwrap()
}

pub const ARTIFACT: &str = r#"{"requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H", "artifactType": "command.review",
    "repoRef": "repo:acme/widgets", "createdAt": "2026-02-21T12:00:00Z", "expiresAt": "2026-02-21T12:10:00Z",
    "payload": {"argv": ["rm", "-rf", "build"], "directory": "/work"}, "artifactHashAlg": "SHA-256"}"#;

/// An enforcer paired with Alice's phone, which has added her laptop.
pub struct World {
    pub enforcer: EnforcerKeys,
    pub pinned_enforcer: PinnedEnforcer,
    pub phone: DeviceKeys,
    pub phone_bundle: DeviceBundle,
    pub laptop: DeviceKeys,
    pub laptop_bundle: DeviceBundle,
    pub trust: DeviceTrust,
    pub artifact: PlainArtifact,
}

pub fn add(by: &DeviceKeys, new: &DeviceKeys, bundle: &DeviceBundle) -> SignedStatement {
    let change = StatementChange::Add(Box::new(bundle.clone()));
    let statement = DeviceStatement::new(&tenant(), &alice(), &change, now(), by.id()).unwrap();
    let signature = statement.sign(by).unwrap();
    let possession = (by.id() != new.id()).then(|| statement.sign(new).unwrap());
    SignedStatement::new(statement, signature, possession)
}

pub fn revoke(by: &DeviceKeys, gone: &DeviceKeys) -> SignedStatement {
    let change = StatementChange::Revoke(gone.id());
    let statement = DeviceStatement::new(&tenant(), &alice(), &change, now(), by.id()).unwrap();
    let signature = statement.sign(by).unwrap();
    SignedStatement::new(statement, signature, None)
}

/// A device introduces the enforcer.
pub fn introduce(world: &World, by: &DeviceKeys) -> SignedIntroduction {
    let enforcer = (&world.pinned_enforcer, Some("build machine"));
    let claims = &IntroductionClaims::default();
    let introduction = Introduction::new(&tenant(), &alice(), enforcer, claims, now(), by.id());
    introduction.unwrap().sign(by).unwrap()
}

/// An enforcer and a device of Alice's, once they are paired.
pub fn paired(enforcer: &EnforcerKeys, bundle: &DeviceBundle) -> (PinnedDevice, PinnedEnforcer) {
    let offer = EnforcerBundle::new(enforcer, bot(), &mut known("offer")).unwrap();
    let secret = PairingSecret::generate(&mut known("secret")).unwrap();
    let fingerprint = Fingerprint::of(&offer).unwrap();
    let authentic = AuthenticOffer::check(offer.clone(), &fingerprint).unwrap();
    let random = &mut known("answer");
    let (answer, pinned_enforcer) = answer_by_link(
        &authentic,
        &secret,
        &nonce(),
        &alice(),
        bundle,
        &PairingClaims::default(),
        random,
    )
    .unwrap();
    let received = receive_answer(&offer, &secret, &nonce(), &alice(), answer).unwrap();
    let ReceivedAnswer::Proven(pinned) = received else {
        panic!("a proof was sent");
    };
    (pinned, pinned_enforcer)
}

pub fn world() -> World {
    let enforcer = EnforcerKeys::generate(&mut known("enforcer")).unwrap();
    let (phone, phone_bundle) = device("phone");
    let (pinned, pinned_enforcer) = paired(&enforcer, &phone_bundle);
    let mut trust = DeviceTrust::pinned(tenant(), &pinned);
    let (laptop, laptop_bundle) = device("laptop");
    trust.follow(&add(&phone, &laptop, &laptop_bundle)).unwrap();
    World {
        enforcer,
        pinned_enforcer,
        phone,
        phone_bundle,
        laptop,
        laptop_bundle,
        trust,
        artifact: PlainArtifact::complete(ARTIFACT, &mut known("salt")).unwrap(),
    }
}

impl World {
    pub fn context(&self) -> ArtifactContext {
        self.artifact.context(bot())
    }

    pub fn request(&self) -> OwnRequest {
        OwnRequest::of(&self.artifact, bot())
    }

    pub fn sealed(&self) -> Ciphertext {
        let random = &mut known("seal");
        seal_artifact(
            &self.enforcer,
            &bot(),
            &self.artifact,
            &[&self.trust],
            random,
        )
        .unwrap()
    }

    pub fn open(&self, keys: &DeviceKeys, text: &str) -> Result<OpenedArtifact, Error> {
        let node = json::parse(text.as_bytes());
        let node = node.map_err(|error| Error::Json {
            what: "the test's ciphertext",
            error,
        })?;
        let ciphertext = Ciphertext::parse(SealPurpose::Artifact, &node)?;
        open_artifact(keys, &self.pinned_enforcer, &self.context(), &ciphertext)
    }

    pub fn opened(&self) -> OpenedArtifact {
        let text = self.sealed().to_text().unwrap();
        self.open(&self.phone, &text).unwrap()
    }
}

pub fn ruling(verdict: Verdict) -> DecisionContent {
    DecisionContent {
        verdict,
        scope: DecisionScope::Once,
        expires_at: time("2026-02-21T12:10:00Z"),
        hints: ArtifactHints::default(),
    }
}
