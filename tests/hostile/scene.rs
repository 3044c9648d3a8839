//! An enforcer that reaches its gateway only through a liar, and an approver who decides.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::approver::{Approver, ApproverChoice, EnrolmentProgress, InboxRequest};
use countersign::client::enforcer::{AcceptedApproval, ApprovalDenial, Enforcer};
use countersign::client::profile::{ApproverRecord, Profile, ProfileError};
use countersign::e2e::{DeviceKeys, EndorsementRequest};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::meddler::{Lie, Meddler, Reply, Route};
use crate::client::people::{ClientScene, PATIENCE, because, choice, command, pair, question};
use crate::commands::approver::{Ran, prepared};
use crate::support::devices::{Device, Owner};
use crate::support::{signed, until};

pub const SIGNATURE: &str = "the decision's signature does not verify under the device";
pub const UNKNOWN: &str = "is not known here; pair again, or add it from a known device";
pub const REVOKED: &str = "was revoked; it must create new keys";

/// `bot` is paired with the laptop of `alice`.
pub struct HostileScene {
    pub world: ClientScene,
    pub alice: Approver,
    /// The laptop's keys, for what only it could sign.
    pub laptop: Device,
    /// A device of the gateway itself.
    pub mallory: Device,
    pub owner: Owner,
    lie: Arc<Mutex<Lie>>,
    /// The enforcer's profile as it was after pairing.
    profile: Profile,
    pub meddler: Meddler,
}

/// One alteration, what the approver says meanwhile, and why it is denied.
pub struct Case {
    pub what: String,
    pub lie: Lie,
    pub says: Option<ApproverChoice>,
    pub timeout: Duration,
    pub cause: String,
}

impl Case {
    /// The approver approves, and the gateway lies.
    pub fn approved(what: impl Into<String>, lie: Lie, cause: &str) -> Self {
        Self {
            what: what.into(),
            lie,
            says: Some(because(Verdict::Approve, "go on")),
            timeout: Duration::from_secs(600),
            cause: cause.to_owned(),
        }
    }

    /// The approver rejects, and the gateway would have it approved.
    pub fn rejected(what: impl Into<String>, lie: Lie, cause: &str) -> Self {
        Self {
            says: Some(choice(Verdict::Reject)),
            ..Self::approved(what, lie, cause)
        }
    }

    /// The approver says nothing.
    pub fn undecided(what: impl Into<String>, lie: Lie, cause: &str) -> Self {
        Self {
            says: None,
            ..Self::approved(what, lie, cause)
        }
    }

    /// For what ends only with the time.
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
}

/// The keys of a device, from its profile.
pub fn device_of(world: &ClientScene, name: &str) -> Device {
    let profile = world.file(name).load().unwrap().approver.unwrap();
    Device {
        keys: profile.keys().unwrap(),
        bundle: profile.bundle().unwrap(),
    }
}

/// Signs the body of a decision anew, after whatever was changed in it.
pub fn sign(body: &mut Value, device: &Device) {
    body["signerKeyId"] = device.id().into();
    *body = signed(body.clone(), &device.signing_key());
}

/// A decision turned into an approval, as `device` would sign it.
pub fn approve_as(keys: &DeviceKeys) -> impl Fn(&mut Value) + Send + Sync + 'static + use<> {
    let (signing, decryption) = keys.secrets();
    move |body| {
        let keys = DeviceKeys::from_secrets(&signing, &decryption);
        let key = ed25519_dalek::SigningKey::from_bytes(&signing);
        body["decision"] = "approve".into();
        body.as_object_mut().unwrap().remove("policyHints");
        body["signerKeyId"] = keys.id().to_string().into();
        *body = signed(body.clone(), &key);
    }
}

/// Keeps decisions from the enforcer until it is released.
#[derive(Clone, Default)]
pub struct Hold(Arc<AtomicBool>);

impl Hold {
    pub fn lie(&self) -> Lie {
        let released = Arc::clone(&self.0);
        Lie::default().instead(Route::Wait, move |_| {
            (!released.load(Ordering::SeqCst)).then(|| Reply::new(204, ""))
        })
    }

    pub fn release(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl HostileScene {
    pub async fn start() -> Self {
        let world = ClientScene::start().await;
        let node = world.cluster.urls()[0].clone();
        let lie = Arc::new(Mutex::new(Lie::default()));
        let told = Arc::clone(&lie);
        let meddler = Meddler::start(&node, move |call, gateway| {
            let lie = told.lock().unwrap().clone();
            async move { lie.tell(call, gateway).await }
        })
        .await;
        let mut enforcer = (world.enforcer_at("bot", vec![meddler.url.clone()])).await;
        let mut alice = world.approver("alice", "laptop").await;
        pair(&mut enforcer, &mut alice).await;
        Self {
            profile: world.file("bot").load().unwrap(),
            laptop: device_of(&world, "laptop"),
            mallory: Device::new("mallory"),
            owner: Owner::new(&world.cluster.tenant, "alice"),
            world,
            alice,
            lie,
            meddler,
        }
    }

    pub fn lie(&self, lie: Lie) {
        *self.lie.lock().unwrap() = lie;
    }

    /// The enforcer as it was after pairing, whatever it has learned since.
    pub fn enforcer(&self) -> Enforcer {
        self.change_profile(|whole| *whole = self.profile.clone());
        self.enforcer_now()
    }

    pub fn enforcer_now(&self) -> Enforcer {
        Enforcer::open(&self.world.file("bot"), &self.world.cluster.clock).unwrap()
    }

    fn change_profile(&self, change: impl FnOnce(&mut Profile)) {
        let update = |whole: &mut Profile| {
            change(whole);
            Ok::<_, ProfileError>(())
        };
        self.world.file("bot").update(update).unwrap();
    }

    /// Changes the enforcer's record of its approver.
    pub fn remember(&mut self, change: impl FnOnce(&mut ApproverRecord)) {
        change(&mut self.profile.enforcer.as_mut().unwrap().approvers[0]);
    }

    /// Another device of alice, added by her laptop. It knows the enforcer's key by the laptop's
    /// introduction.
    pub async fn added(&self, name: &str) -> (Approver, Device) {
        let device = self.world.device("alice", name).await;
        let EnrolmentProgress::Asks(request) = device.enrol().await.unwrap() else {
            panic!("another device has to add it");
        };
        let request = EndorsementRequest::parse(&request.to_text().unwrap()).unwrap();
        self.alice.add_device(&request).await.unwrap();
        self.alice.share_enforcers().await.unwrap();
        (device, device_of(&self.world, name))
    }

    /// Another device that claims to be alice's. It knows the enforcer's key all the same.
    pub async fn unendorsed(&self, name: &str) -> Approver {
        self.world.device("alice", name).await;
        let known = self.alice.enforcers();
        let file = self.world.file(name);
        let update = |whole: &mut Profile| {
            whole.approver.as_mut().unwrap().enforcers = known;
            Ok::<_, ProfileError>(())
        };
        file.update(update).unwrap();
        Approver::open(&file, &self.world.cluster.clock).unwrap()
    }

    /// The item of a request as a device sees it, once it is there.
    pub async fn item(&self, device: &Approver, request_id: &str) -> InboxRequest {
        let found = async || device.find(request_id).await.unwrap();
        until("the request is in the inbox", PATIENCE, async || {
            !found().await.is_empty()
        })
        .await;
        found().await.remove(0)
    }

    pub async fn decide(&self, request_id: &str, says: &ApproverChoice) {
        let item = self.item(&self.alice, request_id).await;
        self.alice.decide(&item, says).await.unwrap();
    }

    /// Asks through the liar, while `deciding` gets the request's id.
    pub async fn ask_with(
        &self,
        mut enforcer: Enforcer,
        timeout: Duration,
        deciding: impl AsyncFnOnce(String),
    ) -> Result<AcceptedApproval, ApprovalDenial> {
        let (sender, receiver) = oneshot::channel();
        let asking = async move {
            let mut question = question(command(&["git", "push"]));
            question.timeout = timeout;
            let mut pending = enforcer.prepare(question).await?;
            let _gone = sender.send(pending.request_id().to_string());
            pending.decision(|| {}).await
        };
        let deciding = async {
            if let Ok(id) = receiver.await {
                deciding(id).await;
            }
        };
        tokio::pin!(asking);
        let ended = async {
            tokio::select! {
                ended = &mut asking => ended,
                () = deciding => asking.await,
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("an end")
    }

    async fn ask(&self, case: Case) -> Result<AcceptedApproval, ApprovalDenial> {
        self.lie(case.lie);
        let asking = self.ask_with(self.enforcer(), case.timeout, async |id| {
            if let Some(says) = &case.says {
                self.decide(&id, says).await;
            }
        });
        Box::pin(asking).await
    }

    /// Every case must be denied, and for its own cause.
    pub async fn all_denied(&self, cases: impl IntoIterator<Item = Case>) {
        // Without a lie the same question is approved: a denial below is due to the lie.
        let honest = Case::approved("nothing", Lie::default(), "");
        self.ask(honest).await.expect("an honest approval");
        let mut wrong = Vec::new();
        for case in cases {
            let (what, cause) = (case.what.clone(), case.cause.clone());
            match self.ask(case).await {
                Err(denial) if denial.to_string().contains(&cause) => {}
                Err(denial) => wrong.push(format!("{what}: denied, but because {denial}")),
                Ok(_) => wrong.push(format!("{what}: ACCEPTED")),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Runs `countersign run` through the liar. Whether the command ran, and how it ended.
    pub async fn run(&self, lie: Lie, deciding: impl AsyncFnOnce(String)) -> (bool, Ran) {
        self.lie(lie);
        drop(self.enforcer());
        let marker = self.world.directory.path().join("marker");
        let _none = std::fs::remove_file(&marker);
        let ids = async || -> BTreeSet<String> {
            let items = self.alice.find("").await.unwrap();
            let ids = items.iter().map(|item| item.request_id.to_string());
            ids.collect()
        };
        let before = ids().await;
        let arguments = ["run", "--timeout", "20s", "--", "touch"];
        let mut arguments = arguments.to_vec();
        arguments.push(marker.to_str().unwrap());
        let mut command = prepared(&self.world, "bot", &arguments);
        let mut running = tokio::task::spawn_blocking(move || command.output().unwrap());
        let deciding = async {
            loop {
                if let Some(id) = ids().await.difference(&before).next() {
                    break deciding(id.clone()).await;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let output = tokio::select! {
            output = &mut running => output,
            () = deciding => running.await,
        };
        (marker.exists(), output.unwrap().into())
    }

    /// The same case with the real program: it does not run the command, and says why.
    pub async fn program_denied(&self, case: Case) {
        let (what, cause) = (case.what, case.cause);
        let (ran, ended) = self
            .run(case.lie, async |id| {
                if let Some(says) = &case.says {
                    self.decide(&id, says).await;
                }
            })
            .await;
        assert!(!ran, "{what}: the command ran");
        assert_eq!(ended.code, 77, "{what}: {}", ended.err);
        assert!(ended.err.contains("denied"), "{what}: {}", ended.err);
        assert!(ended.err.contains(&cause), "{what}: {}", ended.err);
    }

    /// The pairings that the gateway has of alice.
    pub async fn pairings(&self) -> Value {
        let alice = self.world.cluster.approver("alice").await;
        let listed = alice.client.get("/v1/pairings").await.expect(200).json();
        json!(listed["items"])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_lie_the_program_runs_what_was_approved_and_not_what_was_rejected() {
    let scene = HostileScene::start().await;
    for (verdict, runs) in [(Verdict::Approve, true), (Verdict::Reject, false)] {
        let (ran, ended) = scene
            .run(Lie::default(), async |id| {
                scene.decide(&id, &choice(verdict)).await;
            })
            .await;
        assert_eq!(ran, runs, "{}", ended.err);
        assert_eq!(ended.code, if runs { 0 } else { 77 }, "{}", ended.err);
    }
}
