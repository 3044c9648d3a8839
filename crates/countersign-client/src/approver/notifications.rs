//! Where this approver is notified that something waits. What the gateway lists is shown as it says.

use serde::Deserialize;
use serde_json::json;

use super::{Approver, deadline};
use crate::error::ClientError;
use crate::gateway::{GatewayAnswer, GatewayCall, path};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedNotification {
    pub notification_id: String,
    pub kind: String,
    #[serde(default)]
    pub device_id: Option<String>,
    #[serde(default)]
    pub host: Option<String>,
    pub state: String,
    pub created_at: String,
    #[serde(default)]
    pub failure: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct NotificationList {
    pub enabled: bool,
    #[serde(default)]
    pub reason: Option<String>,
    pub notifications: Vec<ListedNotification>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedWebhook {
    pub notification_id: String,
    /// If the gateway has made it just now.
    #[serde(default)]
    pub secret: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct TestedNotification {
    pub delivered: bool,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub failure: Option<String>,
}

fn read<T: for<'de> Deserialize<'de>>(answer: &GatewayAnswer) -> Result<T, ClientError> {
    serde_json::from_slice(&answer.body).map_err(ClientError::answer)
}

impl Approver {
    fn notifications_path(&self, further: &[&str]) -> String {
        let parts = ["v1", "approvers", self.id.as_str(), "notifications"];
        path(&[&parts, further].concat())
    }

    pub async fn notifications(&self) -> Result<NotificationList, ClientError> {
        let call = GatewayCall::get(self.notifications_path(&[]));
        read(&self.client.expect(&call, &[200], deadline()).await?)
    }

    /// Adds a webhook, or enables the one that has this URL.
    pub async fn add_webhook(&self, url: &str) -> Result<AddedWebhook, ClientError> {
        let body = json!({ "kind": "webhook", "url": url }).to_string();
        let call = GatewayCall::post(self.notifications_path(&[]), body);
        read(&self.client.expect(&call, &[200, 201], deadline()).await?)
    }

    pub async fn remove_notification(&self, id: &str) -> Result<(), ClientError> {
        let call = GatewayCall::delete(self.notifications_path(&[id]), "");
        let removed = self.client.expect(&call, &[204], deadline()).await;
        removed.map(drop)
    }

    pub async fn test_notification(&self, id: &str) -> Result<TestedNotification, ClientError> {
        let call = GatewayCall::post(self.notifications_path(&[id, "test"]), "").once();
        read(&self.client.expect(&call, &[200], deadline()).await?)
    }
}
