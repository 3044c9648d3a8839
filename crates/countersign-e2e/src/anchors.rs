//! The devices that a verifier of receipts trusts, and the way from there to the device of a decision.

use std::collections::{BTreeMap, BTreeSet};

use super::accept::DECISION;
use super::bundle::DeviceBundle;
use super::device_id::DeviceId;
use super::encoding::parse;
use super::error::{Error, Result};
use super::log_entry::{LogEntry, LogProof};
use super::proof_gap::ProofGap;
use super::receipt::{Receipt, ReceiptPart};
use super::statement::{SignedStatement, StatementChange};
use super::team_chain::TeamChain;
use super::team_head::TeamId;
use super::trust::DeviceTrust;
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::signature::PublicKey;
use countersign_protocol::timestamp::Timestamp;

/// The devices that a verifier trusts, from elsewhere than the receipt.
#[derive(Debug, Clone, Default)]
pub struct ReceiptAnchors {
    trusts: Vec<DeviceTrust>,
    devices: BTreeMap<ApproverId, BTreeSet<DeviceId>>,
    teams: BTreeSet<TeamId>,
    chains: Vec<TeamChain>,
    log_keys: Vec<(TenantId, PublicKey)>,
    now: Option<Timestamp>,
}

impl ReceiptAnchors {
    /// The devices of an approver, as a profile knows them.
    #[must_use]
    pub fn with_trust(mut self, trust: DeviceTrust) -> Self {
        self.trusts.push(trust);
        self
    }

    /// A device by its id alone. It is trusted to speak for this approver only.
    #[must_use]
    pub fn with_device(mut self, approver: ApproverId, device: DeviceId) -> Self {
        self.devices.entry(approver).or_default().insert(device);
        self
    }

    /// A team by its id, from which its states follow.
    #[must_use]
    pub fn with_team(mut self, team: TeamId) -> Self {
        self.teams.insert(team);
        self
    }

    /// A team, as a profile knows it.
    #[must_use]
    pub fn with_chain(mut self, chain: TeamChain) -> Self {
        self.chains.push(chain);
        self
    }

    /// The key of the log of a tenant.
    #[must_use]
    pub fn with_log_key(mut self, tenant: TenantId, key: PublicKey) -> Self {
        self.log_keys.push((tenant, key));
        self
    }

    /// The time of the verification. The time of somebody who stood in may have ended before.
    #[must_use]
    pub fn with_time(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    pub(super) fn is_past(&self, at: Timestamp) -> bool {
        self.now.is_some_and(|now| now >= at)
    }

    fn chains_of(&self, team: TeamId) -> impl Iterator<Item = &TeamChain> {
        let chains = self.chains.iter();
        chains.filter(move |chain| chain.head().team == team)
    }

    pub(super) fn knows_team(&self, team: TeamId) -> Result<(), ProofGap> {
        let is_known = self.teams.contains(&team) || self.chains_of(team).next().is_some();
        is_known.then_some(()).ok_or(ProofGap::Absent)
    }

    /// Refuses a chain that contradicts something that is known of the team.
    pub(super) fn check_team(&self, chain: &TeamChain) -> Result<()> {
        for known in self.chains_of(chain.head().team) {
            let is_older = known.head().seq < chain.head().seq;
            let (older, newer) = if is_older {
                (known, chain)
            } else {
                (chain, known)
            };
            newer.knows(&older.head())?;
        }
        Ok(())
    }

    /// The longest chain that is known of a team, if it goes beyond this one.
    pub(super) fn later(&self, chain: &TeamChain) -> Option<&TeamChain> {
        let known = self.chains_of(chain.head().team);
        let newest = known.max_by_key(|known| known.head().seq)?;
        (newest.head().seq > chain.head().seq).then_some(newest)
    }

    /// Whether the tenant's log has the decisions of all parts. Its gateway takes only what an enforcer
    /// has submitted.
    pub(super) fn check_asked(&self, receipt: &Receipt) -> Result<(), ProofGap> {
        let mut keys = self.log_keys.iter();
        let key = keys.find(|(tenant, _)| *tenant == receipt.tenant);
        let (Some((_, key)), false) = (key, receipt.log.is_empty()) else {
            return Err(ProofGap::Absent);
        };
        for (part, proof) in receipt.parts.iter().zip(&receipt.log) {
            let decision = parse(DECISION, part.decision.as_bytes())?;
            let entry = LogEntry::of_decision(part.request_id.clone(), &decision);
            let checkpoint = LogProof::parse(proof)?.verify(&entry, key)?;
            if !checkpoint.origin.is_of(&receipt.tenant) {
                return Err(Error::Log("the proof is from the log of another tenant").into());
            }
        }
        Ok(())
    }

    /// The anchors for one approver. The keys behind an id are taken from `known`: an id is a hash
    /// of its keys.
    fn trusts_of(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        known: &[&DeviceBundle],
    ) -> Vec<DeviceTrust> {
        let own = self.trusts.iter();
        let own = own.filter(|it| it.tenant() == tenant && it.approver() == approver);
        let ids = self.devices.get(approver).into_iter().flatten();
        let by_id = ids.filter_map(|id| known.iter().find(|bundle| bundle.id() == *id));
        let by_id = by_id.map(|bundle| {
            let bundle = vec![(*bundle).clone()];
            let (tenant, approver) = (tenant.clone(), approver.clone());
            DeviceTrust::from_own_records(tenant, approver, bundle, BTreeSet::new())
        });
        own.cloned().chain(by_id).collect()
    }

    /// Whether the anchors, and statements from there on, lead to the part's device.
    pub(super) fn check_device(
        &self,
        receipt: &Receipt,
        part: &ReceiptPart,
        statements: &[SignedStatement],
    ) -> Result<(), ProofGap> {
        let approver = &part.approver;
        let own = receipt.parts.iter().filter(|it| it.approver == *approver);
        let listed = statements.iter().map(SignedStatement::statement);
        let listed = listed.filter_map(|statement| match statement.change() {
            StatementChange::Add(bundle) if statement.approver() == approver => Some(&**bundle),
            StatementChange::Add(_) | StatementChange::Revoke(_) => None,
        });
        let known: Vec<_> = own.map(|it| &it.device).chain(listed).collect();
        let mut trusts = self.trusts_of(&receipt.tenant, approver, &known);
        if trusts.is_empty() && !self.devices.contains_key(approver) {
            return Err(ProofGap::Absent);
        }
        let (id, mut is_known) = (part.device.id(), false);
        for trust in &mut trusts {
            trust.follow_all(statements);
            match trust.device(id) {
                Ok(device) => is_known |= device.bundle().same_keys(&part.device),
                // Also if another anchor does not know of it yet.
                Err(error @ Error::RevokedDevice(_)) => return Err(error.into()),
                Err(_) => {}
            }
        }
        let unknown = || Error::UnknownDevice(id).into();
        is_known.then_some(()).ok_or_else(unknown)
    }
}
