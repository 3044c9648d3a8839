//! An enforcer and the devices of an approver, each with a profile of its own.

use std::time::Duration;

use countersign::client::approver::{Approver, ApproverChoice, EnrolmentProgress, InboxRequest};
use countersign::client::enforcer::{AcceptedApproval, ApprovalDenial, ApprovalRequest, Enforcer};
use countersign::client::profile::{
    ApproverProfile, EnforcerProfile, GatewayProfile, Profile, ProfileError, ProfileFile,
    SecretText,
};
use countersign::client::random;
use countersign::e2e::{
    ArtifactHints, DecisionScope, DeviceKeys, DeviceName, EnforcerKeys, PairingLink, ReceivedAnswer,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, EnforcerId, TextId as _};
use countersign::store::identity::credential::RoleName;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::{Cluster, until};

pub const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway, and a place for profiles.
pub struct ClientScene {
    pub cluster: Cluster,
    pub directory: TempDir,
}

impl ClientScene {
    pub async fn start() -> Self {
        Self::with(Cluster::start(1).await)
    }

    pub fn with(cluster: Cluster) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { cluster, directory }
    }

    /// The profile of this name, where the commands look for it too.
    pub fn file(&self, name: &str) -> ProfileFile {
        let directory = self.directory.path().join("countersign");
        ProfileFile::at(directory.join(format!("{name}.toml")))
    }

    async fn gateway(&self, role: RoleName, id: &str, urls: Vec<String>) -> GatewayProfile {
        let tenant = &self.cluster.tenant;
        GatewayProfile {
            urls,
            ca: None,
            allow_http: false,
            tenant: tenant.to_string(),
            api_key: SecretText::new(self.cluster.key(tenant, role, Some(id)).await),
        }
    }

    pub async fn enforcer(&self, id: &str) -> Enforcer {
        self.enforcer_at(id, self.cluster.urls()).await
    }

    pub async fn enforcer_at(&self, id: &str, urls: Vec<String>) -> Enforcer {
        let gateway = self.gateway(RoleName::Enforcer, id, urls).await;
        let keys = EnforcerKeys::generate(&mut random).unwrap();
        let name = EnforcerId::parse(id).unwrap();
        let profile = EnforcerProfile::new(&name, &keys, gateway);
        let file = self.file(id);
        file.update(|whole: &mut Profile| {
            whole.enforcer = Some(profile);
            Ok::<_, ProfileError>(())
        })
        .unwrap();
        Enforcer::open(&file, &self.cluster.clock).unwrap()
    }

    /// A device of an approver, not yet in force. Its profile has the device's name.
    pub async fn device_at(&self, id: &str, name: &str, urls: Vec<String>) -> Approver {
        let gateway = self.gateway(RoleName::Approver, id, urls).await;
        let keys = DeviceKeys::generate(&mut random).unwrap();
        let (approver, device) = (ApproverId::parse(id), DeviceName::parse(name));
        let profile = ApproverProfile::new(&approver.unwrap(), &keys, &device.unwrap(), gateway);
        let file = self.file(name);
        file.update(|whole: &mut Profile| {
            whole.approver = Some(profile);
            Ok::<_, ProfileError>(())
        })
        .unwrap();
        Approver::open(&file, &self.cluster.clock).unwrap()
    }

    pub async fn device(&self, id: &str, name: &str) -> Approver {
        self.device_at(id, name, self.cluster.urls()).await
    }

    /// The first device of an approver, in force.
    pub async fn approver(&self, id: &str, name: &str) -> Approver {
        let approver = self.device(id, name).await;
        assert!(matches!(
            approver.enrol().await.unwrap(),
            EnrolmentProgress::InForce
        ));
        approver
    }

    /// The same device through other addresses.
    pub fn through(&self, name: &str, urls: Vec<String>) -> Approver {
        let file = self.file(name);
        file.update(|whole: &mut Profile| {
            whole.approver.as_mut().unwrap().gateway.urls = urls;
            Ok::<_, ProfileError>(())
        })
        .unwrap();
        Approver::open(&file, &self.cluster.clock).unwrap()
    }
}

/// An address that refuses connections as long as the socket is kept: it is bound, and does not
/// listen.
pub fn refusing() -> (socket2::Socket, String) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, format!("http://{address}"))
}

/// Answers each connection with this text.
pub async fn answers(text: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4_096];
            let _ = socket.read(&mut buffer).await;
            let _ = socket.write_all(text.as_bytes()).await;
            // Keeps it open, as one that falls silent would.
            tokio::spawn(
                async move { while socket.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {} },
            );
        }
    });
    url
}

/// Pairs by the link. Both sides have pinned the other then.
pub async fn pair(enforcer: &mut Enforcer, approver: &mut Approver) {
    let attempt = enforcer
        .begin_pairing(Some("build machine"), None)
        .await
        .unwrap();
    let link = PairingLink::parse(&attempt.link("https://page.example.org")).unwrap();
    approver.pair_by_link(&link).await.unwrap();
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (received, pairing) = completed.split();
    let ReceivedAnswer::Proven(device) = received else {
        panic!("a link proves");
    };
    enforcer.pin(&device, pairing).unwrap();
}

pub fn command(words: &[&str]) -> Map<String, Value> {
    let payload = json!({
        "kind": "command", "argv": words, "program": "/usr/bin/git", "directory": "/work",
    });
    payload.as_object().unwrap().clone()
}

pub fn question(payload: Map<String, Value>) -> ApprovalRequest {
    ApprovalRequest {
        artifact_type: "command.review".to_owned(),
        repository: "repo:acme/widgets".to_owned(),
        payload,
        members: Map::new(),
        approver: None,
        timeout: Duration::from_secs(600),
        submit_timeout: PATIENCE,
    }
}

/// An enforcer that waits for a decision.
pub struct Asking {
    pub request_id: String,
    waiting: JoinHandle<(Enforcer, Result<AcceptedApproval, ApprovalDenial>)>,
}

/// Asks, and goes on once the request is in the approver's inbox.
pub async fn ask(mut enforcer: Enforcer, question: ApprovalRequest, approver: &Approver) -> Asking {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let waiting = tokio::spawn(async move {
        let outcome = match enforcer.prepare(question).await {
            Ok(mut pending) => {
                sender.send(pending.request_id().to_string()).unwrap();
                pending.decision(|| {}).await
            }
            Err(denial) => Err(denial),
        };
        (enforcer, outcome)
    });
    let request_id = receiver.await.expect("it was prepared");
    until("the request is in the inbox", PATIENCE, async || {
        !approver.find(&request_id).await.unwrap().is_empty()
    })
    .await;
    Asking {
        request_id,
        waiting,
    }
}

impl Asking {
    /// The item as this device sees it.
    pub async fn item(&self, approver: &Approver) -> InboxRequest {
        let mut found = approver.find(&self.request_id).await.unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Its process ends; the request stays.
    pub fn kill(self) {
        self.waiting.abort();
    }

    /// The enforcer's result.
    pub async fn end(self) -> (Enforcer, Result<AcceptedApproval, ApprovalDenial>) {
        let ended = tokio::time::timeout(PATIENCE, self.waiting).await;
        ended.expect("a decision").unwrap()
    }
}

pub fn choice(verdict: Verdict) -> ApproverChoice {
    ApproverChoice {
        verdict,
        scope: DecisionScope::Once,
        lasts: None,
        hints: ArtifactHints::default(),
    }
}

pub fn because(verdict: Verdict, reason: &str) -> ApproverChoice {
    ApproverChoice {
        hints: ArtifactHints {
            reason: Some(reason.to_owned()),
            ..ArtifactHints::default()
        },
        ..choice(verdict)
    }
}
