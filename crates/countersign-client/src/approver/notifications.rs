//! Notifications of this approver about waiting requests, as the gateway lists them.

use serde::Deserialize;
use serde_json::json;

use super::role::Approver;
use crate::error::{ClientError, Result};
use crate::gateway::GatewayCall;

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
    /// Only if the gateway has just created it.
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

impl Approver {
    /// Calls the gateway, and reads its answer.
    async fn read<T>(&self, call: &GatewayCall, expected: &[u16]) -> Result<T>
    where
        T: for<'de> Deserialize<'de>,
    {
        let answer = self.access.call(call, expected).await?;
        serde_json::from_slice(&answer.body).map_err(ClientError::answer)
    }

    pub async fn notifications(&self) -> Result<NotificationList> {
        let call = GatewayCall::get(self.path(&["notifications"]));
        self.read(&call, &[200]).await
    }

    /// Adds a webhook, or enables the one that has this URL.
    pub async fn add_webhook(&self, url: &str) -> Result<AddedWebhook> {
        let body = json!({ "kind": "webhook", "url": url }).to_string();
        let call = GatewayCall::post(self.path(&["notifications"]), body);
        self.read(&call, &[200, 201]).await
    }

    pub async fn remove_notification(&self, id: &str) -> Result<()> {
        let call = GatewayCall::delete(self.path(&["notifications", id]), "");
        self.access.call(&call, &[204]).await.map(drop)
    }

    pub async fn test_notification(&self, id: &str) -> Result<TestedNotification> {
        let call = GatewayCall::post(self.path(&["notifications", id, "test"]), "").once();
        self.read(&call, &[200]).await
    }
}
