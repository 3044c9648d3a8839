//! The refusals of signed texts about teams that are not well formed. They name the member of the body.

use crate::e2e::{
    self, INTRODUCTION, SIGNED_CONSENT, SIGNED_INTRODUCTION, SIGNED_TEAM_STATE, TEAM_STATE,
};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::Approver;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::reader::InvalidMember;

const OUTER: [&str; 3] = [SIGNED_TEAM_STATE, SIGNED_CONSENT, SIGNED_INTRODUCTION];
const INNER: [&str; 2] = [TEAM_STATE, INTRODUCTION];

pub(super) fn malformed(error: &e2e::Error) -> Error {
    use e2e::Error as E;
    let invalid = match error {
        E::Member(invalid) if OUTER.contains(&invalid.document) => invalid.clone(),
        E::Member(invalid) if INNER.contains(&invalid.document) => {
            let mut invalid = invalid.clone();
            invalid.pointer.insert_str(0, "/statement");
            invalid
        }
        E::Version { .. } => InvalidMember::unsupported("/statement/v", "1"),
        error => InvalidMember::shape(
            "/statement",
            format!("well formed and within the limits ({error})"),
        ),
    };
    invalid.into()
}

/// Refuses a statement about another tenant than the caller's.
pub(super) fn check_tenant(caller: &Approver, named: &TenantId) -> Result<(), Error> {
    if *named == caller.origin.tenant {
        return Ok(());
    }
    let expected = "the id of the tenant that this credential belongs to";
    Err(Error::invalid("/statement/tenantId", expected))
}

/// The approver that a credential is bound to. One for any approver speaks for nobody in a team.
pub(super) fn bound(caller: &Approver) -> Result<&ApproverId, Error> {
    caller.bound.as_ref().ok_or(Error::Forbidden {
        pointer: None,
        expected: "a credential that is bound to one approver",
    })
}
