//! Introductions: a device tells the other devices of its approver the key of an enforcer. The
//! gateway carries them. Devices verify the signatures, so the gateway can introduce no enforcer.

use time::Duration;

use crate::e2e::{self, INTRODUCED_KEY, SignedIntroduction};
use crate::gateway::context::GatewayContext;
use crate::gateway::devices::history::{judge_introduction, malformed};
use crate::gateway::devices::service::{DeviceService, check_subject};
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::Approver;
use crate::protocol::device::{IntroductionLine, IntroductionList, MAX_INTRODUCTIONS};
use crate::protocol::error::DeviceError;
use crate::protocol::id::ApproverId;
use crate::protocol::json::JsonNode;
use crate::protocol::message::raw;
use crate::protocol::reader::InvalidMember;
use crate::protocol::timestamp::Timestamp;
use crate::store::devices::introduction::{IntroductionFact, NewIntroduction};

/// How far ahead a device's clock may be. An introduction from further ahead would block later
/// ones.
const CLOCK_SKEW_GRACE: Duration = Duration::minutes(10);

/// A signed introduction, well formed and about the right tenant, approver and team.
#[derive(Debug)]
pub struct IntroductionCommand {
    pub(in crate::gateway) signed: SignedIntroduction,
    /// As it was received.
    pub(in crate::gateway) text: String,
}

impl IntroductionCommand {
    pub(in crate::gateway) fn line(&self) -> IntroductionLine {
        let introduction = self.signed.introduction();
        IntroductionLine {
            enforcer_id: introduction.claimed().id().clone(),
            device_id: introduction.by().to_string(),
            at: introduction.at(),
        }
    }

    /// The row for the store. `line` is the answer to the caller.
    pub(in crate::gateway) fn row<'a>(&'a self, line: &'a IntroductionLine) -> NewIntroduction<'a> {
        NewIntroduction {
            enforcer: &line.enforcer_id,
            device: &line.device_id,
            at: line.at,
            signed: &self.text,
        }
    }
}

/// The refusals of an introduction, which differ by those whom it is for.
pub(in crate::gateway) struct IntroductionRefusals {
    pub no_signer: Error,
    pub not_paired: Error,
    pub too_many: Error,
}

impl IntroductionRefusals {
    /// The introduction that stands, and whether it is new.
    pub(in crate::gateway) fn judge(
        self,
        fact: IntroductionFact,
        mut line: IntroductionLine,
    ) -> Result<(IntroductionLine, bool)> {
        match fact {
            IntroductionFact::Written => Ok((line, true)),
            IntroductionFact::Stands(at) => {
                line.at = at;
                Ok((line, false))
            }
            IntroductionFact::NoTenant => Err(Error::NotFound),
            IntroductionFact::NoSigner => Err(self.no_signer),
            IntroductionFact::NotPaired => Err(self.not_paired),
            IntroductionFact::TooMany => Err(self.too_many),
        }
    }
}

impl DeviceService {
    /// Reads an introduction by a device of this approver. The caller has been checked.
    pub fn read_introduction(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        document: &JsonNode<'_>,
    ) -> Result<IntroductionCommand> {
        let signed = SignedIntroduction::parse(document);
        let signed = signed.map_err(|error| refuse(error, document))?;
        let introduction = signed.introduction();
        let (tenant, named) = (introduction.tenant(), introduction.approver());
        check_subject(caller, approver, tenant, named)?;
        if introduction.team().is_some() {
            let expected = "no member: an introduction to a team goes to the team";
            return Err(Error::invalid("/statement/teamId", expected));
        }
        check_introduced_at(&self.context, introduction.at())?;
        let text = document.raw.to_owned();
        Ok(IntroductionCommand { signed, text })
    }

    /// Keeps an introduction, unless the device has one already. Also returns whether it is new.
    pub async fn introduce(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        command: &IntroductionCommand,
    ) -> Result<(IntroductionLine, bool)> {
        caller.speaking_for(approver)?;
        let tenant = &caller.origin.tenant;
        let store = &self.context.store.credentials;
        let rows = store.device_statements(tenant, approver).await?;
        judge_introduction(&rows, &command.signed)?;
        let (actor, line) = (caller.actor(approver), command.line());
        let new = command.row(&line);
        let fact = store.introduce(&actor, tenant, approver, &new).await?;
        let limit = MAX_INTRODUCTIONS;
        let refusals = IntroductionRefusals {
            no_signer: DeviceError::RevokedSigner.into(),
            not_paired: DeviceError::NotPaired.into(),
            too_many: DeviceError::TooManyIntroductions { limit }.into(),
        };
        refusals.judge(fact, line)
    }

    /// The introductions of enforcers that are paired, by devices in force.
    pub async fn introductions(
        &self,
        caller: &Approver,
        approver: &ApproverId,
    ) -> Result<IntroductionList> {
        caller.acting(Some(approver.clone()), "approverId")?;
        let store = &self.context.store.credentials;
        let found = store.introductions(&caller.origin.tenant, approver).await?;
        Ok(IntroductionList {
            approver_id: approver.clone(),
            introductions: found.into_iter().map(raw).collect::<Result<_, _>>()?,
        })
    }
}

pub(in crate::gateway) fn check_introduced_at(
    context: &GatewayContext,
    at: Timestamp,
) -> Result<()> {
    if at.inner() - context.clock.now().inner() > CLOCK_SKEW_GRACE {
        let expected = "a time that is at most 10 minutes ahead of the gateway's clock";
        return Err(InvalidMember::timestamp("/statement/at", expected).into());
    }
    Ok(())
}

/// The refusal of a signed introduction that is not well formed. It names the member of the body.
fn refuse(error: e2e::Error, document: &JsonNode<'_>) -> Error {
    use e2e::Error as E;
    match &error {
        E::Base64 { what } | E::Length { what, .. } | E::WeakKey { what }
            if *what == INTRODUCED_KEY =>
        {
            let expected = "32 bytes in base64url, without padding: an X25519 key that is not weak";
            Error::invalid("/statement/x25519", expected)
        }
        _ => malformed(error, document),
    }
}
