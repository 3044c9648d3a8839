//! Whether the tables agree with each other about one exchange.

use super::approver::signed_body;
use super::check::Rule;
use super::record::{Exchange, Fact, Party};
use super::rows::Row;

pub fn check(exchange: &Exchange, row: &Row, found: &mut Vec<(Rule, String)>) {
    let mut require = |holds: bool, what: &str| {
        if !holds {
            found.push((Rule::State, format!("{what} (state {:?})", row.state)));
        }
    };
    let decided = matches!(row.state.as_str(), "decided" | "delivered");
    let enforcer = Some(Party::Enforcer(exchange.enforcer));
    require(row.enforcer == enforcer, "it has another enforcer");
    require(row.has_artifact, "its artifact is gone");
    require(row.has_key, "its idempotency key is gone");
    require(
        decided == row.decision.is_some(),
        "state and decision differ",
    );
    require(
        decided == row.body.is_some(),
        "state and decision body differ",
    );
    if let (Some(decision), Some(body)) = (row.decision, &row.body) {
        let signed = signed_body(decision).to_string();
        require(*body == signed, "its decision body is not what was signed");
    }
    require(!row.overdue, "its expiry was not written");
    let finished = exchange.finished.is_some();
    let expected = exchange.kind.is_short() || row.state != "pendingApproval";
    require(
        !finished || expected,
        "it is pending, its enforcer was told otherwise",
    );
    check_items(exchange, row, &mut require);
    check_messages(exchange, row, decided, &mut require);
    check_events(row, &mut require);
}

fn check_items(exchange: &Exchange, row: &Row, require: &mut impl FnMut(bool, &str)) {
    let mut asked: Vec<_> = row.items.iter().map(|item| item.approver).collect();
    let mut approvers: Vec<_> = exchange
        .approvers
        .iter()
        .map(|number| Some(Party::Approver(*number)))
        .collect();
    let order = |party: &Option<Party>| party.map(Party::id);
    asked.sort_by_key(order);
    approvers.sort_by_key(order);
    require(asked == approvers, "others were asked than should be");
    let closed_as = match row.state.as_str() {
        "pendingApproval" => "",
        "decided" | "delivered" => "decided",
        other => other,
    };
    let closed = row.items.iter().all(|item| item.closed_as == closed_as);
    require(closed, "an inbox item was closed otherwise");
}

fn check_messages(
    exchange: &Exchange,
    row: &Row,
    decided: bool,
    require: &mut impl FnMut(bool, &str),
) {
    let of_kind = |kind: &'static str| row.messages.iter().filter(move |m| m.kind == kind);
    let deliveries: Vec<_> = of_kind("decision.deliver").collect();
    match deliveries.as_slice() {
        [] => require(!decided, "its decision has no message"),
        [message] => {
            let enforcer = Party::Enforcer(exchange.enforcer);
            require(decided, "a decision is delivered that is not there");
            require(message.to == Some(enforcer), "its message is for another");
            require(
                Some(message.id) == row.message,
                "its message has another id",
            );
            let delivered = row.state == "delivered";
            require(
                message.acked == delivered,
                "state and acknowledgement differ",
            );
        }
        _ => require(false, "its decision has two messages"),
    }
    let withdrawals = of_kind("exchange.withdrawn").count();
    let expected = match row.state.as_str() {
        "withdrawn" => exchange.approvers.len(),
        _ => 0,
    };
    require(
        withdrawals == expected,
        "withdrawal messages are missing or too many",
    );
    let told = |(_, fact): &(_, Fact)| matches!(fact, Fact::Withdrawn);
    let contradiction = decided && exchange.facts.iter().any(told);
    require(!contradiction, "it was decided and withdrawn");
}

fn check_events(row: &Row, require: &mut impl FnMut(bool, &str)) {
    let accepted = ("", "pendingApproval");
    let ended = ("pendingApproval", row.state.as_str());
    let expected = match row.state.as_str() {
        "pendingApproval" => vec![accepted],
        "delivered" => vec![
            accepted,
            ("pendingApproval", "decided"),
            ("decided", "delivered"),
        ],
        _ => vec![accepted, ended],
    };
    let mut happened: Vec<_> = row
        .events
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    // Two events of one statement may have the same time.
    happened.sort_by_key(|event| expected.iter().position(|other| other == event));
    require(happened == expected, "its history is another");
}
