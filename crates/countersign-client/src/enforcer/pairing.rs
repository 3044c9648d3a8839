//! Pairing from the enforcer's side: it makes the offer, prints how to reach it, and pins the
//! device that proves to have seen it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::gateway::GatewayCall;
use crate::profile::ApproverRecord;
use crate::random::random;
use crate::retry::{RetryPause, poll};
use countersign_e2e::{
    DeviceTrust, EnforcerBundle, Fingerprint, PairingAnswer, PairingLink, PairingSecret,
    PinnedDevice, ReceivedAnswer, receive_answer,
};
use countersign_protocol::id::{ApproverId, TextId as _};
use countersign_protocol::pairing::{Nonce, PairingCode};
use countersign_protocol::timestamp::Timestamp;

const POLL_PAUSE: RetryPause = RetryPause::constant(Duration::from_millis(500));
/// The gateway may name a later end of the code.
const PAIRING_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// An attempt at pairing that waits for a device.
pub struct PairingAttempt {
    offer: EnforcerBundle,
    link: PairingLink,
    nonce: Nonce,
    expires_at: Timestamp,
}

impl PairingAttempt {
    /// For a person to type.
    pub fn code(&self) -> PairingCode {
        self.link.code
    }

    /// For a person to open, with the secret in it.
    pub fn link(&self, page: &str) -> Zeroizing<String> {
        self.link.expose(page)
    }

    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

/// The answer of a device. Nothing is pinned yet.
pub struct PairingCompletion {
    received: ReceivedAnswer,
    approver: ApproverId,
    pairing: PairingToken,
}

/// Names a pairing at the gateway, which may still have to be undone.
pub struct PairingToken(String);

impl PairingToken {
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl PairingCompletion {
    pub fn approver(&self) -> &ApproverId {
        &self.approver
    }

    pub fn split(self) -> (ReceivedAnswer, PairingToken) {
        (self.received, self.pairing)
    }
}

impl Enforcer {
    pub async fn begin_pairing(
        &self,
        label: Option<&str>,
        workspace: Option<&str>,
    ) -> Result<PairingAttempt> {
        let offer = EnforcerBundle::new(&self.keys, self.id.clone(), &mut random)?.labelled(label);
        let mut body = json!({ "enforcerId": self.id, "publicKey": offer.to_text()? });
        for (member, text) in [("enforcerLabel", label), ("workspaceName", workspace)] {
            if let Some(text) = text {
                body[member] = text.into();
            }
        }
        let call = GatewayCall::post("/v1/pairing/initiate", body.to_string());
        let answer = self.access.call(&call, &[200]).await?.json()?;
        let text = |member: &str| answer[member].as_str().unwrap_or_default();
        let expected = || ClientError::answer("a code, a nonce and when they expire");
        Ok(PairingAttempt {
            link: PairingLink {
                code: PairingCode::parse(text("code")).ok_or_else(expected)?,
                secret: PairingSecret::generate(&mut random)?,
                fingerprint: Fingerprint::of(&offer)?,
            },
            offer,
            nonce: Nonce::parse(text("nonce")).ok_or_else(expected)?,
            expires_at: Timestamp::parse(text("expiresAt")).ok_or_else(expected)?,
        })
    }

    /// Waits until a device has answered; `None` if the code expires before. The attempt is used
    /// up, since a second answer would be a second guess.
    pub async fn wait_for_answer(
        &self,
        attempt: PairingAttempt,
    ) -> Result<Option<PairingCompletion>> {
        let nonce = attempt.nonce.as_str();
        let is_final = |status: &Value| {
            matches!(status["status"].as_str(), Some("completed" | "expired"))
                || attempt.expires_at <= self.access.now()
        };
        let status = poll(POLL_PAUSE, PAIRING_TIMEOUT, is_final, async || {
            (self.access.get(&["v1", "pairing", "status", nonce]).await?).json()
        });
        let status = status.await?;
        if status["status"] != "completed" {
            return Ok(None);
        }
        self.receive(attempt, &status).await.map(Some)
    }

    async fn receive(&self, attempt: PairingAttempt, status: &Value) -> Result<PairingCompletion> {
        let text = |member: &str| status[member].as_str().unwrap_or_default();
        let expected = || ClientError::answer("an approver and its key");
        let approver = ApproverId::parse(text("approverId")).ok_or_else(expected)?;
        // It is there while the pairing is in force.
        let Some(routing_token) = status["routingToken"].as_str().map(str::to_owned) else {
            let approver = approver.to_string();
            return Err(ClientError::Unpaired { approver });
        };
        let answer = PairingAnswer::parse(text("publicKey"));
        let received = answer.and_then(|answer| {
            let (offer, secret) = (attempt.offer, attempt.link.secret);
            receive_answer(&offer, &secret, &attempt.nonce, &approver, answer)
        });
        match received {
            Ok(received) => Ok(PairingCompletion {
                received,
                approver,
                pairing: PairingToken(routing_token),
            }),
            Err(error) => {
                // The gateway may be the one that interferes: nothing here depends on whether it
                // revokes the pairing.
                let _unpaired = self.access.revoke_pairing(&routing_token).await;
                Err(error.into())
            }
        }
    }

    /// Pins the device of a completed pairing. To be called once its proof was right, or a person
    /// has compared the digits.
    pub fn pin(
        &mut self,
        device: &PinnedDevice,
        PairingToken(routing_token): PairingToken,
    ) -> Result<()> {
        let (now, tenant) = (self.access.now(), self.tenant.clone());
        let mut record = ApproverRecord {
            id: device.approver().to_string(),
            paired_at: now.to_string(),
            routing_token,
            checked_at: String::new(),
            devices: Vec::new(),
            revoked: Vec::new(),
            added_by: BTreeMap::new(),
        };
        self.update(|profile| {
            if let Some(operators) = device.operators() {
                profile.add_operators(operators);
            }
            let records = &mut profile.approvers;
            let trust = match records.iter().find(|known| known.id == record.id) {
                // Paired again: revoked devices stay revoked, and devices in force stay in force.
                Some(known) => {
                    let mut trust = known.trust(tenant)?;
                    trust.pin(device)?;
                    trust
                }
                None => DeviceTrust::pinned(tenant, device),
            };
            record.remember(&trust, now)?;
            // So that the other devices of the approver are found before the first request.
            record.checked_at.clear();
            records.retain(|known| known.id != record.id);
            records.push(record);
            Ok(())
        })
    }

    /// Gives up a pairing whose digits differ.
    pub async fn abort(&self, PairingToken(token): PairingToken) -> Result<()> {
        self.access.revoke_pairing(&token).await
    }
}
