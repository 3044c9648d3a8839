//! All that a tenant does in its life, each step on another node.

use std::time::Duration;

use countersign::protocol::id::TenantId;
use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use super::team;
use crate::support::devices::Owner;
use crate::support::push::{Socket, Stream};
use crate::support::{
    Approver, Client, Cluster, Enforcer, compact, envelope, hash_of, in_time, now, registration,
    request_id, sealed, sealed_for, signed, signing_key, until,
};

/// Its parties, and the channels they hold.
pub struct Tenant {
    id: TenantId,
    bot: Enforcer,
    alice: Approver,
    admin: Client,
    agent: Socket,
    inbox: Stream,
}

impl Tenant {
    /// Lives.
    pub async fn live(cluster: &Cluster, tenant: &TenantId) -> Self {
        let key = async |role, bound| cluster.key(tenant, role, bound).await;
        let bot = Enforcer {
            client: cluster.client(Some(&key(RoleName::Enforcer, Some("build-bot")).await)),
            id: "build-bot".into(),
        };
        let alice = Approver {
            client: cluster.client(Some(&key(RoleName::Approver, Some("alice")).await)),
            id: "alice".into(),
        };
        let admin = cluster.client(Some(&key(RoleName::Admin, None).await));
        let [first, second] = [0, 1].map(|node| cluster.nodes[node].url.clone());
        let agent = Socket::connect(&first, "enforcer", "build-bot", bot.client.key())
            .await
            .unwrap();
        let inbox = Stream::connect(&second, "approvers", "alice", alice.client.key(), None)
            .await
            .unwrap();
        let mut tenant = Self {
            id: tenant.clone(),
            bot,
            alice,
            admin,
            agent,
            inbox,
        };
        tenant.exchanges().await;
        tenant.ends().await;
        tenant.pairing().await;
        tenant.prompts().await;
        tenant.sessions().await;
        tenant.presence().await;
        tenant.platform().await;
        tenant.devices().await;
        tenant.invitations().await;
        team::live(&tenant.id, &tenant.alice.client, &tenant.bot.client).await;
        tenant.notifications().await;
        tenant
    }

    /// Submitted, pushed, decided, delivered; with a key of its own, and under a name for repeats.
    async fn exchanges(&mut self) {
        let Self { id, bot, alice, .. } = self;
        let key = registration(id, "alice", "key-1", &signing_key(1));
        let path = "/platform/v1/approvers/alice/keys/key-1";
        alice.client.put(path, &key).await.expect(200);
        let request = request_id();
        let message = bot.submission(&request, "alice", sealed());
        for replayed in [None, Some("true")] {
            let submitted = bot
                .client
                .call(Method::POST, "/v1/artifacts")
                .header("Idempotency-Key", &request)
                .json(&message)
                .send()
                .await
                .expect(202);
            assert_eq!(submitted.header("idempotency-replayed"), replayed);
        }
        let (_, pushed) = self.inbox.expect().await;
        assert_eq!(pushed["requestId"], request.as_str());
        assert_eq!(alice.inbox_ids().await, [request.as_str()]);
        let message = pushed["msgId"].as_str().unwrap();
        alice.ack(&request, message).await.expect(200);
        let decision = signed(compact("approve"), &signing_key(1));
        let decided = alice.decide(&request, decision).await.expect(200);
        assert_eq!(decided.body("/verified"), true);
        let delivered = self.agent.expect_type("decision.deliver").await;
        let waited = bot.wait(&request, 5).await.expect(200).json();
        assert_eq!(delivered["msgId"], waited["msgId"]);
        let message = waited["msgId"].as_str().unwrap();
        bot.ack(&request, message).await.expect(200);
        assert_eq!(bot.state(&request).await, "delivered");
    }

    /// Withdrawn, refreshed and cancelled, expired, removed.
    async fn ends(&mut self) {
        let Self {
            bot, alice, admin, ..
        } = self;
        let submit = async |life: u64| {
            let request = request_id();
            let body = sealed_for(Duration::from_secs(life));
            bot.submit(&request, "alice", body).await.expect(202);
            request
        };
        let withdrawn = submit(600).await;
        bot.withdraw(&withdrawn).await.expect(200);
        let cancelled = submit(600).await;
        alice.refresh(&cancelled, json!({})).await.expect(202);
        let asked = self.agent.expect_type("refresh.request").await;
        bot.ack(&cancelled, asked["msgId"].as_str().unwrap())
            .await
            .expect(200);
        let path = format!("/platform/v1/exchanges/{cancelled}/cancel");
        admin.post(&path, &json!({})).await.expect(200);
        let expired = submit(1).await;
        assert_eq!(bot.wait(&expired, 5).await.expect(204).status, 204);
        until("it is written down", Duration::from_secs(10), async || {
            alice.expired_ids().await == [expired.as_str()]
        })
        .await;
        let removed = submit(600).await;
        alice.remove(&removed).await.expect(200);
        for (request, state) in [
            (withdrawn, "withdrawn"),
            (cancelled, "cancelled"),
            (expired, "expired"),
            (removed, "pendingApproval"),
        ] {
            assert_eq!(bot.state(&request).await, state);
        }
    }

    /// By a code, after a wrong one; used; ended; and again.
    async fn pairing(&mut self) {
        let Self { bot, alice, .. } = self;
        let wrong = alice.client.get("/v1/pairing/resolve/0000-0000").await;
        wrong.refused(404, "NOT_FOUND");
        let mut tokens = Vec::new();
        for _ in 0..2 {
            let begin = json!({ "enforcerId": "build-bot", "enforcerLabel": "The bot" });
            let begun = bot.client.post("/v1/pairing/initiate", &begin).await;
            let begun = begun.expect(200).json();
            let path = format!("/v1/pairing/resolve/{}", begun["code"].as_str().unwrap());
            let resolved = alice.client.get(&path).await.expect(200).json();
            assert_eq!(resolved["enforcerLabel"], "The bot");
            let complete = json!({ "nonce": begun["nonce"], "approverId": "alice" });
            let paired = alice.client.post("/v1/pairing/complete", &complete).await;
            let token = paired.expect(200).json()["routingToken"].clone();
            let path = format!("/v1/pairing/status/{}", begun["nonce"].as_str().unwrap());
            let status = bot.client.get(&path).await.expect(200).json();
            assert_eq!(status["routingToken"], token);
            tokens.push(token);
        }
        let listed = bot.client.get("/v1/pairings").await.expect(200).json();
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
        let submit = async |token: Option<&Value>| {
            let mut body = sealed();
            if let Some(token) = token {
                body["metadata"] = json!({ "routingToken": token });
            }
            let sender = json!({ "enforcerId": "build-bot" });
            let message = envelope("artifact.submit", &request_id(), sender, body);
            bot.client.post("/v1/artifacts", &message).await
        };
        submit(Some(&tokens[0]))
            .await
            .refused(403, "PAIRING_REVOKED");
        submit(Some(&tokens[1])).await.expect(202);
        submit(None).await.expect(202);
        let revoke = json!({ "routingToken": tokens[1] });
        let revoked = alice.client.post("/v1/pairing/revoke", &revoke).await;
        revoked.expect(200);
        submit(None).await.refused(422, "NO_APPROVER");
    }

    /// Sent, pushed, acknowledged; and one that expires.
    async fn prompts(&mut self) {
        let Self { bot, alice, .. } = self;
        let send = async |expires: Option<i64>| {
            let mut prompt = json!({
                "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "agentChat",
                "text": "Why?", "promptHashAlg": "SHA-256",
            });
            if let Some(seconds) = expires {
                prompt["extensions"] =
                    json!({ "org.proto.prompt": { "expiresAt": in_time(seconds) } });
            }
            prompt["promptHash"] = json!(hash_of(&prompt.to_string(), "promptHash"));
            let id = prompt["requestId"].as_str().unwrap();
            let sender = json!({ "approverId": "alice" });
            let mut message = envelope("prompt.send", id, sender, prompt.clone());
            message["recipient"] = json!({ "enforcerId": "build-bot" });
            alice.client.post("/v1/prompt", &message).await.expect(202);
            prompt
        };
        let status = async |prompt: &Value| {
            let path = format!("/v1/prompt/{}", prompt["requestId"].as_str().unwrap());
            alice.client.get(&path).await.expect(200).json()["status"].clone()
        };
        let prompt = send(None).await;
        let pushed = self.agent.expect_type("prompt.send").await;
        assert_eq!(pushed["body"], prompt);
        let ack = json!({
            "requestId": prompt["requestId"], "promptHash": prompt["promptHash"], "status": "delivered", "ackAt": now(),
        });
        bot.client.post("/v1/prompt", &ack).await.expect(200);
        assert_eq!(status(&prompt).await, "delivered");
        let short = send(Some(2)).await;
        until("it expires", Duration::from_secs(10), async || {
            status(&short).await == "expired"
        })
        .await;
    }

    /// Started, shown, ended, read.
    async fn sessions(&mut self) {
        let Self { bot, admin, .. } = self;
        let id = request_id();
        let mut snapshot = json!({
            "sessionId": id, "eventType": "session.snapshot", "snapshotId": "s", "snapshotType": "plan",
            "createdAt": now(), "payload": { "steps": [] }, "snapshotHashAlg": "SHA-256",
        });
        snapshot["snapshotHash"] = json!(hash_of(&snapshot.to_string(), "snapshotHash"));
        let events = [
            json!({ "sessionId": id, "eventType": "session.start", "createdAt": now(), "agentHost": "h" }),
            snapshot.clone(),
            json!({ "sessionId": id, "eventType": "session.end", "endedAt": now(), "reason": "user_end" }),
            snapshot,
        ];
        for (event, duplicate) in events.iter().zip([false, false, false, true]) {
            let taken = bot.client.post("/v1/session/event", event).await;
            assert_eq!(taken.expect(202).json()["duplicate"], duplicate);
        }
        let path = format!("/v1/session/{id}");
        let read = admin.get(&path).await.expect(200).json();
        assert_eq!(read["reason"], "user_end");
        assert_eq!(read["snapshots"].as_array().unwrap().len(), 1);
    }

    /// Online and at work somewhere, seen by everyone.
    async fn presence(&mut self) {
        let hello = json!({ "msgType": "hello", "workspaceName": "widgets" });
        self.agent.send(&hello).await;
        until("it is known", Duration::from_secs(10), async || {
            let seen = self.alice.client.get("/v1/presence/enforcers").await;
            let seen = seen.expect(200).json();
            seen[0]["status"] == "online" && seen[0]["workspaceName"] == "widgets"
        })
        .await;
    }

    /// A device, after a bare key and therefore after a reset; it adds another, which is revoked.
    async fn devices(&mut self) {
        let Self {
            id, alice, admin, ..
        } = self;
        let owner = Owner::new(id, "alice");
        admin.delete(&owner.path()).await.expect(204);
        let phone = owner.first(&alice.client, "phone").await;
        let laptop = owner.another(&alice.client, &phone, "laptop").await;
        let gone = owner.revoke(&phone, laptop.keys.id());
        let revoked = owner.delete(&alice.client, &laptop.id(), &gone).await;
        revoked.expect(200);
        let listed = self.bot.client.get(&owner.path()).await.expect(200).json();
        assert_eq!(listed["statements"].as_array().unwrap().len(), 3);

        // Paired once more, and the phone introduces the enforcer.
        let begin = json!({ "enforcerId": "build-bot" });
        let begun = self.bot.client.post("/v1/pairing/initiate", &begin).await;
        let complete = json!({ "nonce": begun.expect(200).json()["nonce"], "approverId": "alice" });
        let client = &self.alice.client;
        let paired = client.post("/v1/pairing/complete", &complete).await;
        paired.expect(200);
        let key = *phone.bundle.encryption_key();
        let text = owner.introduce(&phone, "build-bot", &key, &now());
        for status in [201, 200] {
            let call = client.call(Method::POST, &owner.introductions());
            call.text(&text).send().await.expect(status);
        }
        let listed = client.get(&owner.introductions()).await.expect(200).json();
        assert_eq!(listed["introductions"].as_array().unwrap().len(), 1);
    }

    /// A webhook that cannot be reached is added and tried; another is removed.
    async fn notifications(&mut self) {
        let path = "/v1/approvers/alice/notifications";
        let client = &self.alice.client;
        let webhook = json!({ "kind": "webhook", "url": "https://localhost:1/" });
        for status in [201, 200] {
            client.post(path, &webhook).await.expect(status);
        }
        let other = json!({ "kind": "webhook", "url": "https://localhost:2/" });
        let other = client.post(path, &other).await.expect(201).json();
        let other = other["notificationId"].as_str().unwrap().to_owned();
        client.delete(&format!("{path}/{other}")).await.expect(204);
        let submitted = self.bot.submit(&request_id(), "alice", sealed()).await;
        submitted.expect(202);
        let line = async || {
            let listed = client.get(path).await.expect(200).json();
            listed["notifications"][0].clone()
        };
        until("it was tried", Duration::from_secs(20), async || {
            line().await["state"] == "failing"
        })
        .await;
        let place = format!(
            "{path}/{}",
            line().await["notificationId"].as_str().unwrap()
        );
        let test = client.call(Method::POST, &format!("{place}/test"));
        assert_eq!(test.send().await.expect(200).json()["delivered"], false);
    }

    /// Somebody is invited and joins.
    async fn invitations(&mut self) {
        let invitation = json!({ "role": "approver", "boundId": "dora" });
        let made = self
            .admin
            .post("/platform/v1/invitations", &invitation)
            .await;
        let link = made.expect(201).json()["link"].clone();
        let code = link
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned();
        let joined = self
            .bot
            .client
            .post("/v1/join", &json!({ "code": code }))
            .await;
        assert_eq!(joined.expect(201).json()["tenantId"], self.id.as_str());
    }

    /// Credentials and keys come and go; all of it is on the record.
    async fn platform(&mut self) {
        let admin = &self.admin;
        let role = json!({ "role": "enforcer", "boundId": "bot" });
        let made = admin.post("/platform/v1/credentials", &role).await;
        let id = made.expect(201).json()["credentialId"].clone();
        let path = format!("/platform/v1/credentials/{}", id.as_str().unwrap());
        admin.delete(&path).await.expect(204);
        let listed = admin.get("/platform/v1/credentials").await.expect(200);
        assert_eq!(listed.json()["items"].as_array().unwrap().len(), 4);
        let token = json!({ "tokenId": "stolen" });
        let revoked = admin.post("/platform/v1/token-revocations", &token).await;
        revoked.expect(201);
        let keys = "/platform/v1/approvers/alice/keys";
        let listed = admin.get(keys).await.expect(200).json();
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
        admin.delete(&format!("{keys}/key-1")).await.expect(204);
        let listed = admin.get("/platform/v1/exchanges").await.expect(200);
        assert_eq!(listed.json()["items"].as_array().unwrap().len(), 7);
        let audit = admin.get("/platform/v1/audit").await.expect(200).json();
        let actions: Vec<_> = audit["items"].as_array().unwrap().iter().collect();
        assert_eq!(actions[0]["action"], "tenant.created");
        assert_eq!(actions.last().unwrap()["action"], "key.revoked");
    }
}
