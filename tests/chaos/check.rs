//! Compares what clients were told with each other and with the database.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use super::record::{Decision, Exchange, Fact, Kind, Party, Record, Refusal};
use super::rows::Row;
use super::{states, trials};

/// How long anybody may wait, faults not counted.
pub const BOUND: Duration = Duration::from_secs(20);
/// How long a notification may take: a node that dies leaves its claim for half a minute, the next
/// sweep finds it a quarter later, and each of two failures adds a pause.
const NOTIFIED: Duration = Duration::from_secs(75);
/// A message that was on its way when it was acknowledged over another channel arrives within this
/// time.
const ON_ITS_WAY: Duration = Duration::from_secs(5);
/// Offers of a message over one channel are at least 10 s apart; the clients' clock and ours differ
/// by less than the rest.
const BETWEEN_OFFERS: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Something acknowledged is not in the database.
    Lost,
    /// There are two decisions, or somebody was told another one.
    Decision,
    /// It was decided after its expiry.
    Late,
    /// A node showed what was no longer true.
    Stale,
    /// A message went to somebody it is not for, or never to whom it is for.
    Delivery,
    /// A message came again too soon.
    Repeated,
    /// A message came after its confirmed acknowledgement.
    AfterAck,
    /// A command had an effect that was not approved, or not the one that was.
    Effect,
    /// An approver was not notified.
    Notification,
    /// Somebody waited beyond the bound.
    Waiting,
    /// The tables contradict each other.
    State,
    /// An answer that should not be.
    Unexpected,
}

pub struct Violation {
    pub rule: Rule,
    /// When it may have happened, to tell under which fault.
    pub at: Duration,
    pub what: String,
}

/// Everything that breaks a rule.
pub fn check(record: &Record, rows: &HashMap<String, Row>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut known = HashSet::new();
    for (number, exchange) in record.exchanges.iter().enumerate() {
        let request = record.request_id(number).unwrap_or_default();
        let mut found = Vec::new();
        match rows.get(&request) {
            // Other tables may have rows of an exchange that is gone.
            Some(row) if !row.state.is_empty() => {
                told(exchange, row, &mut found);
                acknowledged(exchange, row, &mut found);
                states::check(exchange, row, &mut found);
            }
            gone => {
                if gone.is_some() || exchange.facts.iter().any(|(_, fact)| is_told(fact)) {
                    found.push((Rule::Lost, "it is not in the database".to_owned()));
                }
            }
        }
        pushed(exchange, record, &mut found);
        waited(exchange, record, &mut found);
        notified(exchange, record, &mut found);
        known.insert(request.clone());
        let named = found.into_iter().map(|(rule, what)| Violation {
            rule,
            at: exchange.begun,
            what: format!("{request}: {what}"),
        });
        violations.extend(named);
    }
    for request in rows.keys().filter(|request| !known.contains(*request)) {
        violations.push(Violation {
            rule: Rule::State,
            at: Duration::ZERO,
            what: format!("{request}: nobody submitted it"),
        });
    }
    let odd = record.odd.iter().map(|(at, what)| Violation {
        rule: Rule::Unexpected,
        at: *at,
        what: what.clone(),
    });
    violations.extend(odd);
    violations.extend(trials::check(record));
    violations
}

/// Whether a client learnt from it that the exchange exists.
fn is_told(fact: &Fact) -> bool {
    !matches!(fact, Fact::Tried(_) | Fact::TriedWithdrawal)
}

type Found = Vec<(Rule, String)>;

fn told(exchange: &Exchange, row: &Row, found: &mut Found) {
    let tried: Vec<Decision> = exchange
        .facts
        .iter()
        .filter_map(|(_, fact)| match fact {
            Fact::Tried(decision) => Some(*decision),
            _ => None,
        })
        .collect();
    if let Some(decision) = row.decision
        && !tried.contains(&decision)
    {
        found.push((Rule::Decision, format!("nobody made {decision:?}")));
    }
    if row.is_late {
        found.push((Rule::Late, "it was decided after its expiry".to_owned()));
    }
    let mut delivered = false;
    for (_, fact) in &exchange.facts {
        match *fact {
            Fact::Stale => {
                let what = "a node showed it as pending after its decision".to_owned();
                found.push((Rule::Stale, what));
            }
            Fact::Decided(decision) if row.decision != Some(decision) => {
                let what = format!("{decision:?} was accepted, {:?} is stored", row.decision);
                found.push((Rule::Decision, what));
            }
            Fact::NotDecided(decision, Refusal::Decided)
                if row.decision.is_none() || row.decision == Some(decision) =>
            {
                let what = format!("{decision:?} lost against {:?}", row.decision);
                found.push((Rule::Decision, what));
            }
            Fact::NotDecided(_, Refusal::Expired) | Fact::Ended { withdrawn: false }
                if row.state != "expired"
                    && !(row.state == "pendingApproval" && exchange.kind.is_short()) =>
            {
                let what = format!("told that it expired, it is {}", row.state);
                found.push((Rule::Decision, what));
            }
            Fact::NotDecided(_, Refusal::Ended)
            | Fact::Withdrawn
            | Fact::Ended { withdrawn: true }
                if row.state != "withdrawn" =>
            {
                let what = format!("told that it was withdrawn, it is {}", row.state);
                found.push((Rule::Decision, what));
            }
            Fact::NotWithdrawn(Refusal::Decided) if row.decision.is_none() => {
                let what = format!("told that it was decided, it is {}", row.state);
                found.push((Rule::Decision, what));
            }
            Fact::Told {
                enforcer,
                message,
                decision,
            } => {
                delivered = true;
                if enforcer != exchange.enforcer {
                    let what = format!("enforcer-{enforcer} got the decision of another");
                    found.push((Rule::Delivery, what));
                }
                if row.decision != Some(decision) {
                    let what = format!("told {decision:?}, {:?} is stored", row.decision);
                    found.push((Rule::Decision, what));
                }
                if row.message != Some(message) {
                    let what = format!("told by {message}, the message is {:?}", row.message);
                    found.push((Rule::Delivery, what));
                }
            }
            _ => {}
        }
    }
    if row.decision.is_some() && !delivered {
        found.push((Rule::Delivery, "its enforcer was never told".to_owned()));
    }
    let withdrew = |fact: &Fact| matches!(fact, Fact::TriedWithdrawal);
    if row.state == "withdrawn" && !exchange.facts.iter().any(|(_, fact)| withdrew(fact)) {
        found.push((Rule::Decision, "nobody withdrew it".to_owned()));
    }
}

fn acknowledged(exchange: &Exchange, row: &Row, found: &mut Found) {
    let (mut told, mut confirmed) = (false, false);
    for (_, fact) in &exchange.facts {
        match *fact {
            Fact::Told { .. } => told = true,
            Fact::Acked { by, message } => {
                confirmed |= by == Party::Enforcer(exchange.enforcer);
                let item = |to, id, acked| to == Some(by) && id == message && acked;
                let kept = row
                    .items
                    .iter()
                    .any(|i| item(i.approver, i.message, i.acked))
                    || row.messages.iter().any(|m| item(m.to, m.id, m.acked));
                if !kept {
                    let what = format!("the confirmed ack of {} is lost", by.id());
                    found.push((Rule::Lost, what));
                }
            }
            Fact::Pushed { to, message, .. } => {
                let known = row
                    .items
                    .iter()
                    .any(|i| (i.approver, i.message) == (Some(to), message))
                    || row
                        .messages
                        .iter()
                        .any(|m| (m.to, m.id) == (Some(to), message));
                if !known {
                    let what = format!("{} got a message that is not for it: {message}", to.id());
                    found.push((Rule::Delivery, what));
                }
            }
            _ => {}
        }
    }
    if told && !confirmed {
        let what = "its acknowledgement was never confirmed".to_owned();
        found.push((Rule::Waiting, what));
    }
}

/// Repeats over one channel, and messages after their confirmed acknowledgement.
fn pushed(exchange: &Exchange, record: &Record, found: &mut Found) {
    let mut last: HashMap<(Party, u32, Uuid), Duration> = HashMap::new();
    let mut acked: HashMap<(Party, Uuid), Duration> = HashMap::new();
    for (at, fact) in &exchange.facts {
        match *fact {
            Fact::Acked { by, message } => {
                acked.entry((by, message)).or_insert(*at);
            }
            Fact::Pushed {
                to,
                channel,
                message,
            } => {
                if let Some(before) = last.insert((to, channel, message), *at)
                    && at.saturating_sub(before) < BETWEEN_OFFERS
                    && !crashed(record, before, *at)
                {
                    let after = at.saturating_sub(before).as_secs_f64();
                    let what = format!("{} got {message} again after {after:.1} s", to.id());
                    found.push((Rule::Repeated, what));
                }
                let Some(confirmed) = acked.get(&(to, message)).copied() else {
                    continue;
                };
                let opened = usize::try_from(channel).ok();
                let opened = opened.and_then(|number| record.channels.get(number).copied());
                let late = *at > last_fault(record, confirmed, *at) + ON_ITS_WAY;
                if opened.is_some_and(|opened| opened > confirmed) || late {
                    let after = at.saturating_sub(confirmed).as_secs_f64();
                    let what = format!("{} got {message} {after:.1} s after its ack", to.id());
                    found.push((Rule::AfterAck, what));
                }
            }
            _ => {}
        }
    }
}

/// Whether the database crashed in between: claims that were not flushed are made again.
fn crashed(record: &Record, from: Duration, to: Duration) -> bool {
    let mut spans = record.spans.iter();
    spans.any(|span| span.crash && span.begun < to && span.ended > from)
}

/// The end of the last fault that held anything up in this time, else its beginning.
fn last_fault(record: &Record, from: Duration, to: Duration) -> Duration {
    let spans = record.spans.iter();
    let during = spans.filter(|span| span.begun < to && span.ended > from);
    during.map(|span| span.ended).fold(from, Duration::max)
}

/// Whether somebody waited no longer than the bound, faults not counted.
pub fn undisturbed(record: &Record, from: Duration, to: Duration) -> bool {
    without_faults(record, from, to) <= BOUND
}

fn without_faults(record: &Record, from: Duration, to: Duration) -> Duration {
    let mut time = to.saturating_sub(from);
    for span in &record.spans {
        let (begun, ended) = (span.begun.max(from), span.ended.min(to));
        time = time.saturating_sub(ended.saturating_sub(begun));
    }
    time
}

fn waited(exchange: &Exchange, record: &Record, found: &mut Found) {
    let Some(finished) = exchange.finished else {
        let what = format!("its enforcer ({:?}) never knew its end", exchange.kind);
        return found.push((Rule::Waiting, what));
    };
    let bound = match exchange.kind {
        Kind::Notified => BOUND + NOTIFIED,
        _ => BOUND,
    };
    let time = without_faults(record, exchange.begun, finished);
    if time > bound {
        let what = format!("its enforcer waited {:.1} s", time.as_secs_f64());
        found.push((Rule::Waiting, what));
    }
}

/// An approver without a channel learns of a request by a notification alone.
fn notified(exchange: &Exchange, record: &Record, found: &mut Found) {
    let mut facts = exchange.facts.iter();
    let accepted = facts.find(|(_, fact)| *fact == Fact::Accepted);
    let Some((accepted, _)) = accepted.filter(|_| exchange.kind == Kind::Notified) else {
        return;
    };
    let mut arrivals = record.notified.iter().copied();
    // It may arrive before the answer to the submission does.
    match arrivals.find(|(at, to)| *at >= exchange.begun && exchange.approvers.contains(to)) {
        None => found.push((Rule::Notification, "nobody was notified".to_owned())),
        Some((at, _)) => {
            let time = without_faults(record, *accepted, at);
            if time > NOTIFIED {
                let what = format!("its notification took {:.1} s", time.as_secs_f64());
                found.push((Rule::Notification, what));
            }
        }
    }
}
