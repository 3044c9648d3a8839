//! Client certificates: who is let in, and whom a certificate stands for.

use std::time::Duration;

use countersign::config::{ClientAuth, Config};
use countersign::gateway::identity::administration::CredentialRequest;
use countersign::protocol::credential::{CredentialKind, CredentialProfile, RoleName};
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::support::push::Socket;
use crate::support::tls::{Authority, Conversation, Files, Pair, TlsClient};
use crate::support::{Answer, Cluster, Enforcer, request_id, sealed, until};

/// A node that asks for client certificates.
struct Site {
    servers: Authority,
    clients: Authority,
    cluster: Cluster,
    _files: Files,
}

impl Site {
    async fn start(auth: ClientAuth) -> Self {
        Self::with(1, auth, |_| {}).await
    }

    async fn with(nodes: usize, auth: ClientAuth, change: impl Fn(&mut Config)) -> Self {
        let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
        let files = Files::with(&servers.server());
        let cluster = Cluster::with(nodes, |config| {
            files.configure_clients(config, auth, &clients);
            change(config);
        })
        .await;
        Self {
            servers,
            clients,
            cluster,
            _files: files,
        }
    }

    fn url(&self) -> &str {
        &self.cluster.nodes[0].url
    }

    /// A client that shows this, or nothing.
    fn client<'a>(&'a self, shown: Option<&'a Pair>) -> TlsClient<'a> {
        let client = TlsClient::trusting(&self.servers);
        match shown {
            Some(pair) => client.showing(pair),
            None => client,
        }
    }

    /// A call on a new connection; nothing if the node did not let it in.
    async fn get(&self, shown: Option<&Pair>, path: &str) -> Option<Answer> {
        self.client(shown).get(self.url(), path, &[]).await.ok()
    }
}

const INBOX: &str = "/v1/approvers/alice/inbox";

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_asked_for_as_configured() {
    for (auth, without) in [
        (ClientAuth::None, Some(200)),
        (ClientAuth::Optional, Some(200)),
        (ClientAuth::Required, None),
    ] {
        let site = Site::start(auth).await;
        let answer = site.get(None, "/livez").await;
        assert_eq!(answer.map(|answer| answer.status), without, "{auth:?}");
        let good = site.clients.client();
        let answer = site.get(Some(&good), "/livez").await;
        answer.expect("it is let in").expect(200);
        // Asked for or not, an unknown one is nobody.
        let answer = site.get(Some(&good), INBOX).await;
        answer.unwrap().refused(401, "UNAUTHENTICATED");
        let status = site.get(Some(&good), "/v1/status").await.unwrap().json();
        let named = status["authentication"].as_array().unwrap();
        assert_eq!(
            named.contains(&json!("mutualTls")),
            auth != ClientAuth::None,
            "{named:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_does_not_verify_is_not_let_in() {
    let stranger = Authority::new("clients");
    for auth in [ClientAuth::Optional, ClientAuth::Required] {
        let site = Site::start(auth).await;
        for (what, pair) in [
            ("of another authority", stranger.client()),
            ("expired", site.clients.expired_client()),
            ("a server's", site.clients.server()),
            ("of the servers' authority", site.servers.client()),
        ] {
            for version in [&TLS12, &TLS13] {
                let client = site.client(Some(&pair)).speaking(version);
                let answer = client.get(site.url(), "/livez", &[]).await;
                assert!(answer.is_err(), "{what}, {auth:?}: {answer:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_certificate_acts_as_its_identity_and_no_other() {
    let site = Site::start(ClientAuth::Required).await;
    let (alice, bot) = (site.clients.client(), site.clients.client());
    site.cluster.bind(&alice, RoleName::Approver, "alice").await;
    site.cluster
        .bind(&bot, RoleName::Enforcer, "build-bot")
        .await;
    for version in [&TLS12, &TLS13] {
        let client = site.client(Some(&alice)).speaking(version);
        let stream = client.connect(site.url()).await.unwrap();
        let mut calls = Conversation::over(stream).await.unwrap();
        for _ in 0..2 {
            calls.get(INBOX, &[]).await.unwrap().expect(200);
            let answer = calls.get("/v1/approvers/bob/inbox", &[]).await;
            answer.unwrap().refused(403, "FORBIDDEN");
            let answer = calls.get("/platform/v1/credentials", &[]).await;
            answer.unwrap().refused(403, "FORBIDDEN");
        }
    }
    let answer = site.get(Some(&bot), INBOX).await;
    answer.unwrap().refused(403, "FORBIDDEN");
    let answer = site.get(Some(&bot), "/platform/v1/exchanges").await;
    answer.unwrap().expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_counts_before_the_certificate_even_if_it_is_bad() {
    let site = Site::start(ClientAuth::Optional).await;
    let alice = site.clients.client();
    site.cluster.bind(&alice, RoleName::Approver, "alice").await;
    let tenant = &site.cluster.tenant;
    let key = site.cluster.key(tenant, RoleName::Approver, Some("bob"));
    let key = key.await;
    let client = site.client(Some(&alice));
    let ask = async |path: &str, name: &str, value: &str| {
        let answer = client.get(site.url(), path, &[(name, value)]).await;
        answer.unwrap()
    };
    let bearer = format!("Bearer {key}");
    for (name, value) in [("authorization", &bearer), ("x-api-key", &key)] {
        ask("/v1/approvers/bob/inbox", name, value)
            .await
            .expect(200);
        ask(INBOX, name, value).await.refused(403, "FORBIDDEN");
    }
    for (name, value) in [
        ("authorization", "Bearer csk_none_none"),
        ("authorization", "Bearer"),
        ("authorization", "Basic YWxpY2U6c2VjcmV0"),
        ("authorization", "Something else"),
        ("authorization", ""),
        ("x-api-key", "nonsense"),
        ("x-api-key", ""),
        ("sec-websocket-protocol", "countersign, bearer.nonsense"),
    ] {
        let answer = ask(INBOX, name, value).await;
        answer.refused(401, "UNAUTHENTICATED");
    }
    let answer = ask(INBOX, "sec-websocket-protocol", "countersign").await;
    answer.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_certificate_ends_on_every_node_with_its_channels() {
    let site = Site::with(2, ClientAuth::Required, |_| {}).await;
    let alice = site.clients.client();
    let credential = site.cluster.bind(&alice, RoleName::Approver, "alice").await;
    let (mut sockets, mut open) = (Vec::new(), Vec::new());
    for url in site.cluster.urls() {
        let stream = site.client(Some(&alice)).connect(&url).await.unwrap();
        sockets.push(Socket::over(stream, "approver", "alice").await.unwrap());
        let stream = site.client(Some(&alice)).connect(&url).await.unwrap();
        let mut calls = Conversation::over(stream).await.unwrap();
        calls.get(INBOX, &[]).await.unwrap().expect(200);
        open.push(calls);
    }
    let administration = &site.cluster.administration;
    let revoked = administration.revoke_credential(&credential);
    revoked.await.unwrap();
    let ending = async {
        for socket in &mut sockets {
            assert_eq!(socket.closed().await, 1008);
        }
        for calls in &mut open {
            while calls.get(INBOX, &[]).await.unwrap().status != 401 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    timeout(Duration::from_secs(5), ending)
        .await
        .expect("within 5 s");
    let stream = site.client(Some(&alice)).connect(site.url()).await.unwrap();
    let refused = Socket::over(stream, "approver", "alice").await;
    assert_eq!(refused.err(), Some(401));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_bound_after_it_was_refused_is_known_at_once() {
    let site = Site::start(ClientAuth::Required).await;
    let alice = site.clients.client();
    let answer = site.get(Some(&alice), INBOX).await;
    answer.unwrap().refused(401, "UNAUTHENTICATED");
    site.cluster.bind(&alice, RoleName::Approver, "alice").await;
    site.get(Some(&alice), INBOX).await.unwrap().expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_pushed_over_wss_and_over_an_encrypted_event_stream() {
    let site = Site::start(ClientAuth::Optional).await;
    let (alice, bot) = (site.clients.client(), site.clients.client());
    site.cluster.bind(&alice, RoleName::Approver, "alice").await;
    site.cluster
        .bind(&bot, RoleName::Enforcer, "build-bot")
        .await;
    let stream = site.client(Some(&alice)).connect(site.url()).await.unwrap();
    let mut socket = Socket::over(stream, "approver", "alice").await.unwrap();
    let mut events = site.client(Some(&alice)).connect(site.url()).await.unwrap();
    let ask = b"GET /v1/sse/approvers/alice HTTP/1.1\r\nHost: test\r\n\r\n";
    events.write_all(ask).await.unwrap();

    // The enforcer submits over its own socket, as its certificate says it may.
    let stream = site.client(Some(&bot)).connect(site.url()).await.unwrap();
    let mut submitting = Socket::over(stream, "enforcer", "build-bot").await.unwrap();
    let enforcer = Enforcer {
        client: site.cluster.client(None),
        id: "build-bot".into(),
    };
    let request = request_id();
    let submission = enforcer.submission(&request, "alice", sealed());
    submitting.send(&submission).await;
    submitting.expect_type("artifact.accepted").await;

    let pushed = socket.expect_type("approval.request").await;
    assert_eq!(pushed["requestId"], request.as_str());
    let mut text = String::new();
    let reading = async {
        let mut buffer = vec![0; 16 << 10];
        while !(text.contains("event: approval.request") && text.contains(&request)) {
            let count = events.read(&mut buffer).await.unwrap();
            assert!(count > 0, "it ended: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    timeout(Duration::from_secs(10), reading)
        .await
        .expect("it is pushed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_ends_when_its_credential_does() {
    let site = Site::start(ClientAuth::Required).await;
    let alice = site.clients.client();
    let later = site.cluster.clock.now().inner() + Duration::from_secs(60);
    let request = CredentialRequest {
        role: RoleName::Approver,
        bound_id: None,
        unbound: true,
        kind: CredentialKind::Certificate,
        profile: CredentialProfile::Strict,
        expires_at: Some(later.into()),
    };
    let cluster = &site.cluster;
    cluster.bind_as(&cluster.tenant, &alice, request).await;
    site.get(Some(&alice), INBOX).await.unwrap().expect(200);
    site.cluster.pass(Duration::from_secs(61));
    until("it has ended", Duration::from_secs(5), async || {
        site.get(Some(&alice), INBOX).await.unwrap().status == 401
    })
    .await;
}
