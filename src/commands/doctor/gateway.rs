//! The gateway, the clock, and the approvers with their devices. The gateway may be hostile:
//! nothing that it says is trusted here or printed as it came.

use std::time::Duration;

use countersign::client::enforcer::Enforcer;
use countersign::client::profile::ProfileFile;
use countersign::client::{ClientError, GatewayAnswer, GatewayCall, visible};
use countersign::clock::Clock;
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::commands::findings::{FindingReport, FindingStatus};
use crate::commands::log;

const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The header has whole seconds.
const SAME_TIME: i64 = 3;
/// Requests and decisions last minutes; a gateway refuses clients that are further ahead.
const TOO_FAR: i64 = 60;

pub async fn check(file: &ProfileFile, report: &mut FindingReport) {
    let clock = Clock::system();
    let mut enforcer = match Enforcer::open(file, &clock) {
        Ok(enforcer) => enforcer,
        Err(error) => return report.add("gateway", FindingStatus::Failed, error.to_string(), None),
    };
    // Nobody has this exchange. Whether the credential is good shows all the same.
    let call = GatewayCall::get("/v1/exchanges/00000000-0000-7000-8000-000000000000");
    let answer = enforcer
        .client()
        .call(&call, Instant::now() + READ_TIMEOUT)
        .await;
    let url = enforcer.client().address();
    let reached = match &answer {
        Ok(answer) => judge(&url, answer, report),
        Err(error) => {
            report.fail(
                "gateway",
                error.to_string(),
                "every call is denied until it answers; check the network and gateway.urls in the profile",
            );
            false
        }
    };
    if let Ok(answer) = &answer {
        compare(answer, clock.now().inner(), report);
    }
    approvers(&mut enforcer, reached, report).await;
    if reached {
        log::add_finding(&enforcer, report).await;
    }
}

/// Whether the gateway takes the credential.
fn judge(url: &str, answer: &GatewayAnswer, report: &mut FindingReport) -> bool {
    let (problem, remedy) = match answer.status {
        200 | 404 => {
            report.ok("gateway", format!("{url} accepts the credential"));
            return true;
        }
        401 | 403 => (
            "does not accept the credential",
            "it was revoked or has expired: join with a new invitation: countersign join --replace LINK",
        ),
        _ => (
            "gave an unexpected answer",
            "check that gateway.urls in the profile names a gateway, and that it is healthy",
        ),
    };
    let message = format!("{url} {problem} (status {})", answer.status);
    report.fail("gateway", message, remedy);
    false
}

fn compare(answer: &GatewayAnswer, now: OffsetDateTime, report: &mut FindingReport) {
    const REMEDY: &str = "synchronize this machine with a time server";
    let date = answer
        .headers
        .get("date")
        .and_then(|value| value.to_str().ok());
    let Some(date) = date.and_then(|text| httpdate::parse_http_date(text).ok()) else {
        return report.warn("clock", "the gateway does not say what time it is", REMEDY);
    };
    let apart = (OffsetDateTime::from(date) - now).whole_seconds();
    let side = if apart < 0 { "behind" } else { "ahead of" };
    let message = format!(
        "the gateway's clock is {} s {side} this machine's",
        apart.unsigned_abs()
    );
    match apart.abs() {
        0..=SAME_TIME => report.ok("clock", "the same as the gateway's"),
        ..=TOO_FAR => report.warn("clock", message, REMEDY),
        _ => report.fail("clock", message, REMEDY),
    }
}

async fn teams(enforcer: &Enforcer, reached: bool, report: &mut FindingReport) {
    let records = match enforcer.teams() {
        Ok(records) => records,
        Err(error) => {
            return report.add(
                "teams".to_owned(),
                FindingStatus::Failed,
                error.to_string(),
                None,
            );
        }
    };
    for record in records {
        let check = format!("team {}", visible(&record.name().unwrap_or_default()));
        if !reached {
            let message = format!("last read at {}", visible(&record.checked_at));
            let remedy = "its states are read again once the gateway answers";
            report.warn(check, message, remedy);
            continue;
        }
        match enforcer.renewed_team(&record).await {
            Ok(chain) => {
                let (seats, least) = (
                    chain.content().seats.len(),
                    chain.content().minimum.approvals,
                );
                if least as usize > seats {
                    let message = format!(
                        "{seats} members, and {least} approvals at least, so nothing can be approved"
                    );
                    report.fail(
                        check,
                        message,
                        "let an owner invite members, or lower the number: countersign team set",
                    );
                } else {
                    report.ok(
                        check,
                        format!("{seats} members decide, at least {least} of them"),
                    );
                }
            }
            Err(error) => report.add(check, FindingStatus::Failed, error.to_string(), None),
        }
    }
}

async fn approvers(enforcer: &mut Enforcer, reached: bool, report: &mut FindingReport) {
    let approvers = enforcer.approvers().to_vec();
    teams(enforcer, reached, report).await;
    if enforcer.asks_teams_only() {
        return;
    }
    if approvers.is_empty() {
        let message = "no approver is paired, so nobody can approve anything";
        return report.fail(
            "pairing",
            message,
            "pair with an approver: countersign pair",
        );
    }
    for record in approvers {
        let check = format!("approver {}", visible(&record.id));
        if !reached {
            let devices = enforcer
                .known_devices(&record)
                .map_or(0, |known| known.len());
            let message = format!(
                "{devices} active device(s) when the gateway was last asked, at {}",
                visible(&record.checked_at)
            );
            report.warn(
                check,
                message,
                "the list is refreshed once the gateway answers",
            );
            continue;
        }
        let deadline = Instant::now() + READ_TIMEOUT;
        match enforcer.refreshed_devices(&record.id, deadline).await {
            Ok(devices) if devices.is_empty() => report.fail(
                check,
                "no device is active, so nobody can approve anything",
                "let the approver join again with a new device; then unpair and pair again",
            ),
            Ok(devices) => {
                let devices: Vec<_> = devices.iter().map(ToString::to_string).collect();
                report.ok(check, format!("active now: {}", devices.join(", ")));
            }
            Err(error @ ClientError::Unpaired { .. }) => {
                report.add(check, FindingStatus::Failed, error.to_string(), None);
            }
            Err(error) => report.fail(
                check,
                error.to_string(),
                "every call is denied until the devices can be read again",
            ),
        }
    }
}
