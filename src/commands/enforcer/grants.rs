//! Permissions of people to this enforcer beyond one request.

use countersign::client::enforcer::{Enforcer, GrantSubject, KeptGrant};
use countersign::client::profile::ProfileFile;
use countersign::client::visible;
use countersign::clock::Clock;
use serde_json::{Value, json};

use crate::commands::client_options::ListedEntry;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::grant_text::{describe, shown};
use crate::commands::output::{remark, times};
use crate::commands::short_id::{find_id, short_id};

fn as_json(kept: &KeptGrant) -> Value {
    let act = kept.subject.as_ref();
    let mut line = json!({
        "requestId": kept.request_id,
        "approverId": kept.approver,
        "acceptedAt": kept.accepted_at,
        "repoRef": act.map(GrantSubject::repository),
        "tool": act.map(GrantSubject::tool),
        "words": act.map(GrantSubject::words),
        "sessionId": kept.session,
        "suspended": kept.is_suspended,
        "uses": kept.uses,
        "usedAt": kept.used_at,
    });
    match &kept.standing {
        Ok(grant) => {
            line["until"] = json!(grant.until);
            line["match"] = grant.matches.to_json();
        }
        Err(problem) => line["problem"] = problem.to_string().into(),
    }
    line
}

fn as_text(kept: &KeptGrant, ids: &[&String]) -> String {
    let standing = match &kept.standing {
        Ok(grant) => describe(grant, kept.subject.as_ref()),
        Err(problem) => format!("not used: {}", visible(&problem.to_string())),
    };
    let asked = match &kept.subject {
        Some(act) => {
            let command = act.words().map(shown);
            let command = command.unwrap_or_else(|| visible(act.tool()));
            format!(", asked for {command} in {}", visible(act.repository()))
        }
        None => String::new(),
    };
    let used = match (kept.uses, &kept.used_at) {
        (uses, Some(at)) => format!("; used {}, last at {}", times(uses), visible(at)),
        _ => String::new(),
    };
    let suspended = if kept.is_suspended {
        "; inactive while its session is closed"
    } else {
        ""
    };
    let id = visible(short_id(&kept.request_id, ids));
    let who = visible(&kept.approver);
    format!("{id}  {who}{asked}: {standing}{used}{suspended}")
}

/// Lists the grants that are kept, and tells of pauses.
pub fn grants(file: &ProfileFile) -> anyhow::Result<Vec<ListedEntry>> {
    let enforcer = Enforcer::open(file, &Clock::system())?;
    for pause in enforcer.pauses()? {
        remark(&format!(
            "{pause}: calls that need approval are denied, and grants don't apply"
        ));
    }
    let grants = enforcer.grants()?;
    let ids: Vec<_> = grants.iter().map(|kept| &kept.request_id).collect();
    let lines = grants.iter().map(|kept| ListedEntry {
        json: as_json(kept),
        line: as_text(kept, &ids),
    });
    Ok(lines.collect())
}

/// Forgets a grant, or without an id all of them.
pub fn forget_grants(file: &ProfileFile, id: Option<&str>) -> anyhow::Result<ExitAction> {
    let enforcer = Enforcer::open(file, &Clock::system())?;
    let Some(part) = id else {
        enforcer.delete_all_grants()?;
        remark("all grants are forgotten");
        return Ok(ExitAction::DONE);
    };
    let grants = enforcer.grants()?;
    let ids = grants.iter().map(|kept| kept.request_id.as_str());
    let Some(id) = find_id(part, ids)? else {
        let part = visible(part);
        remark(&format!(
            "there is no grant {part}; see: countersign grants"
        ));
        return Ok(ExitAction::code(DENIED));
    };
    enforcer.delete_grant(id)?;
    remark(&format!("forgotten: {}", visible(id)));
    Ok(ExitAction::DONE)
}
