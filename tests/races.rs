//! Two ends of one exchange at the same instant, thousands of times: one of them happens, and
//! everyone is told the same.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::support::{
    Answer, Approver, Client, Cluster, Enforcer, compact, request_id, sealed, sealed_for, until,
};

/// Exchanges that are raced for at once.
const WIDTH: usize = 50;
/// How often.
const ROUNDS: usize = 16;

/// Two nodes and the parties.
struct RaceScene {
    cluster: Cluster,
    enforcer: Enforcer,
    approver: Approver,
    admin: Client,
    /// How many milliseconds before an exchange's end its decision is sent.
    lead: AtomicU64,
}

impl RaceScene {
    async fn new() -> Self {
        let cluster = Cluster::start(2).await;
        Self {
            enforcer: cluster.enforcer("build-bot").await,
            approver: cluster.approver("alice").await,
            admin: cluster.admin().await,
            cluster,
            lead: AtomicU64::new(10),
        }
    }

    /// New pending exchanges.
    async fn pending(&self) -> Vec<String> {
        let requests: Vec<String> = (0..WIDTH).map(|_| request_id()).collect();
        let submit = |request: &String| {
            let request = request.clone();
            async move { self.enforcer.submit(&request, "alice", sealed()).await }
        };
        for answer in join_all(requests.iter().map(submit)).await {
            answer.expect(202);
        }
        requests
    }

    /// Submits, each with an end of its own, and decides each as close to it as can be.
    async fn decide_near_the_end(&self) -> Vec<(String, Value, String)> {
        let begun = Instant::now();
        let exchanges: Vec<(String, Instant)> = (0..WIDTH)
            .map(|turn| Duration::from_millis(5_000 + 4 * u64::try_from(turn).unwrap()))
            .map(|life| (request_id(), begun + life))
            .collect();
        let submit = exchanges.iter().map(async |(request, end)| {
            let body = sealed_for(end.saturating_duration_since(Instant::now()));
            self.enforcer.submit(request, "alice", body).await
        });
        for answer in join_all(submit).await {
            answer.expect(202);
        }
        let decide = exchanges.iter().map(async |(request, end)| {
            let decision = compact("approve");
            let lead = Duration::from_millis(self.lead.load(Ordering::Relaxed));
            sleep_until(end.checked_sub(lead).unwrap()).await;
            let outcome = self
                .approver
                .decide(request, decision.clone())
                .await
                .outcome();
            // Too early, the next begins later; too late, earlier: so they come to meet the end,
            // however slow we are.
            let closer = |lead: u64| match outcome.as_str() {
                "200" => Some(lead.saturating_sub(2)),
                _ => Some((lead + 2).min(1_500)),
            };
            let _ = self
                .lead
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, closer);
            (request.clone(), decision, outcome)
        });
        join_all(decide).await
    }

    async fn cancel(&self, request: &str) -> Answer {
        let path = format!("/platform/v1/exchanges/{request}/cancel");
        self.admin.post(&path, &json!({})).await
    }

    /// Asserts that the enforcer sees this end, by status and by wait, and the decision that made
    /// it.
    async fn assert_ended(&self, request: &str, state: &str, decision: Option<&Value>) {
        let status = self.enforcer.status(request).await.expect(200);
        assert_eq!(status.body("/state"), state, "{request}");
        assert_eq!(
            status.body("/decision"),
            decision.cloned().unwrap_or(Value::Null)
        );
        let waited = self.enforcer.wait(request, 1).await;
        match decision {
            Some(decision) => assert_eq!(waited.expect(200).json()["body"], *decision),
            None => assert_eq!(waited.expect(204).header("exchange-state"), Some(state)),
        }
    }

    /// Asserts that the rows agree: one end for each exchange, and the messages and items that
    /// belong to it.
    async fn assert_rows_agree(&self, exchanges: usize) {
        let total = "select count(*) from exchange_history";
        assert_eq!(
            usize::try_from(self.cluster.database.number(total).await).unwrap(),
            exchanges
        );
        let at_odds = "
            select count(*) from exchange_history h
             where (select coalesce(array_agg(v.to_state), '{}') from exchange_events v
                     where v.request_id = h.request_id and v.from_state = 'pendingApproval') <> array[h.state]
                or (select coalesce(array_agg(m.kind::text), '{}') from messages m where m.request_id = h.request_id)
                   <> case h.state when 'decided' then '{decision.deliver}' when 'expired' then '{}'
                                   else '{exchange.withdrawn}' end::text[]
                or (select array_agg(i.closed_as::text) from inbox_items i where i.request_id = h.request_id)
                   <> array[h.state]
                or (h.state = 'decided') <> (select count(*) = 2 from exchange_payloads p
                                              where p.request_id = h.request_id)
                or h.decided_at >= h.expires_at";
        assert_eq!(self.cluster.database.number(at_odds).await, 0);
    }
}

/// Lets one of the two begin a little later, by turns, so that neither always wins.
async fn after<F: Future>(turns: usize, call: F) -> F::Output {
    sleep_until(Instant::now() + Duration::from_micros(400) * u32::try_from(turns).unwrap()).await;
    call.await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_withdrawal_at_once_have_one_outcome() {
    let scene = RaceScene::new().await;
    let mut decided = 0;
    for _ in 0..ROUNDS {
        let requests = scene.pending().await;
        let race = requests.iter().enumerate().map(async |(turn, request)| {
            let decision = compact("approve");
            let (decide, withdraw) = join(
                after(turn % 8, scene.approver.decide(request, decision.clone())),
                after((turn / 8) % 8, scene.enforcer.withdraw(request)),
            )
            .await;
            match (decide.outcome().as_str(), withdraw.outcome().as_str()) {
                ("200", "409 ALREADY_DECIDED") => {
                    scene
                        .assert_ended(request, "decided", Some(&decision))
                        .await;
                    1
                }
                ("404 NOT_FOUND", "200") => {
                    scene.assert_ended(request, "withdrawn", None).await;
                    0
                }
                other => panic!("{request}: {other:?}"),
            }
        });
        decided += join_all(race).await.into_iter().sum::<usize>();
    }
    let raced = ROUNDS * WIDTH;
    assert!(0 < decided && decided < raced, "it was no race: {decided}");
    assert!(scene.approver.inbox_ids().await.is_empty());
    assert!(scene.approver.expired_ids().await.is_empty());
    scene.assert_rows_agree(raced).await;
    let on_record = "select count(*) from exchange_history where state = 'decided'";
    let on_record = scene.cluster.database.number(on_record).await;
    assert_eq!(usize::try_from(on_record).unwrap(), decided);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_and_a_cancellation_at_once_have_one_outcome() {
    let scene = RaceScene::new().await;
    let mut withdrawn = 0;
    for _ in 0..ROUNDS {
        let requests = scene.pending().await;
        let race = requests.iter().enumerate().map(async |(turn, request)| {
            let (withdraw, cancel) = join(
                after(turn % 8, scene.enforcer.withdraw(request)),
                after((turn / 8) % 8, scene.cancel(request)),
            )
            .await;
            match (withdraw.outcome().as_str(), cancel.outcome().as_str()) {
                ("200", "409 INVALID_STATE") => {
                    scene.assert_ended(request, "withdrawn", None).await;
                    1
                }
                ("409 INVALID_STATE", "200") => {
                    scene.assert_ended(request, "cancelled", None).await;
                    0
                }
                other => panic!("{request}: {other:?}"),
            }
        });
        withdrawn += join_all(race).await.into_iter().sum::<usize>();
    }
    let raced = ROUNDS * WIDTH;
    assert!(
        0 < withdrawn && withdrawn < raced,
        "it was no race: {withdrawn}"
    );
    assert!(scene.approver.inbox_ids().await.is_empty());
    scene.assert_rows_agree(raced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_at_the_instant_of_expiry_is_taken_or_refused_and_never_both() {
    // Beside each other, one round after the other: several sweeps pass amid the decisions.
    const LANES: usize = 4;
    const COUNT: usize = LANES * 4 * WIDTH;
    let scene = RaceScene::new().await;
    let lane = async || {
        let mut outcomes = Vec::new();
        for _ in 0..COUNT / LANES / WIDTH {
            outcomes.append(&mut scene.decide_near_the_end().await);
        }
        outcomes
    };
    let outcomes = join_all((0..LANES).map(|_| lane())).await.concat();
    let unwritten = "select count(*) from exchanges where state = 'pendingApproval'";
    until(
        "the sweep is through",
        Duration::from_secs(10),
        async || scene.cluster.database.number(unwritten).await == 0,
    )
    .await;

    let mut expired = BTreeSet::new();
    for chunk in outcomes.chunks(WIDTH) {
        join_all(chunk.iter().map(
            async |(request, decision, outcome)| match outcome.as_str() {
                "200" => scene.assert_ended(request, "decided", Some(decision)).await,
                "409 EXPIRED" => scene.assert_ended(request, "expired", None).await,
                other => panic!("{request}: {other}"),
            },
        ))
        .await;
    }
    for (request, _, outcome) in outcomes {
        if outcome == "409 EXPIRED" {
            expired.insert(request);
        }
    }
    assert!(
        !expired.is_empty() && expired.len() < COUNT,
        "it was no race: {}",
        expired.len()
    );
    assert!(scene.approver.inbox_ids().await.is_empty());
    let shelf = scene.approver.all_ids("inbox/expired").await;
    assert_eq!(shelf.len(), expired.len(), "each once");
    assert_eq!(shelf.into_iter().collect::<BTreeSet<_>>(), expired);
    scene.assert_rows_agree(COUNT).await;
    let at_its_time = "select count(*) from exchange_events v join exchanges e using (tenant_id, request_id)
                        where v.to_state = 'expired' and v.at = e.expires_at and e.ended_at = e.expires_at";
    let at_its_time = scene.cluster.database.number(at_its_time).await;
    assert_eq!(usize::try_from(at_its_time).unwrap(), expired.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_judged_in_time_and_committed_late_is_never_read_as_expired() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    let life = Duration::from_secs(600);
    enforcer
        .submit(&request, "alice", sealed_for(life))
        .await
        .expect(202);
    // The decision gets as far as its payload, whose place the test holds: judged, but not
    // committed.
    let place = format!(
        "insert into exchange_payloads (tenant_id, request_id, part, body) values ('{}', '{request}', 'decision', '{{}}')",
        cluster.tenant
    );
    let mut holding = cluster.database.holding(&place).await;
    let deciding = async { approver.on(0).decide(&request, compact("approve")).await };
    let reading = async {
        cluster.database.blocked_in("-- For each row").await;
        cluster.pass(life);
        let there = enforcer.on(1);
        let (status, waited, ()) =
            tokio::join!(there.status(&request), there.wait(&request, 5), async {
                cluster.busy("read_exchange").await;
                crate::support::database::finish(&mut holding, "rollback").await;
            });
        (status, waited)
    };
    let (decided, (status, waited)) = tokio::join!(deciding, reading);
    decided.expect(200);
    assert_eq!(status.expect(200).body("/state"), "decided");
    waited.expect(200);
}
