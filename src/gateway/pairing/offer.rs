//! Pairing the other way round: an approver offers a code, an enforcer claims it, and that approver
//! completes it. A claim gives no routing token.

use crate::gateway::PairingService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::{Approver, Enforcer};
use crate::gateway::pairing::service::InitiatedPairing;
use crate::protocol::pairing::{InitiatePairing, PairingCode};
use crate::store::pairing::offer::ClaimedOffer;
use crate::store::pairing::session::SessionOwner;

/// Longer than that of a code which an enforcer shows: it is carried to another machine.
const OFFER_SECONDS: u64 = 1_800;

impl PairingService {
    pub async fn offer_pairing(&self, caller: &Approver) -> Result<InitiatedPairing> {
        let approver = caller.bound.as_ref().ok_or(Error::Forbidden {
            pointer: None,
            expected: "a credential that is bound to one approver",
        })?;
        let (tenant, actor) = (&caller.origin.tenant, caller.actor(approver));
        let owner = SessionOwner::Approver(approver);
        self.begin(tenant, &actor, owner, OFFER_SECONDS).await
    }

    /// Claims an offered code. Each claim counts as a wrong code before it is looked at, so that a
    /// guesser over its limit learns nothing.
    pub async fn claim_pairing(
        &self,
        caller: &Enforcer,
        code: Option<PairingCode>,
        request: &InitiatePairing,
    ) -> Result<ClaimedOffer> {
        caller.acting(Some(request.enforcer.clone()), "/enforcerId")?;
        let tenant = &caller.origin.tenant;
        self.presence.seen(tenant, &request.enforcer);
        self.guess(&caller.origin, None, None).await?;
        let hash = self.secret.code_hash(tenant, code.ok_or(Error::NotFound)?);
        let actor = caller.actor(&request.enforcer);
        let offer = self
            .store
            .claim_offer(&actor, tenant, &hash, request)
            .await?;
        let offer = offer.ok_or(Error::NotFound)?;
        if offer.is_first {
            return Ok(offer);
        }
        Err(Error::Taken {
            pointer: "/pairingCode",
        })
    }
}
