//! Notifications of approvers: what browsers and webhooks are sent, when, and how often; who may
//! say where; and what is refused.

mod access;
mod delivery;
mod failures;
mod input;
pub mod receiver;
mod vectors;

use std::time::Duration;

use countersign::config::Config;
use serde_json::{Value, json};

use self::receiver::{Browser, Receiver};
use crate::support::devices::{Device, Owner};
use crate::support::{Answer, Approver, Client, Cluster, Enforcer, request_id, sealed, until};

/// Where the approver of these tests is notified.
pub const PATH: &str = "/v1/approvers/alice/notifications";

pub struct NotificationScene {
    pub cluster: Cluster,
    pub owner: Owner,
    pub alice: Approver,
    pub admin: Client,
    pub bot: Enforcer,
    pub receiver: Receiver,
}

/// Short pauses, and receivers on loopback.
pub fn quick(config: &mut Config) {
    config.notifications.allow = vec!["127.0.0.0/8".parse().unwrap()];
    config.notifications.pause_seconds = 0;
    config.notifications.retry_seconds = 1;
    config.notifications.sweep_ms = 200;
}

impl NotificationScene {
    pub async fn new(nodes: usize) -> Self {
        Self::with(nodes, |_| {}).await
    }

    pub async fn with(nodes: usize, change: impl Fn(&mut Config)) -> Self {
        let cluster = Cluster::with(nodes, |config| {
            quick(config);
            change(config);
        })
        .await;
        Self {
            owner: Owner::new(&cluster.tenant, "alice"),
            alice: cluster.approver("alice").await,
            admin: cluster.admin().await,
            bot: cluster.enforcer("bot").await,
            receiver: Receiver::start().await,
            cluster,
        }
    }

    /// Waits until the sweep has looked for targets again and nothing is being sent, so that a
    /// missing notification was not only late.
    pub async fn settled(&self) {
        self.cluster.sweeps("notifications", 3).await;
        let claimed = "select count(*) from notifications where claim is not null";
        until(
            "nothing is being sent",
            Duration::from_secs(10),
            async || self.cluster.database.number(claimed).await == 0,
        )
        .await;
    }

    pub async fn post(&self, body: &Value) -> Answer {
        self.alice.client.post(PATH, body).await
    }

    pub fn webhook(&self, path: &str) -> Value {
        json!({ "kind": "webhook", "url": format!("{}{path}", self.receiver.url) })
    }

    pub fn push(&self, device: &Device, browser: &Browser, path: &str) -> Value {
        let endpoint = format!("{}{path}", self.receiver.url);
        json!({ "kind": "webpush", "deviceId": device.id(), "endpoint": endpoint, "keys": browser.keys() })
    }

    /// Adds a webhook, and returns its id and its secret.
    pub async fn add_webhook(&self, path: &str) -> (String, String) {
        let added = self.post(&self.webhook(path)).await.expect(201).json();
        let text = |name: &str| added[name].as_str().unwrap().to_owned();
        (text("notificationId"), text("secret"))
    }

    pub async fn list(&self) -> Value {
        self.alice.client.get(PATH).await.expect(200).json()
    }

    pub async fn only_line(&self) -> Value {
        let list = self.list().await;
        let lines = list["notifications"].as_array().unwrap();
        assert_eq!(lines.len(), 1, "{list}");
        lines[0].clone()
    }

    pub async fn submit(&self) -> String {
        let request = request_id();
        let submitted = self.bot.submit(&request, "alice", sealed()).await;
        submitted.expect(202);
        request
    }

    /// Waits until what was sent has been written down, however often.
    pub async fn noted(&self, count: i64) {
        let sql =
            "select coalesce(sum(delivered), 0)::bigint from notifications where claim is null";
        until("it is noted", Duration::from_secs(20), async || {
            self.cluster.database.number(sql).await >= count
        })
        .await;
    }

    pub async fn audit(&self) -> String {
        let sql = "select coalesce(string_agg(concat_ws(' ', action, subject, detail, actor), '|' order by at, event_id), '')
                     from audit_events where action like 'notification.%'";
        self.cluster.database.text(sql).await
    }
}
