//! Pairings in force: lists them for their two sides, and revokes them.

use serde::Serialize;

use crate::gateway::PairingService;
use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::caller::{EnforcerOrApprover, Member};
use crate::gateway::page::{ListPage, PageRequest};
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::pairing::{Nonce, RoutingToken};
use crate::protocol::timestamp::Timestamp;
use crate::store::pairing::pairings::PairingSide;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairingLine {
    pub enforcer_id: EnforcerId,
    pub approver_id: ApproverId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_public_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_public_key: Option<String>,
    /// The team that it follows from. Then it has no token, and ends with the team's pairing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
    /// None if the pairing was made under another cluster secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_token: Option<RoutingToken>,
    pub paired_at: Timestamp,
}

impl PairingService {
    /// Derives the token of a pairing again; `None` if it was made under another cluster secret.
    pub(in crate::gateway) fn token_again(
        &self,
        tenant: &TenantId,
        nonce: &Nonce,
        enforcer: &EnforcerId,
        approver: &ApproverId,
        hash: &[u8],
    ) -> Option<RoutingToken> {
        let token = self.secret.routing_token(tenant, nonce, enforcer, approver);
        (token.hash() == hash).then_some(token)
    }

    /// Revokes a pairing, for either side. One that was revoked or replaced already stays so.
    pub async fn revoke_pairing(&self, caller: &Member, token: &RoutingToken) -> Result<()> {
        let side = match caller {
            Member::Enforcer(caller) => PairingSide::Enforcer(caller.bound.as_ref()),
            Member::Approver(caller) => PairingSide::Approver(caller.bound.as_ref()),
            Member::Admin(_) => return Err(Error::NotFound),
        };
        let tenant = &caller.origin().tenant;
        let (source, hash) = (caller.origin().source(), token.hash());
        let known = self.store.revoke_pairing(tenant, side, &source, &hash);
        found(known.await?)
    }

    /// The pairings in force of which the caller may act as a side, oldest first.
    pub async fn pairings(
        &self,
        caller: &EnforcerOrApprover,
        request: &PageRequest,
    ) -> Result<ListPage<PairingLine>> {
        let (side, role) = match caller {
            EnforcerOrApprover::Enforcer(caller) => {
                (PairingSide::Enforcer(caller.bound.as_ref()), "enforcer")
            }
            EnforcerOrApprover::Approver(caller) => {
                (PairingSide::Approver(caller.bound.as_ref()), "approver")
            }
        };
        let tenant = &caller.origin().tenant;
        let name = caller.bound().unwrap_or_default();
        let listing = format!("pairings\n{tenant}\n{role}\n{name}");
        let limit = self.context.page_limit(request)?;
        let after = request.after(&listing)?;
        let (found, next) = self
            .store
            .pairings(tenant, side, after.as_ref(), limit)
            .await?;
        let items = found
            .into_iter()
            .map(|pairing| PairingLine {
                routing_token: self.token_again(
                    tenant,
                    &pairing.nonce,
                    &pairing.enforcer,
                    &pairing.approver,
                    &pairing.token_hash,
                ),
                enforcer_id: pairing.enforcer,
                approver_id: pairing.approver,
                enforcer_label: pairing.label,
                workspace_name: pairing.workspace,
                enforcer_public_key: pairing.enforcer_key,
                approver_public_key: pairing.approver_key,
                team_id: pairing.team,
                paired_at: pairing.paired_at,
            })
            .collect();
        Ok(ListPage::new(&listing, items, next.as_ref()))
    }
}
