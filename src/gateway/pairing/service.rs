//! Pairing by code: an enforcer shows a code, an approver enters it and agrees, and both get a
//! routing token. Codes and tokens are shown to these two sides only.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::gateway::channels::presence::EnforcerPresence;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::random;
use crate::gateway::identity::caller::{Approver, CallerIdentity, Enforcer, Member};
use crate::gateway::identity::secret::ClusterSecret;
use crate::gateway::pairing::guess_limit::GuessLimiter;
use crate::protocol::error::TeamError;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::pairing::{
    CompletePairing, InitiatePairing, Nonce, PairingCode, RoutingToken,
};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::words::words;
use crate::store::PairingStore;
use crate::store::audit::AuditActor;
use crate::store::error::StoreError;
use crate::store::pairing::code::{GuessLimits, ResolveFact, ResolvedCode};
use crate::store::pairing::session::{CompleteFact, CompleteRow, SessionOwner};
use crate::store::seconds;

/// How many codes are drawn before giving up; with 2⁴⁰ of them, collisions are rare.
const DRAWS: usize = 3;
/// Stands for the hash of a text that is no code: shorter than any hash, so it matches none.
const NO_HASH: &[u8] = &[];

#[derive(Debug)]
pub struct InitiatedPairing {
    pub code: PairingCode,
    pub nonce: Nonce,
    pub expires_at: Timestamp,
}

#[derive(Debug)]
pub struct CompletedPairing {
    pub token: RoutingToken,
    pub label: Option<String>,
    pub workspace: Option<String>,
}

words! {
    PairingWord {
        /// The code has not been used.
        Pending = "pending",
        /// The code was used, but the approver has not agreed yet.
        Resolved = "resolved",
        /// The two are paired, or were.
        Completed = "completed",
        Expired = "expired",
    }
}

/// An attempt at pairing, for its initiator.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairingStatus {
    pub nonce: Nonce,
    pub status: PairingWord,
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Present while the pairing is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_token: Option<RoutingToken>,
    /// Whether the pairing that it led to is in force.
    #[serde(skip)]
    pub in_force: bool,
    /// The approver's answer in another dialect.
    #[serde(skip)]
    pub response: Option<String>,
}

pub struct PairingService {
    pub(in crate::gateway) context: Arc<GatewayContext>,
    pub(in crate::gateway) store: Arc<PairingStore>,
    pub(in crate::gateway) presence: Arc<EnforcerPresence>,
    pub(in crate::gateway) secret: Arc<ClusterSecret>,
    guesses: GuessLimiter,
}

impl PairingService {
    pub(in crate::gateway) fn new(
        context: &Arc<GatewayContext>,
        presence: &Arc<EnforcerPresence>,
        secret: &Arc<ClusterSecret>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.pairings),
            presence: Arc::clone(presence),
            secret: Arc::clone(secret),
            guesses: GuessLimiter::default(),
        }
    }

    pub async fn initiate_pairing(
        &self,
        caller: &Enforcer,
        request: InitiatePairing,
    ) -> Result<InitiatedPairing> {
        caller.acting(Some(request.enforcer.clone()), "/enforcerId")?;
        let tenant = &caller.origin.tenant;
        self.presence.seen(tenant, &request.enforcer);
        let lifetime = self.context.config.pairing.code_seconds;
        let actor = caller.actor(&request.enforcer);
        let owner = SessionOwner::Enforcer(&request);
        self.begin(tenant, &actor, owner, lifetime).await
    }

    /// Begins an attempt with a code of its own.
    pub(in crate::gateway) async fn begin(
        &self,
        tenant: &TenantId,
        actor: &AuditActor,
        owner: SessionOwner<'_>,
        lifetime: u64,
    ) -> Result<InitiatedPairing> {
        for _ in 0..DRAWS {
            let code = PairingCode::from_bytes(random()?);
            let nonce = Nonce::from_bytes(random()?);
            let hash = self.secret.code_hash(tenant, code);
            let (store, lifetime) = (&self.store, seconds(lifetime));
            let begun = store.begin_pairing(actor, tenant, &nonce, &hash, owner, lifetime);
            match begun.await {
                Ok(expires_at) => {
                    return Ok(InitiatedPairing {
                        code,
                        nonce,
                        expires_at,
                    });
                }
                Err(StoreError::Taken(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Unavailable)
    }

    /// Uses a code. `None` stands for a text that is no code, and counts as a wrong one.
    pub async fn resolve_pairing(
        &self,
        caller: &Approver,
        code: Option<PairingCode>,
    ) -> Result<ResolvedCode> {
        let found = self.guess(&caller.origin, caller.bound.as_ref(), code);
        found.await?.ok_or(Error::NotFound)
    }

    /// Judges a code for one approver, and counts it if it is wrong. Refuses it without a look if
    /// too many were.
    pub(in crate::gateway) async fn guess(
        &self,
        origin: &CallerIdentity,
        approver: Option<&ApproverId>,
        code: Option<PairingCode>,
    ) -> Result<Option<ResolvedCode>> {
        let (tenant, principal) = (&origin.tenant, &origin.principal);
        let guesser = format!("{tenant}\n{principal}");
        self.guesses.check(&guesser, self.context.clock.now())?;
        // Few at a time: guesses lock the same rows, and must not occupy every connection.
        let _turn = self.guesses.turn().await?;
        let limits = GuessLimits {
            per_principal: self.context.config.pairing.guesses_per_principal,
            per_tenant: self.context.config.pairing.guesses_per_tenant,
        };
        let hash = code.map(|code| self.secret.code_hash(tenant, code));
        let hash = hash.as_ref().map_or(NO_HASH, <[u8; 32]>::as_slice);
        let store = &self.store;
        let resolved = store.resolve_code(tenant, principal, approver, hash, limits);
        match resolved.await? {
            ResolveFact::Found(resolved) => Ok(Some(resolved)),
            ResolveFact::Wrong => Ok(None),
            ResolveFact::Refused { retry_after } => {
                let retry_after = retry_after.max(Duration::from_secs(1));
                let now = self.context.clock.now();
                Err(self
                    .guesses
                    .refuse(guesser, limits.per_principal, retry_after, now))
            }
        }
    }

    /// The status of an attempt, for callers that may act as its initiator.
    pub async fn pairing_status(&self, caller: &Member, nonce: Nonce) -> Result<PairingStatus> {
        let Member::Enforcer(caller) = caller else {
            return Err(Error::NotFound);
        };
        let tenant = &caller.origin.tenant;
        let session = self.store.pairing_session(tenant, &nonce).await?;
        let session = session
            .filter(|session| caller.may_be(&session.enforcer))
            .ok_or(Error::NotFound)?;
        self.presence.seen(tenant, &session.enforcer);
        let status = match &session {
            session if session.approver.is_some() => PairingWord::Completed,
            session if session.past => PairingWord::Expired,
            session if session.resolved => PairingWord::Resolved,
            _ => PairingWord::Pending,
        };
        let routing_token = match (&session.approver, &session.token_hash) {
            (Some(approver), Some(hash)) => {
                self.token_again(tenant, &nonce, &session.enforcer, approver, hash)
            }
            _ => None,
        };
        Ok(PairingStatus {
            nonce,
            status,
            expires_at: session.expires_at,
            approver_id: session.approver,
            public_key: session.approver_key,
            routing_token,
            in_force: session.token_hash.is_some(),
            response: session.response,
        })
    }

    /// Completes an attempt, once. Pairing the same two again replaces their pairing.
    pub async fn complete_pairing(
        &self,
        caller: &Approver,
        request: CompletePairing,
    ) -> Result<CompletedPairing> {
        let approver = caller.acting(Some(request.approver), "/approverId")?;
        let nonce = request.nonce.ok_or(Error::NotFound)?;
        let tenant = &caller.origin.tenant;
        // The initiator never changes, so the token can be derived before the statement.
        let session = self.store.pairing_session(tenant, &nonce).await?;
        let enforcer = session.ok_or(Error::NotFound)?.enforcer;
        let token = self
            .secret
            .routing_token(tenant, &nonce, &enforcer, &approver);
        let row = CompleteRow {
            operation: self.context.clock.operation_id(),
            actor: &caller.actor(&approver),
            tenant,
            nonce: &nonce,
            approver: &approver,
            approver_key: request.public_key.as_deref(),
            response: request.response.as_deref(),
            team: request.team.as_deref(),
            token_hash: &token.hash(),
        };
        match self.store.complete_pairing(&row).await? {
            CompleteFact::Paired { label, workspace } => {
                tracing::info!(%tenant, %enforcer, %approver, "paired");
                Ok(CompletedPairing {
                    token,
                    label,
                    workspace,
                })
            }
            CompleteFact::Completed => Err(Error::AlreadyPaired),
            CompleteFact::NotOwner => Err(TeamError::NotOwner { pointer: "/teamId" }.into()),
            CompleteFact::Missing => Err(Error::NotFound),
        }
    }
}
