//! Adding a device from a device: this one shows a link, the new one joins by it and sends its
//! request through the gateway, and a person compares digits on both screens.

use std::time::Duration;

use reqwest::Url;
use serde_json::json;

use super::join::InvitationLink;
use super::role::{Approver, POLL_PAUSE};
use crate::address::{is_loopback, parse_url};
use crate::error::{ClientError, Result};
use crate::gateway::GatewayCall;
use crate::random::random;
use crate::retry::poll;
use countersign_e2e::{
    ComparisonDigits, DeviceInvitation, DeviceLink, DigitComparison, EndorsementRequest,
};
use countersign_protocol::pairing::Nonce;
use zeroize::Zeroizing;

/// The link for a new device, while it can be used.
pub struct DeviceOffer {
    invitation: String,
    link: DeviceLink,
    /// The address of the page, as the gateway says.
    page: Option<Url>,
}

impl DeviceOffer {
    /// The whole link, for the person who adds a device. It leads to `page`, unless that is on this
    /// machine, where no other device finds it.
    pub fn expose(&self, page: &str) -> Zeroizing<String> {
        let is_local = Url::parse(page).is_ok_and(|page| is_loopback(&page));
        match &self.page {
            Some(told) if is_local => self.link.expose(told.as_str()),
            _ => self.link.expose(page),
        }
    }
}

impl Approver {
    /// Begins to add a device: the new one opens the link of the offer within ten minutes.
    pub async fn invite_device(&self) -> Result<DeviceOffer> {
        let own = self.device_id();
        let invitation = DeviceInvitation::new(&self.tenant, &self.id, self.now(), own)?;
        let signed = invitation.sign(&self.keys)?;
        let call = GatewayCall::post(self.path(&["invitations"]), signed.to_text());
        let answer = self.access.call(&call, &[201]).await?.json()?;
        let text = |member: &str| answer[member].as_str().unwrap_or_default();
        let code = Nonce::parse(text("code")).ok_or_else(|| ClientError::answer("a code"))?;
        Ok(DeviceOffer {
            invitation: text("invitationId").to_owned(),
            link: DeviceLink::generate(code, own, &mut random)?,
            page: parse_url(text("page"), false).ok(),
        })
    }

    /// Waits until a new device has joined by the link and sent its request. `None` if none has
    /// within `time`. Nothing is added before a person has compared the digits.
    pub async fn wait_for_device(
        &self,
        offer: &DeviceOffer,
        time: Duration,
    ) -> Result<Option<DigitComparison<EndorsementRequest>>> {
        let call = GatewayCall::get(self.path(&["invitations", &offer.invitation]));
        let sent = poll(POLL_PAUSE, time, Option::is_some, async || {
            let answer = self.access.call(&call, &[200]).await?.json()?;
            let text = |member: &str| answer[member].as_str().map(str::to_owned);
            Ok(text("request").zip(text("proof")))
        });
        let Some((request, proof)) = sent.await? else {
            return Ok(None);
        };
        Ok(Some(offer.link.receive(&request, &proof)?))
    }

    /// Ends the offer, for a person who does not recognise the new device: the gateway revokes the
    /// credential that it got.
    pub async fn decline_device(&self, offer: &DeviceOffer) -> Result<()> {
        let path = self.path(&["invitations", &offer.invitation]);
        let call = GatewayCall::delete(path, String::new());
        self.access.call(&call, &[204]).await.map(drop)
    }

    /// On a new device that joined by the link of another one: sends the request to be added there.
    /// The other device has to show the same digits.
    pub async fn ask_inviter(&self, invitation: &InvitationLink) -> Result<ComparisonDigits> {
        let (Some(link), Some(id)) = (invitation.device(), &self.invitation) else {
            return Err(ClientError::Invitation);
        };
        let listed = self.devices().await?.bundles;
        let own = (&self.keys, &self.bundle);
        let answer = link.request(&self.tenant, &self.id, own, self.now(), &listed)?;
        let body = json!({ "request": answer.request, "proof": answer.proof }).to_string();
        let call = GatewayCall::put(self.path(&["invitations", id]), body);
        self.access.call(&call, &[200]).await?;
        Ok(answer.digits)
    }
}
