//! A case under way: its calls to the nodes, and the comparison with the model.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;

use super::truth::{Stand, Truth};
use super::{SLOTS, Step};
use crate::support::{
    Answer, Approver, Client, Cluster, Enforcer, HASH, OTHER_HASH, compact, envelope, request_id,
};

const HASHES: [&str; 2] = [HASH, OTHER_HASH];
/// Lives and passes of time, in seconds, such that what really passes meanwhile never matters.
const LIVES: [u64; 2] = [100, 10_000];
const PASSES: [u64; 2] = [150, 20_000];

/// A case under way: its own parties on the shared cluster, and the model beside it.
pub struct Play<'a> {
    cluster: &'a Cluster,
    admin: &'a Client,
    case: usize,
    enforcers: [Enforcer; 2],
    approvers: [Approver; 2],
    truth: Truth,
    /// The slots in the order of their acceptance.
    order: Vec<usize>,
    /// The messages about each: item, decision, refresh.
    messages: [[String; 3]; SLOTS],
    decisions: [[Value; 2]; SLOTS],
}

impl<'a> Play<'a> {
    pub async fn begin(cluster: &'a Cluster, admin: &'a Client, case: usize) -> Self {
        let enforcer = async |n| cluster.enforcer(&format!("{case}-bot-{n}")).await;
        let approver = async |n| cluster.approver(&format!("{case}-approver-{n}")).await;
        Self {
            cluster,
            admin,
            case,
            enforcers: [enforcer(0).await, enforcer(1).await],
            approvers: [approver(0).await, approver(1).await],
            truth: Truth::default(),
            order: Vec::new(),
            // Unknown until they are sent; nobody may acknowledge an id of our own making.
            messages: std::array::from_fn(|_| std::array::from_fn(|_| request_id())),
            decisions: std::array::from_fn(|_| [compact("approve"), compact("reject")]),
        }
    }

    fn request(&self, slot: usize) -> String {
        format!("{}-{slot}", self.case)
    }

    /// Makes the call, and says what the model expects of it.
    async fn call(&mut self, step: &Step) -> Option<(Answer, String)> {
        let (answer, expected) = match *step {
            Step::Submit(slot, who, asked, hash, life) => {
                let ahead = life.map_or(-10, |life| i64::try_from(LIVES[life]).unwrap());
                let end = self.cluster.clock.now().inner() + time::Duration::seconds(ahead);
                let body = json!({
                    "artifactType": "command.review",
                    "artifactHash": HASHES[hash],
                    "ciphertext": { "alg": "A256GCM", "data": "c2VhbGVk" },
                    "expiresAt": end.format(&Rfc3339).unwrap(),
                });
                let asked_id = &self.approvers[asked].id;
                let answer = self.enforcers[who]
                    .submit(&self.request(slot), asked_id, body)
                    .await;
                let life = life.map(|life| LIVES[life]);
                (answer, self.truth.submit(slot, who, asked, hash, life))
            }
            Step::Decide(slot, who, hash, which) => {
                let mut body = self.decisions[slot][which].clone();
                body["artifactHash"] = json!(HASHES[hash]);
                let answer = self.approvers[who].decide(&self.request(slot), body).await;
                (answer, self.truth.decide(slot, who, hash, which))
            }
            Step::Withdraw(slot, who) => (
                self.enforcers[who].withdraw(&self.request(slot)).await,
                self.truth.end(slot, Some(who)),
            ),
            Step::Cancel(slot) => {
                let path = format!("/platform/v1/exchanges/{}/cancel", self.request(slot));
                (
                    self.admin.post(&path, &json!({})).await,
                    self.truth.end(slot, None),
                )
            }
            Step::AckDecision(slot, who) => (
                self.enforcers[who]
                    .ack(&self.request(slot), &self.messages[slot][1])
                    .await,
                self.truth.ack_decision(slot, who),
            ),
            Step::AckItem(slot, who) => (
                self.approvers[who]
                    .ack(&self.request(slot), &self.messages[slot][0])
                    .await,
                self.truth.ack_item(slot, who),
            ),
            Step::AckRefresh(slot, who) => (
                self.enforcers[who]
                    .ack(&self.request(slot), &self.messages[slot][2])
                    .await,
                self.truth.ack_refresh(slot, who),
            ),
            Step::Remove(slot, who) => (
                self.approvers[who].remove(&self.request(slot)).await,
                self.truth.remove(slot, who),
            ),
            Step::Refresh(slot, who) => {
                let request = self.request(slot);
                let answer = if let Some(who) = who {
                    self.approvers[who].refresh(&request, json!({})).await
                } else {
                    let path = format!("/v1/exchanges/{request}/refresh");
                    let body = envelope("refresh.request", &request, json!({}), json!({}));
                    self.admin.post(&path, &body).await
                };
                (answer, self.truth.refresh(slot, who))
            }
            Step::Status(slot, who) => {
                let path = format!("/v1/exchanges/{}", self.request(slot));
                let found = self.truth.exchanges.get(&slot);
                let concerned =
                    found.is_some_and(|x| who == 4 || who == x.enforcer || who == 2 + x.approver);
                let expected = if concerned { "200" } else { "404 NOT_FOUND" };
                (self.client(who).get(&path).await, expected)
            }
            Step::Wait(slot, who) => {
                let who = if who == 2 { 4 } else { who };
                let found = self.truth.exchanges.get(&slot);
                let concerned = found.is_some_and(|x| who == 4 || who == x.enforcer);
                let expected = match concerned.then(|| self.truth.state(slot)) {
                    None => "404 NOT_FOUND",
                    Some("pendingApproval") => return None,
                    Some("decided" | "delivered") => "200",
                    Some(_) => "204",
                };
                let path = format!("/v1/exchanges/{}/wait?timeout=1", self.request(slot));
                (self.client(who).get(&path).await, expected)
            }
            Step::Pass(which) => {
                self.cluster.pass(Duration::from_secs(PASSES[which]));
                self.truth.now += PASSES[which];
                return None;
            }
            Step::Inboxes(_) => return None,
        };
        Some((answer, expected.to_owned()))
    }

    /// Both enforcers, both approvers, the administrator.
    fn client(&self, who: usize) -> &Client {
        match who {
            0 | 1 => &self.enforcers[who].client,
            2 | 3 => &self.approvers[who - 2].client,
            _ => self.admin,
        }
    }

    /// Plays one step on both sides.
    pub async fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let waiting: Vec<bool> = (0..SLOTS)
            .map(|slot| {
                self.truth
                    .exchanges
                    .get(&slot)
                    .is_some_and(|x| x.refresh_waits)
            })
            .collect();
        if let Some((answer, expected)) = self.call(step).await {
            prop_assert_eq!(answer.outcome(), expected, "{:?}: {:?}", step, answer);
            self.look_closer(step, &answer, &waiting).await?;
        }
        if let Step::Inboxes(who) = step {
            self.compare_inboxes(*who).await?;
        }
        Ok(())
    }

    /// Checks a success beyond its status, and the messages it brings.
    async fn look_closer(
        &mut self,
        step: &Step,
        answer: &Answer,
        waiting: &[bool],
    ) -> Result<(), TestCaseError> {
        if answer.status >= 400 {
            return Ok(());
        }
        match *step {
            Step::Submit(slot, _, asked, ..) => {
                prop_assert_eq!(answer.body("/state"), self.truth.state(slot));
                if answer.body("/duplicate") == false {
                    self.order.push(slot);
                    let items = self.approvers[asked]
                        .inbox("?limit=200")
                        .await
                        .body("/items");
                    let item = items.as_array().unwrap().last().unwrap();
                    prop_assert_eq!(&item["requestId"], &json!(self.request(slot)));
                    item["msgId"]
                        .as_str()
                        .unwrap()
                        .clone_into(&mut self.messages[slot][0]);
                }
            }
            Step::Decide(slot, ..) => {
                prop_assert_eq!(answer.body("/state"), self.truth.state(slot));
                prop_assert_eq!(answer.body("/verified"), false);
                let enforcer = self.truth.exchanges[&slot].enforcer;
                let waited = self.enforcers[enforcer].wait(&self.request(slot), 1).await;
                let message = waited.expect(200).json()["msgId"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                if answer.body("/duplicate") == true {
                    prop_assert_eq!(&message, &self.messages[slot][1]);
                }
                self.messages[slot][1] = message;
            }
            Step::Refresh(slot, _) => {
                let message = answer.json()["msgId"].as_str().unwrap().to_owned();
                prop_assert_eq!(
                    message == self.messages[slot][2],
                    waiting[slot],
                    "one at a time"
                );
                self.messages[slot][2] = message;
            }
            Step::Status(slot, _) => {
                prop_assert_eq!(answer.body("/state"), self.truth.state(slot));
                prop_assert_eq!(answer.body("/decision/nonce"), self.nonce(slot));
            }
            Step::Wait(slot, _) if answer.status == 200 => {
                prop_assert_eq!(&answer.json()["body"]["nonce"], &self.nonce(slot));
            }
            Step::Wait(slot, _) => {
                prop_assert_eq!(
                    answer.header("exchange-state"),
                    Some(self.truth.state(slot))
                );
            }
            _ => {}
        }
        Ok(())
    }

    /// The nonce of the decision that was taken.
    fn nonce(&self, slot: usize) -> Value {
        let decision = self.truth.exchanges[&slot].decision;
        decision.map_or(Value::Null, |which| {
            self.decisions[slot][which]["nonce"].clone()
        })
    }

    async fn compare_inboxes(&self, who: usize) -> Result<(), TestCaseError> {
        let named = |slots: Vec<usize>| -> Vec<String> {
            slots.into_iter().map(|slot| self.request(slot)).collect()
        };
        let active = self.truth.shelf(who, "pendingApproval", &self.order);
        prop_assert_eq!(self.approvers[who].inbox_ids().await, named(active));
        let expired = self.truth.shelf(who, "expired", &self.order);
        prop_assert_eq!(self.approvers[who].expired_ids().await, named(expired));
        Ok(())
    }

    /// Compares what is left with the model.
    pub async fn compare_rows(&self) -> Result<(), TestCaseError> {
        for who in 0..2 {
            self.compare_inboxes(who).await?;
        }
        let count = format!(
            "select count(*) from exchanges where request_id like '{}-%'",
            self.case
        );
        let count = usize::try_from(self.cluster.database.number(&count).await).unwrap();
        prop_assert_eq!(count, self.truth.exchanges.len());
        for (slot, exchange) in &self.truth.exchanges {
            let request = self.request(*slot);
            let sql = format!(
                "select concat_ws(' ', replace(state, 'expired', 'pendingApproval'), enforcer_id, decision, decided_by, nonce,
                        verified,
                        (select count(*) from exchange_payloads p where p.request_id = e.request_id),
                        (select count(*) from messages m where m.request_id = e.request_id and kind = 'decision.deliver'),
                        (select count(*) from messages m where m.request_id = e.request_id and kind = 'refresh.request'),
                        (select string_agg(to_state || ' ' || regexp_replace(actor, '^admin:.*', 'admin'), ', ' order by at)
                           from exchange_events v where v.request_id = e.request_id and to_state <> 'expired'))
                   from exchanges e where request_id = '{request}'"
            );
            let word = match self.truth.state(*slot) {
                "expired" => "pendingApproval",
                state => state,
            };
            let decided = exchange.decision.map_or(String::new(), |which| {
                let (verdict, nonce) = (["approve", "reject"][which], self.nonce(*slot));
                let by = format!("{}-approver-{}", self.case, exchange.approver);
                format!(" {verdict} {by} {} f", nonce.as_str().unwrap())
            });
            let taken = usize::from(matches!(exchange.stand, Stand::Decided | Stand::Delivered));
            let events = exchange
                .events
                .join(", ")
                .replace(':', &format!(":{}-", self.case));
            let expected = format!(
                "{word} {}-bot-{}{decided} {} {taken} {} {events}",
                self.case,
                exchange.enforcer,
                1 + taken,
                exchange.refreshes
            );
            prop_assert_eq!(self.cluster.database.text(&sql).await, expected);
        }
        Ok(())
    }
}
