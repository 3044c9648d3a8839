//! An approver: it listens on a channel and decides whatever comes. Two clients may act as the same
//! approver, and disagree.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::calls::{Call, Clients, PATIENCE, code, envelope};
use super::channel::{self, Address, By, Received};
use super::enforcer::{ack, retryable};
use super::record::{Decision, Fact, Party, Refusal};

/// Exchanges that are decided about when they expire live for three seconds.
const LATE_MS: u64 = 2_600;
const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";

pub struct Approver {
    pub number: u16,
    id: String,
    entrance: usize,
    clients: Arc<Clients>,
    /// Where frames go, if its channel is a socket.
    socket: Option<mpsc::UnboundedSender<Value>>,
    /// Calls that wait for the answer to a frame, by its id.
    answers: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    /// Exchanges that it has decided or left alone; repeats are dropped.
    seen: Mutex<HashSet<usize>>,
}

impl Approver {
    /// One that has no channel.
    pub fn new(clients: &Arc<Clients>, number: u16, entrance: usize) -> Self {
        Self {
            number,
            id: Party::Approver(number).id(),
            entrance,
            clients: Arc::clone(clients),
            socket: None,
            answers: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    pub fn start(clients: &Arc<Clients>, number: u16, entrance: usize, by: By) -> Arc<Self> {
        let approver = Self::new(clients, number, entrance);
        let address = Address {
            by,
            entrance,
            role: "approver",
            id: approver.id.clone(),
            key: clients.keys.approver.clone(),
        };
        let mut ends = channel::open(clients, address);
        let approver = Arc::new(Self {
            socket: (by == By::Socket).then_some(ends.send),
            ..approver
        });
        let listening = Arc::clone(&approver);
        tokio::spawn(async move {
            while let Some(received) = ends.received.recv().await {
                listening.receive(&received);
            }
        });
        approver
    }

    /// The call that registers its key. Odd approvers have none, and their decisions are not
    /// verified.
    pub fn registration(number: u16, admin: &str) -> Option<Call> {
        let public = URL_SAFE_NO_PAD.encode(key_of(number).verifying_key().as_bytes());
        let path = format!("/platform/v1/approvers/approver-{number}/keys/key-1");
        let body = json!({ "publicKey": public });
        number.is_multiple_of(2).then(|| Call {
            method: Method::PUT,
            ..Call::post(1, &path, admin, &body)
        })
    }

    fn receive(self: &Arc<Self>, received: &Received) {
        let Received { envelope, channel } = received;
        let reply_to = envelope.pointer("/trace/inReplyTo").and_then(Value::as_str);
        if let Some(reply_to) = reply_to {
            let waiting = self.answers().remove(reply_to);
            if let Some(waiting) = waiting {
                drop(waiting.send(envelope.clone()));
            }
        }
        let request = envelope["requestId"].as_str().unwrap_or_default();
        let Some((number, letter)) = self.clients.book.parse(request) else {
            return;
        };
        let member = |pointer: &str| {
            envelope
                .pointer(pointer)
                .and_then(Value::as_str)?
                .parse()
                .ok()
        };
        match envelope["msgType"].as_str() {
            Some(kind @ ("approval.request" | "exchange.withdrawn")) if reply_to.is_none() => {
                let Some(message) = member("/msgId") else {
                    return;
                };
                let fact = Fact::Pushed {
                    to: Party::Approver(self.number),
                    channel: *channel,
                    message,
                };
                self.clients.book.note(number, fact);
                self.consider(kind, number, letter, request, message);
            }
            Some("ack.accepted") => {
                if let Some(message) = member("/body/msgId") {
                    let by = Party::Approver(self.number);
                    self.clients.book.note(number, Fact::Acked { by, message });
                }
            }
            Some("error") if reply_to.is_none() && !retryable(envelope) => {
                let what = format!(
                    "{}: frame about {request} refused: {}",
                    self.id,
                    code(envelope)
                );
                self.clients.book.odd(what);
            }
            _ => {}
        }
    }

    fn consider(
        self: &Arc<Self>,
        kind: &str,
        number: usize,
        letter: char,
        request: &str,
        message: Uuid,
    ) {
        let (approver, request) = (Arc::clone(self), request.to_owned());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let decides =
            kind == "approval.request" && !matches!(letter, 'e' | 'h') && seen.insert(number);
        drop(seen);
        let acks = self.clients.random.percent(50);
        self.clients.tasks.spawn(async move {
            if acks {
                approver.acknowledge(number, &request, message).await;
            }
            if decides {
                let think = match letter {
                    'l' => LATE_MS + approver.clients.random.next() % 800,
                    _ => approver.clients.random.next() % 30,
                };
                sleep(Duration::from_millis(think)).await;
                approver.decide(number, &request, true).await;
            }
        });
    }

    /// Decides everything in its inbox that it has not decided yet.
    pub async fn look(self: &Arc<Self>) {
        let path = format!("/v1/approvers/{}/inbox?limit=200", self.id);
        let call = Call::get(self.entrance, &path, &self.clients.keys.approver);
        let Some(answer) = self.clients.definite(&call).await else {
            return;
        };
        let items = answer.body.pointer("/body/items").and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            let request = item["requestId"].as_str().unwrap_or_default();
            let message = item["msgId"].as_str().and_then(|id| id.parse().ok());
            if let (Some((number, letter)), Some(message)) =
                (self.clients.book.parse(request), message)
            {
                self.consider("approval.request", number, letter, request, message);
            }
        }
    }

    async fn acknowledge(&self, number: usize, request: &str, message: Uuid) {
        let body = ack(request, "approver", &self.id, message);
        if let Some(socket) = &self.socket {
            drop(socket.send(body));
            return;
        }
        let key = &self.clients.keys.approver;
        let call = Call::post(self.entrance, "/v1/acks", key, &body);
        match self.clients.definite(&call).await {
            Some(answer) if answer.status == 200 => {
                let by = Party::Approver(self.number);
                self.clients.book.note(number, Fact::Acked { by, message });
            }
            Some(answer) => {
                let what = format!(
                    "{}: ack about {request} answered {}",
                    self.id, answer.status
                );
                self.clients.book.odd(what);
            }
            None => {}
        }
    }

    /// Decides until it knows what became of it. `timed` is false where something is in the way on
    /// purpose.
    pub async fn decide(&self, number: usize, request: &str, timed: bool) {
        let Clients {
            book, random, keys, ..
        } = &*self.clients;
        let decision = Decision {
            approver: self.number,
            nonce: random.next(),
            approve: random.percent(50),
        };
        let body = self.decision(request, decision);
        book.note(number, Fact::Tried(decision));
        let framed = self.by_frame(&body, decision.nonce).await;
        let (status, code) = match &framed {
            Some(answer) if answer["msgType"] == "decision.accepted" => (200, String::new()),
            Some(answer) if answer["msgType"] == "error" && !retryable(answer) => {
                (409, code(answer).to_owned())
            }
            _ => {
                let call = Call {
                    timed,
                    ..Call::post(self.entrance, "/v1/decisions", &keys.approver, &body)
                };
                let Some(answer) = self.clients.definite(&call).await else {
                    return;
                };
                (answer.status, answer.code().to_owned())
            }
        };
        let fact = match (status, code.as_str()) {
            (200, _) => Fact::Decided(decision),
            (_, "ALREADY_DECIDED") => Fact::NotDecided(decision, Refusal::Decided),
            (_, "EXPIRED") => Fact::NotDecided(decision, Refusal::Expired),
            (_, "NOT_FOUND") => Fact::NotDecided(decision, Refusal::Ended),
            _ => {
                let what = format!(
                    "{}: decision of {request} answered {status} {code}",
                    self.id
                );
                return book.odd(what);
            }
        };
        book.note(number, fact);
        if matches!(fact, Fact::Decided(_)) && random.percent(10) {
            self.look_elsewhere(number, request).await;
        }
    }

    /// Reads the exchange on another node, which must know the decision.
    async fn look_elsewhere(&self, number: usize, request: &str) {
        let entrance = 1 + (self.entrance + self.clients.random.below(2)) % 3;
        let path = format!("/v1/exchanges/{request}");
        let call = Call {
            timed: false,
            ..Call::get(entrance, &path, &self.clients.keys.approver)
        };
        let Some(answer) = self.clients.definite(&call).await else {
            return;
        };
        let state = answer.body.pointer("/body/state").and_then(Value::as_str);
        match (answer.status, state) {
            (200, Some("pendingApproval")) => self.clients.book.note(number, Fact::Stale),
            (200, _) => {}
            (status, _) => {
                let what = format!("{}: reading {request} answered {status}", self.id);
                self.clients.book.odd(what);
            }
        }
    }

    /// The answer to a frame, if its channel is a socket and there is one in time.
    async fn by_frame(&self, body: &Value, nonce: u64) -> Option<Value> {
        let socket = self.socket.as_ref()?;
        let mut frame = body.clone();
        frame["msgId"] = json!(nonce.to_string());
        let (answer, answered) = oneshot::channel();
        self.answers().insert(nonce.to_string(), answer);
        socket.send(frame).ok()?;
        timeout(PATIENCE / 2, answered).await.ok()?.ok()
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Value>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decision(&self, request: &str, decision: Decision) -> Value {
        let body = signed_body(decision);
        envelope("decision.submit", request, "approver", &self.id, &body)
    }
}

/// The body of a decision, as its approver signs it.
pub fn signed_body(decision: Decision) -> Value {
    let verdict = if decision.approve {
        "approve"
    } else {
        "reject"
    };
    let mut body = json!({
        "artifactHash": HASH,
        "decision": verdict,
        "nonce": decision.nonce.to_string(),
        "signerKeyId": "key-1",
    });
    // Sorted and without spaces, as it is, this is the canonical form.
    let signature = key_of(decision.approver).sign(body.to_string().as_bytes());
    body["signature"] = json!(URL_SAFE_NO_PAD.encode(signature.to_bytes()));
    body
}

fn key_of(number: u16) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(number).unwrap_or_default() + 1; 32])
}
