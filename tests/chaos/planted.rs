//! The self-test: violations planted into a copy of the record, or into the database within a
//! transaction that is rolled back. The checker must find every one.

use std::time::Duration;

use sqlx::{Executor as _, PgConnection};
use uuid::Uuid;

use super::check::{Rule, check};
use super::record::{Decision, Exchange, Fact, Kind, Party, Record};
use super::rows;
use super::trials::{self, CommandTrial};

/// Statements with `$id` for the exchange, and what they must be found as.
const IN_DATABASE: [(&str, &str, Rule); 17] = [
    ("an exchange deleted", "delete from exchanges where request_id = '$id'", Rule::Lost),
    ("an exchange deleted with all its rows",
     "delete from exchanges where request_id = '$id'; delete from exchange_payloads where request_id = '$id';
      delete from inbox_items where request_id = '$id'; delete from messages where request_id = '$id';
      delete from exchange_events where request_id = '$id'; delete from idempotency_keys where request_id = '$id'",
     Rule::Lost),
    ("a decision flipped",
     "update exchanges set decision = case decision when 'approve' then 'reject' else 'approve' end where request_id = '$id'",
     Rule::Decision),
    ("a decision replaced", "update exchanges set nonce = '1' where request_id = '$id'", Rule::Decision),
    ("a decision undone",
     "update exchanges set state = 'pendingApproval', decision = null, decided_at = null, delivered_at = null
       where request_id = '$id'", Rule::Decision),
    ("a decision body replaced",
     "update exchange_payloads set body = '{\"nonce\": \"1\", \"decision\": \"approve\"}'
       where request_id = '$id' and part = 'decision'", Rule::State),
    ("a signature replaced",
     "update exchange_payloads set body = replace(body::text, '\"signature\":\"', '\"signature\":\"A')::json
       where request_id = '$id' and part = 'decision'", Rule::State),
    ("a decision after the expiry",
     "update exchanges set expires_at = decided_at - interval '1 s' where request_id = '$id'", Rule::Late),
    ("an artifact deleted",
     "delete from exchange_payloads where request_id = '$id' and part = 'artifact'", Rule::State),
    ("an inbox item deleted", "delete from inbox_items where request_id = '$id'", Rule::State),
    ("a message deleted", "delete from messages where request_id = '$id'", Rule::State),
    ("a message given to another", "update messages set recipient = 'enforcer-77' where request_id = '$id'", Rule::State),
    ("a second message",
     "insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, created_at)
      select tenant_id, recipient_kind, recipient, gen_random_uuid(), kind, request_id, seq, created_at
        from messages where request_id = '$id'", Rule::State),
    ("an acknowledgement undone", "update messages set acked_at = null where request_id = '$id'", Rule::Lost),
    ("an event deleted",
     "delete from exchange_events where request_id = '$id' and to_state = 'decided'", Rule::State),
    ("an event doubled",
     "insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
      select tenant_id, request_id, at, gen_random_uuid(), from_state, to_state, actor, node
        from exchange_events where request_id = '$id' and to_state = 'decided'", Rule::State),
    ("an idempotency key deleted", "delete from idempotency_keys where request_id = '$id'", Rule::State),
];

type Change = fn(&mut Exchange, &Delivery, Duration, u32);

/// Changes of what clients were told, and what they must be found as.
const IN_RECORD: [(&str, Change, Rule); 11] = [
    (
        "a stale read",
        |exchange, _, end, _| exchange.facts.push((end, Fact::Stale)),
        Rule::Stale,
    ),
    (
        "a delivery dropped",
        |exchange, _, _, _| {
            exchange
                .facts
                .retain(|(_, fact)| !matches!(fact, Fact::Told { .. }));
        },
        Rule::Delivery,
    ),
    (
        "another decision told",
        |exchange, delivery, end, _| {
            let decision = Decision {
                approve: !delivery.decision.approve,
                ..delivery.decision
            };
            exchange.facts.push((
                end,
                Fact::Told {
                    enforcer: exchange.enforcer,
                    message: delivery.message,
                    decision,
                },
            ));
        },
        Rule::Decision,
    ),
    (
        "a delivery under another id",
        |exchange, delivery, end, _| {
            let message = Uuid::from_u128(1);
            exchange.facts.push((
                end,
                Fact::Told {
                    enforcer: exchange.enforcer,
                    message,
                    decision: delivery.decision,
                },
            ));
        },
        Rule::Delivery,
    ),
    (
        "a delivery to another enforcer",
        |exchange, delivery, end, _| {
            exchange.facts.push((
                end,
                Fact::Told {
                    enforcer: 77,
                    message: delivery.message,
                    decision: delivery.decision,
                },
            ));
        },
        Rule::Delivery,
    ),
    (
        "a doubled delivery",
        |exchange, delivery, end, channel| {
            exchange
                .facts
                .retain(|(_, fact)| !matches!(fact, Fact::Acked { .. }));
            for later in [0, 1] {
                exchange.facts.push((
                    end + Duration::from_secs(later),
                    delivery.pushed(exchange.enforcer, channel),
                ));
            }
        },
        Rule::Repeated,
    ),
    (
        "a message after its ack, over a new channel",
        |exchange, delivery, end, channel| {
            exchange
                .facts
                .push((end, delivery.pushed(exchange.enforcer, channel)));
        },
        Rule::AfterAck,
    ),
    (
        "a message after its ack, over an old channel",
        |exchange, delivery, end, _| {
            exchange.facts.push((
                end + Duration::from_secs(30),
                delivery.pushed(exchange.enforcer, 0),
            ));
        },
        Rule::AfterAck,
    ),
    (
        "two accepted decisions",
        |exchange, delivery, end, _| {
            let decision = Decision {
                nonce: 1,
                ..delivery.decision
            };
            exchange.facts.push((end, Fact::Tried(decision)));
            exchange.facts.push((end, Fact::Decided(decision)));
        },
        Rule::Decision,
    ),
    (
        "a decision that was also withdrawn",
        |exchange, _, end, _| {
            exchange.facts.push((end, Fact::TriedWithdrawal));
            exchange.facts.push((end, Fact::Withdrawn));
        },
        Rule::Decision,
    ),
    (
        "a wait beyond the bound",
        |exchange, _, end, _| {
            exchange.finished = Some(end + Duration::from_secs(60));
        },
        Rule::Waiting,
    ),
];

type TrialChange = fn(&mut CommandTrial);

/// Changes of what a command did that was approved, and what they must be found as.
const IN_TRIAL: [(&str, TrialChange, Rule); 5] = [
    (
        "an effect that nobody approved",
        |trial| (trial.signed, trial.accepted) = (None, None),
        Rule::Effect,
    ),
    (
        "an effect that was rejected",
        |trial| trial.signed = Some(false),
        Rule::Effect,
    ),
    ("an effect twice", |trial| trial.effects = 2, Rule::Effect),
    (
        "an approval without an effect",
        |trial| (trial.effects, trial.succeeded) = (0, false),
        Rule::Effect,
    ),
    (
        "a command that does not end",
        |trial| trial.ended = None,
        Rule::Waiting,
    ),
];

/// The decision that an enforcer was told about the exchange that is tampered with.
struct Delivery {
    message: Uuid,
    decision: Decision,
}

impl Delivery {
    fn of(exchange: &Exchange) -> Option<Self> {
        let mut facts = exchange.facts.iter();
        let acked = facts.any(|(_, fact)| {
            matches!(
                fact,
                Fact::Acked {
                    by: Party::Enforcer(_),
                    ..
                }
            )
        });
        let told = exchange.facts.iter().find_map(|(_, fact)| match *fact {
            Fact::Told {
                message, decision, ..
            } => Some(Self { message, decision }),
            _ => None,
        });
        told.filter(|_| acked)
    }

    fn pushed(&self, enforcer: u16, channel: u32) -> Fact {
        Fact::Pushed {
            to: Party::Enforcer(enforcer),
            channel,
            message: self.message,
        }
    }
}

/// Plants everything, one by one. True if all was found.
pub async fn find_all(record: &Record, connection: &mut PgConnection) -> anyhow::Result<bool> {
    let mut all = true;
    let mut report = |name: &str, found: bool| {
        println!("{} {name}", if found { "found  " } else { "ESCAPED" });
        all &= found;
    };
    let candidates = record.exchanges.iter().enumerate();
    let mut candidates = candidates
        .filter_map(|(number, exchange)| Some((number, Delivery::of(exchange)?)))
        .filter(|(number, _)| {
            record
                .exchanges
                .get(*number)
                .is_some_and(|e| e.approvers.len() == 1)
        });
    for (name, sql, rule) in IN_DATABASE {
        let Some((number, _)) = candidates.next() else {
            anyhow::bail!("too few exchanges were made");
        };
        let request = record.request_id(number).unwrap_or_default();
        connection.execute("begin").await?;
        let sql = sql.replace("$id", &request);
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut *connection)
            .await?;
        let rows = rows::load(connection, &record.run).await?;
        connection.execute("rollback").await?;
        let found = check(record, &rows);
        report(
            name,
            found
                .iter()
                .any(|v| v.rule == rule && v.what.starts_with(&request)),
        );
    }
    let rows = rows::load(connection, &record.run).await?;
    for (name, change, rule) in IN_RECORD {
        let Some((number, delivery)) = candidates.next() else {
            anyhow::bail!("too few exchanges were made");
        };
        let request = record.request_id(number).unwrap_or_default();
        let mut changed = record.clone();
        let end = changed
            .exchanges
            .iter()
            .filter_map(|e| e.facts.last())
            .map(|(at, _)| *at);
        let end = end.max().unwrap_or_default() + Duration::from_secs(1);
        changed.channels.push(end);
        let channel = u32::try_from(changed.channels.len() - 1)?;
        if let Some(exchange) = changed.exchanges.get_mut(number) {
            change(exchange, &delivery, end, channel);
        }
        let found = check(&changed, &rows);
        report(
            name,
            found
                .iter()
                .any(|v| v.rule == rule && v.what.starts_with(&request)),
        );
    }
    for (name, change, rule) in IN_TRIAL {
        let mut changed = record.clone();
        let mut trials = changed.trials.iter_mut().enumerate();
        let Some((number, trial)) = trials.find(|(_, trial)| trial.effects == 1) else {
            anyhow::bail!("no command was approved");
        };
        let command = trials::name(trial, number);
        change(trial);
        let found = check(&changed, &rows);
        report(
            name,
            (found.iter()).any(|v| v.rule == rule && v.what.starts_with(&command)),
        );
    }
    let mut changed = record.clone();
    let Some((_, approver)) = changed.notified.pop() else {
        anyhow::bail!("nobody was notified");
    };
    // Without those that came later, or before it for the same requests.
    let begun = (record.exchanges.iter())
        .rfind(|exchange| exchange.kind == Kind::Notified && exchange.approvers == [approver])
        .map(|exchange| exchange.begun);
    let is_before = |at: Duration| begun.is_none_or(|begun| at < begun);
    (changed.notified).retain(|(at, to)| *to != approver || is_before(*at));
    let found = check(&changed, &rows);
    report(
        "a notification lost",
        found.iter().any(|v| v.rule == Rule::Notification),
    );
    Ok(all)
}
