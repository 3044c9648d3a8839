//! The final rows of the database, by exchange.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::record::{Decision, Party};

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts about one exchange")]
pub struct Row {
    pub state: String,
    pub enforcer: Option<Party>,
    pub decision: Option<Decision>,
    pub message: Option<Uuid>,
    /// Pending half a minute after its expiry.
    pub overdue: bool,
    /// Decided at or after its expiry.
    pub is_late: bool,
    pub has_artifact: bool,
    pub has_key: bool,
    /// The stored decision body.
    pub body: Option<String>,
    pub items: Vec<Item>,
    pub messages: Vec<Message>,
    /// Where the exchange came from and where it went, in order.
    pub events: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Item {
    pub approver: Option<Party>,
    pub message: Uuid,
    pub acked: bool,
    pub closed_as: String,
}

#[derive(Debug)]
pub struct Message {
    pub to: Option<Party>,
    pub kind: String,
    pub id: Uuid,
    pub acked: bool,
}

type ExchangeColumns = (
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<Uuid>,
    bool,
    Option<bool>,
);

/// Every exchange of this run, by its request id. Those of the real commands have other ids.
pub async fn load(
    connection: &mut PgConnection,
    run: &str,
) -> anyhow::Result<HashMap<String, Row>> {
    let mut rows: HashMap<String, Row> = HashMap::new();
    let exchanges: Vec<ExchangeColumns> = sqlx::query_as(
        "select request_id, state::text, enforcer_id, decision::text, decided_by, nonce, decision_message_id,
                state = 'pendingApproval' and expires_at < clock_timestamp() - interval '30 s',
                decided_at >= expires_at
           from exchanges",
    )
    .fetch_all(&mut *connection)
    .await?;
    for (request, state, enforcer, verdict, by, nonce, message, overdue, is_late) in exchanges {
        let decision = match (verdict, by.as_deref().and_then(Party::parse), nonce) {
            (Some(verdict), Some(Party::Approver(approver)), Some(nonce)) => Some(Decision {
                approver,
                nonce: nonce.parse()?,
                approve: verdict == "approve",
            }),
            _ => None,
        };
        let row = rows.entry(request).or_default();
        row.state = state;
        row.enforcer = Party::parse(&enforcer);
        (row.decision, row.message, row.overdue) = (decision, message, overdue);
        row.is_late = is_late.unwrap_or_default();
    }
    let payloads: Vec<(String, String, String)> = sqlx::query_as(
        "select request_id, part::text, case part when 'decision' then body::text else '' end from exchange_payloads",
    )
    .fetch_all(&mut *connection)
    .await?;
    for (request, part, body) in payloads {
        let row = rows.entry(request).or_default();
        match part.as_str() {
            "artifact" => row.has_artifact = true,
            _ => row.body = Some(body),
        }
    }
    let items: Vec<(String, String, Uuid, bool, Option<String>)> = sqlx::query_as(
        "select request_id, approver_id, message_id, acked_at is not null, closed_as::text from inbox_items",
    )
    .fetch_all(&mut *connection)
    .await?;
    for (request, approver, message, acked, closed_as) in items {
        rows.entry(request).or_default().items.push(Item {
            approver: Party::parse(&approver),
            message,
            acked,
            closed_as: closed_as.unwrap_or_default(),
        });
    }
    let messages: Vec<(String, String, String, Uuid, bool)> = sqlx::query_as(
        "select request_id, recipient, kind::text, message_id, acked_at is not null from messages",
    )
    .fetch_all(&mut *connection)
    .await?;
    for (request, recipient, kind, id, acked) in messages {
        rows.entry(request).or_default().messages.push(Message {
            to: Party::parse(&recipient),
            kind,
            id,
            acked,
        });
    }
    let events: Vec<(String, Option<String>, String)> = sqlx::query_as(
        "select request_id, from_state, to_state from exchange_events order by request_id, at, event_id",
    )
    .fetch_all(&mut *connection)
    .await?;
    for (request, from, to) in events {
        let row = rows.entry(request).or_default();
        row.events.push((from.unwrap_or_default(), to));
    }
    let keys: Vec<(String, String)> =
        sqlx::query_as("select key, request_id from idempotency_keys")
            .fetch_all(&mut *connection)
            .await?;
    for (key, request) in keys {
        if key == format!("key-{request}") {
            rows.entry(request).or_default().has_key = true;
        }
    }
    let own = format!("{run}-");
    rows.retain(|request, _| request.starts_with(&own));
    Ok(rows)
}
