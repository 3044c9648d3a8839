//! Client certificates of others, bound by who does not hold them.

mod codes;
mod presented;

use std::time::Duration;

use countersign::config::{ClientAuth, Config};
use countersign::protocol::credential::RoleName;
use countersign::protocol::error::Error;
use countersign::protocol::id::{CredentialId, TenantId, TextId as _};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::push::Socket;
use crate::support::tls::{Authority, Conversation, Files, Pair, TlsClient};
use crate::support::{Answer, Cluster, until};

const CREDENTIALS: &str = "/platform/v1/credentials";
const CERTIFICATES: &str = "/platform/v1/certificates";

/// A node that trusts one authority for the clients of two tenants.
struct Site {
    servers: Authority,
    clients: Authority,
    files: Files,
    cluster: Cluster,
    /// The second tenant.
    hostile: TenantId,
}

impl Site {
    async fn start() -> Self {
        Self::with(|_, _, _| {}).await
    }

    async fn with(change: impl Fn(&mut Config, &Files, &Authority)) -> Self {
        let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
        let files = Files::with(&servers.server());
        let cluster = Cluster::with(1, |config| {
            files.configure_clients(config, ClientAuth::Optional, &clients);
            change(config, &files, &clients);
        })
        .await;
        let hostile = cluster.administration.create_tenant("hostile").await;
        Self {
            servers,
            clients,
            files,
            hostile: hostile.unwrap(),
            cluster,
        }
    }

    fn url(&self) -> &str {
        &self.cluster.nodes[0].url
    }

    fn showing<'a>(&'a self, pair: &'a Pair) -> TlsClient<'a> {
        TlsClient::trusting(&self.servers).showing(pair)
    }

    /// A call by an administrator of a tenant.
    async fn administers(&self, tenant: &TenantId, path: &str, body: &Value) -> Answer {
        let key = self.cluster.key(tenant, RoleName::Admin, None).await;
        let stream = TlsClient::trusting(&self.servers).connect(self.url()).await;
        let mut calls = Conversation::over(stream.unwrap()).await.unwrap();
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str())];
        calls
            .call("POST", path, &headers, Some(body))
            .await
            .unwrap()
    }

    /// A credential that waits for the certificate of an enforcer: its id and its code.
    async fn pending(&self, tenant: &TenantId) -> (String, Value) {
        let body = json!({ "role": "enforcer", "boundId": "build-bot", "kind": "certificate" });
        let made = self.administers(tenant, CREDENTIALS, &body).await;
        let made = made.expect(201).json();
        let id = made["credentialId"].as_str().unwrap().to_owned();
        (id, json!({ "code": made["code"] }))
    }

    async fn bind(&self, pair: &Pair, code: &Value) -> Answer {
        let holder = self.showing(pair);
        let answer = holder.post(self.url(), CERTIFICATES, code).await;
        answer.unwrap()
    }

    async fn revoke(&self, id: &str) {
        let id = CredentialId::parse(id).unwrap();
        let administration = &self.cluster.administration;
        let revoked = administration.revoke_credential(&id);
        revoked.await.unwrap();
    }

    /// The credential that a certificate stands for, by the trace that a call of it leaves.
    async fn stands_for(&self, pair: &Pair) -> Option<String> {
        let body = json!({ "enforcerId": "build-bot" });
        let path = "/v1/pairing/initiate";
        let answer = self.showing(pair).post(self.url(), path, &body).await;
        let answer = answer.unwrap();
        if answer.status == 401 {
            return None;
        }
        answer.expect(200);
        let principal = "select principal from audit_events where action = 'pairing.initiated'
                          order by at desc, event_id desc limit 1";
        Some(self.cluster.database.text(principal).await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn binding_the_public_thumbprint_of_another_tenants_certificate() {
    let site = Site::start().await;
    let bot = site.clients.client();
    let thumbprint: String = bot.thumbprint().map(|byte| format!("{byte:02x}")).concat();
    let body = json!({ "role": "enforcer", "kind": "certificate", "thumbprint": thumbprint });
    let answer = site.administers(&site.hostile, CREDENTIALS, &body).await;
    answer.refused_at(400, "VALIDATION", "/thumbprint");
    // A credential that waits for its certificate takes nobody's.
    for _ in 0..3 {
        site.pending(&site.hostile).await;
    }
    assert_eq!(site.stands_for(&bot).await, None);

    let (ours, code) = site.pending(&site.cluster.tenant).await;
    let bound = site.bind(&bot, &code).await.expect(200).json();
    let expected = json!({
        "credentialId": ours, "tenantId": site.cluster.tenant.as_str(), "role": "enforcer", "boundId": "build-bot",
    });
    assert_eq!(bound, expected);
    assert_eq!(site.stands_for(&bot).await, Some(ours));
}

#[tokio::test(flavor = "multi_thread")]
async fn keeping_a_certificate_that_was_bound_before_anyone_had_to_present_it() {
    let site = Site::start().await;
    let bot = site.clients.client();
    let (theirs, _) = site.pending(&site.hostile).await;
    let thumbprint: String = bot.thumbprint().map(|byte| format!("{byte:02x}")).concat();
    // As the release before stored it.
    let taken = format!(
        "update credentials set thumbprint = decode('{thumbprint}', 'hex'), code_hash = null, code_expires_at = null
          where credential_id = '{theirs}'"
    );
    site.cluster.database.run(&taken).await;
    assert_eq!(site.stands_for(&bot).await, Some(theirs.clone()));
    let mut channel = {
        let stream = site.showing(&bot).connect(site.url()).await.unwrap();
        Socket::over(stream, "enforcer", "build-bot").await.unwrap()
    };

    let (ours, code) = site.pending(&site.cluster.tenant).await;
    site.bind(&bot, &code).await.expect(200);
    until("it is the owner's", Duration::from_secs(5), async || {
        site.stands_for(&bot).await == Some(ours.clone())
    })
    .await;
    assert_eq!(channel.closed().await, 1008, "the thief's channel ends");
    let audited = format!(
        "select string_agg(concat_ws(' ', action, actor, principal, address), ', ' order by at)
           from audit_events where subject = '{theirs}' and action <> 'credential.created'"
    );
    let audited = site.cluster.database.text(&audited).await;
    assert_eq!(audited, "credential.revoked certificate holder");
    let audited = format!(
        "select concat_ws(' ', actor, principal, address) from audit_events
          where subject = '{ours}' and action = 'credential.bound'"
    );
    let audited = site.cluster.database.text(&audited).await;
    assert_eq!(audited, format!("certificate holder {ours} 127.0.0.1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn having_a_bound_certificate_present_a_code_of_another_tenant() {
    let site = Site::start().await;
    let bot = site.clients.client();
    let (ours, code) = site.pending(&site.cluster.tenant).await;
    site.bind(&bot, &code).await.expect(200);
    let (theirs, lure) = site.pending(&site.hostile).await;
    let answer = site.bind(&bot, &lure).await;
    let answer = answer.refused(409, "ALREADY_EXISTS");
    assert!(!answer.text.contains(&ours) && !answer.text.contains(&theirs));
    assert_eq!(site.stands_for(&bot).await, Some(ours.clone()));

    // Its own tenant can let it go.
    site.revoke(&ours).await;
    site.bind(&bot, &lure).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn using_a_code_again_late_or_without_a_certificate() {
    let site = Site::start().await;
    let (bot, other) = (site.clients.client(), site.clients.client());
    let (id, code) = site.pending(&site.cluster.tenant).await;
    let refused = async |pair: &Pair, code: &Value| {
        let answer = site.bind(pair, code).await;
        answer.refused_at(401, "UNAUTHENTICATED", "/code");
    };
    let nobody = TlsClient::trusting(&site.servers);
    let answer = nobody.post(site.url(), CERTIFICATES, &code).await.unwrap();
    let answer = answer.refused(401, "UNAUTHENTICATED");
    assert!(answer.detail("expected").is_string(), "{answer:?}");
    let text = code["code"].as_str().unwrap();
    for wrong in [
        String::new(),
        text.replace("csc_", "csk_"),
        text[..text.len() - 1].to_owned(),
        text.replace(&id, "unknown"),
        format!("csc_{id}_{}", "x".repeat(43)),
    ] {
        refused(&bot, &json!({ "code": wrong })).await;
    }
    site.bind(&bot, &code).await.expect(200);
    // The answer may have been lost: the same again is the same.
    site.bind(&bot, &code).await.expect(200);
    refused(&other, &code).await;

    let (_, code) = site.pending(&site.cluster.tenant).await;
    site.cluster.pass(Duration::from_secs(3_601));
    refused(&other, &code).await;
    let (id, code) = site.pending(&site.cluster.tenant).await;
    site.revoke(&id).await;
    refused(&other, &code).await;
    let (_, code) = site.pending(&site.hostile).await;
    let administration = &site.cluster.administration;
    administration.disable_tenant(&site.hostile).await.unwrap();
    refused(&other, &code).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_for_one_code_with_many_certificates() {
    let site = Site::start().await;
    let administration = &site.cluster.administration;
    for _ in 0..5 {
        let (_, code) = site.pending(&site.cluster.tenant).await;
        let code = code["code"].as_str().unwrap();
        let pairs: Vec<Pair> = (0..8).map(|_| site.clients.client()).collect();
        let outcomes = join_all(pairs.iter().map(async |pair| {
            let thumbprint = pair.thumbprint();
            administration.bind_certificate(code, &thumbprint).await
        }))
        .await;
        let bound = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(bound, 1, "{outcomes:?}");
        let mut refused = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        assert!(
            refused.all(|error| matches!(error, Error::CodeRefused)),
            "{outcomes:?}"
        );
    }
    // And one certificate with many codes.
    let pair = site.clients.client();
    let mut codes = Vec::new();
    for _ in 0..8 {
        codes.push(site.pending(&site.cluster.tenant).await.1);
    }
    let outcomes = join_all(codes.iter().map(async |code| {
        let code = code["code"].as_str().unwrap();
        let thumbprint = pair.thumbprint();
        administration.bind_certificate(code, &thumbprint).await
    }))
    .await;
    let bound = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(bound, 1, "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slipping_in_when_a_certificate_is_renewed() {
    let site = Site::start().await;
    let (old, renewed, stranger) = (
        site.clients.client(),
        site.clients.client(),
        site.clients.client(),
    );
    let (id, first) = site.pending(&site.cluster.tenant).await;
    site.bind(&old, &first).await.expect(200);
    let path = format!("{CREDENTIALS}/{id}/code");
    let answer = site.administers(&site.hostile, &path, &json!({})).await;
    answer.refused(404, "NOT_FOUND");
    let issued = site
        .administers(&site.cluster.tenant, &path, &json!({}))
        .await;
    let code = json!({ "code": issued.expect(201).json()["code"] });
    // Until the new certificate is bound, by its code and no other, the old one is valid and the
    // new one nobody's.
    site.bind(&stranger, &first)
        .await
        .refused(401, "UNAUTHENTICATED");
    assert_eq!(site.stands_for(&renewed).await, None);
    assert_eq!(site.stands_for(&old).await, Some(id.clone()));
    site.bind(&renewed, &code).await.expect(200);
    assert_eq!(site.stands_for(&renewed).await, Some(id));
    until(
        "the old one has ended",
        Duration::from_secs(5),
        async || site.stands_for(&old).await.is_none(),
    )
    .await;
    for used in [&first, &code] {
        site.bind(&stranger, used)
            .await
            .refused(401, "UNAUTHENTICATED");
    }
}
