//! An enforcer: it submits, waits for the decision by long poll or by channel, and acknowledges it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use uuid::Uuid;

use super::approver::signed_body;
use super::calls::{Answer, Call, Clients, PATIENCE, code, envelope, in_seconds};
use super::channel::{self, Address, By, Received};
use super::record::{Decision, Fact, Kind, Party, Refusal};

const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";
/// How long an exchange lives that nobody decides.
const SHORT_LIFE: i64 = 3;
/// A client that would wait longer asks again.
const WAIT: u64 = 20;

/// Those who wait for events of an exchange.
#[derive(Default)]
struct Waiting {
    told: Option<oneshot::Sender<()>>,
    acked: Option<oneshot::Sender<()>>,
    /// The first push of some is not acknowledged, so that they must come again.
    ignored: bool,
}

pub struct Enforcer {
    pub number: u16,
    id: String,
    entrance: usize,
    clients: Arc<Clients>,
    /// Without a channel it asks for each decision.
    has_channel: bool,
    waiting: Mutex<HashMap<usize, Waiting>>,
}

impl Enforcer {
    /// Starts one, with a channel for each way it listens by.
    pub fn start(clients: &Arc<Clients>, number: u16, entrance: usize, by: &[By]) -> Arc<Self> {
        let enforcer = Arc::new(Self {
            number,
            id: Party::Enforcer(number).id(),
            entrance,
            clients: Arc::clone(clients),
            has_channel: !by.is_empty(),
            waiting: Mutex::default(),
        });
        for by in by.iter().copied() {
            let address = Address {
                by,
                entrance,
                role: "enforcer",
                id: enforcer.id.clone(),
                key: clients.keys.enforcer.clone(),
            };
            let mut ends = channel::open(clients, address);
            let listening = Arc::clone(&enforcer);
            tokio::spawn(async move {
                let answers = (by == By::Socket).then_some(ends.send);
                while let Some(received) = ends.received.recv().await {
                    listening.receive(&received, answers.as_ref());
                }
            });
        }
        enforcer
    }

    /// One exchange, from the submission to the confirmed acknowledgement; `number` was given by
    /// the record.
    pub async fn exchange(&self, kind: Kind, number: usize, request: &str, approvers: &[u16]) {
        let (told, tell) = oneshot::channel();
        let (acked, ack) = oneshot::channel();
        let waiting = Waiting {
            told: Some(told),
            acked: Some(acked),
            ignored: self.clients.random.percent(1),
        };
        self.lock().insert(number, waiting);
        self.run(kind, number, request, approvers, tell, ack).await;
        self.lock().remove(&number);
    }

    /// Nothing is returned where the run was over first; the checker sees what is missing.
    async fn run(
        &self,
        kind: Kind,
        number: usize,
        request: &str,
        approvers: &[u16],
        tell: oneshot::Receiver<()>,
        ack: oneshot::Receiver<()>,
    ) -> Option<()> {
        let Clients { book, random, .. } = &*self.clients;
        let life = match kind {
            kind if kind.is_short() => SHORT_LIFE,
            _ => 3_600,
        };
        let call = self.submission(request, approvers, life);
        let answer = self.clients.definite(&call).await?;
        match (answer.status, answer.code()) {
            (202, _) => book.note(number, Fact::Accepted),
            (422, "EXPIRED") if kind.is_short() => {
                book.finish(number);
                return Some(());
            }
            _ => self.unexpected("submission", request, &answer),
        }
        if kind == Kind::Withdrawn {
            sleep(Duration::from_millis(random.next() % 30)).await;
            if self.withdraw(number, request).await? {
                book.finish(number);
                return Some(());
            }
        }
        if self.has_channel && !kind.is_short() {
            let over = &self.clients.over;
            over.run_until_cancelled(tell).await?.ok()?;
            book.finish(number);
            return over.run_until_cancelled(ack).await?.ok();
        }
        let told = self.wait(number, request).await?;
        book.finish(number);
        let call = self.ack_call(request, told?);
        let answer = self.clients.definite(&call).await?;
        if answer.status != 200 {
            self.unexpected("acknowledgement", request, &answer);
        }
        self.acked(number, told?);
        Some(())
    }

    pub fn submission(&self, request: &str, approvers: &[u16], life: i64) -> Call {
        let body = json!({
            "artifactType": "command.review",
            "artifactHash": HASH,
            "ciphertext": { "alg": "A256GCM", "data": "c2VhbGVk", "nonce": "bm9uY2U" },
            "expiresAt": in_seconds(life),
        });
        let mut submission = envelope("artifact.submit", request, "enforcer", &self.id, &body);
        // A team is asked because it is paired.
        if let [approver] = approvers {
            let approver = Party::Approver(*approver).id();
            submission["recipient"] = json!({ "approverId": approver });
        }
        let key = &self.clients.keys.enforcer;
        Call {
            idempotency_key: Some(format!("key-{request}")),
            ..Call::post(self.entrance, "/v1/artifacts", key, &submission)
        }
    }

    /// Whether the exchange was withdrawn.
    async fn withdraw(&self, number: usize, request: &str) -> Option<bool> {
        let Clients { book, keys, .. } = &*self.clients;
        let body = envelope(
            "exchange.withdrawn",
            request,
            "enforcer",
            &self.id,
            &json!({}),
        );
        let path = format!("/v1/exchanges/{request}/withdraw");
        let call = Call::post(self.entrance, &path, &keys.enforcer, &body);
        book.note(number, Fact::TriedWithdrawal);
        let answer = self.clients.definite(&call).await?;
        let fact = match (answer.status, answer.code()) {
            (200, _) => Fact::Withdrawn,
            (409, "ALREADY_DECIDED") => Fact::NotWithdrawn(Refusal::Decided),
            // Only an attempt whose answer was lost can have ended it before.
            (409, "INVALID_STATE") if answer.retried => Fact::Withdrawn,
            _ => {
                self.unexpected("withdrawal", request, &answer);
                Fact::NotWithdrawn(Refusal::Ended)
            }
        };
        book.note(number, fact);
        Some(fact == Fact::Withdrawn)
    }

    /// Waits by long polls; the id of the decision's message, if there is a decision.
    async fn wait(&self, number: usize, request: &str) -> Option<Option<Uuid>> {
        let Clients { book, keys, .. } = &*self.clients;
        let path = format!("/v1/exchanges/{request}/wait?timeout={WAIT}");
        let call = Call {
            patience: Duration::from_secs(WAIT + 10),
            timed: false,
            ..Call::get(self.entrance, &path, &keys.enforcer)
        };
        loop {
            let answer = self.clients.definite(&call).await?;
            match (answer.status, answer.state.as_deref()) {
                (200, _) => {
                    let told = self.tell(number, &answer.body);
                    return told.map(Some);
                }
                (204, None) => {}
                (204, Some(state @ ("expired" | "withdrawn"))) => {
                    let withdrawn = state == "withdrawn";
                    book.note(number, Fact::Ended { withdrawn });
                    return Some(None);
                }
                _ => {
                    self.unexpected("wait", request, &answer);
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Notes a decision that this enforcer was told, about whichever exchange; the id of its
    /// message.
    fn tell(&self, number: usize, delivered: &Value) -> Option<Uuid> {
        let text = |pointer: &str| delivered.pointer(pointer).and_then(Value::as_str);
        let parse = || {
            let Party::Approver(approver) = Party::parse(text("/sender/approverId")?)? else {
                return None;
            };
            let decision = Decision {
                approver,
                nonce: text("/body/nonce")?.parse().ok()?,
                approve: text("/body/decision")? == "approve",
            };
            Some((text("/msgId")?.parse::<Uuid>().ok()?, decision))
        };
        let Some((message, decision)) = parse() else {
            let what = format!("{}: a decision that cannot be read: {delivered}", self.id);
            self.clients.book.odd(what);
            return None;
        };
        if delivered["body"] != signed_body(decision) {
            let what = format!(
                "{}: a decision is not what was signed: {delivered}",
                self.id
            );
            self.clients.book.odd(what);
        }
        let enforcer = self.number;
        let fact = Fact::Told {
            enforcer,
            message,
            decision,
        };
        self.clients.book.note(number, fact);
        Some(message)
    }

    fn receive(
        self: &Arc<Self>,
        received: &Received,
        socket: Option<&mpsc::UnboundedSender<Value>>,
    ) {
        let Received { envelope, channel } = received;
        let request = envelope["requestId"].as_str().unwrap_or_default();
        let Some((number, _)) = self.clients.book.parse(request) else {
            return;
        };
        match envelope["msgType"].as_str() {
            Some("decision.deliver") => {
                let Some(message) = self.tell(number, envelope) else {
                    return;
                };
                let fact = Fact::Pushed {
                    to: Party::Enforcer(self.number),
                    channel: *channel,
                    message,
                };
                self.clients.book.note(number, fact);
                let mut waiting = self.lock();
                if let Some(waiting) = waiting.get_mut(&number) {
                    if let Some(told) = waiting.told.take() {
                        let _ = told.send(());
                    }
                    if std::mem::take(&mut waiting.ignored) {
                        return;
                    }
                }
                drop(waiting);
                self.acknowledge(number, request, message, socket);
            }
            Some("ack.accepted") => {
                let message = envelope.pointer("/body/msgId").and_then(Value::as_str);
                if let Some(message) = message.and_then(|id| id.parse().ok()) {
                    self.acked(number, message);
                }
            }
            Some("error") if !retryable(envelope) => {
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

    /// Over a socket by a frame, otherwise by a call. A frame whose answer was lost is followed by
    /// a call, too: what was acknowledged does not come again.
    fn acknowledge(
        self: &Arc<Self>,
        number: usize,
        request: &str,
        message: Uuid,
        socket: Option<&mpsc::UnboundedSender<Value>>,
    ) {
        let framed = socket.is_some_and(|socket| {
            let frame = ack(request, "enforcer", &self.id, message);
            socket.send(frame).is_ok()
        });
        let (call, request) = (self.ack_call(request, message), request.to_owned());
        let enforcer = Arc::clone(self);
        self.clients.tasks.spawn(async move {
            if framed {
                sleep(PATIENCE / 2).await;
                let waits = |waiting: &Waiting| waiting.acked.is_some();
                if !enforcer.lock().get(&number).is_some_and(waits) {
                    return Some(());
                }
            }
            let answer = enforcer.clients.definite(&call).await?;
            if answer.status != 200 {
                enforcer.unexpected("acknowledgement", &request, &answer);
            }
            enforcer.acked(number, message);
            Some(())
        });
    }

    fn ack_call(&self, request: &str, message: Uuid) -> Call {
        let body = ack(request, "enforcer", &self.id, message);
        Call::post(
            self.entrance,
            "/v1/acks",
            &self.clients.keys.enforcer,
            &body,
        )
    }

    fn acked(&self, number: usize, message: Uuid) {
        let by = Party::Enforcer(self.number);
        self.clients.book.note(number, Fact::Acked { by, message });
        let acked = self.lock().get_mut(&number).and_then(|w| w.acked.take());
        if let Some(acked) = acked {
            let _ = acked.send(());
        }
    }

    fn unexpected(&self, what: &str, request: &str, answer: &Answer) {
        let Answer { status, body, .. } = answer;
        let what = format!("{}: {what} of {request} answered {status}: {body}", self.id);
        self.clients.book.odd(what);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Envelope that acknowledges a message.
pub fn ack(request: &str, role: &str, id: &str, message: Uuid) -> Value {
    let body =
        json!({ "msgId": message.to_string(), "status": "processed", "ackAt": in_seconds(0) });
    envelope("ack.submit", request, role, id, &body)
}

pub fn retryable(error: &Value) -> bool {
    error.pointer("/body/retryable").and_then(Value::as_bool) == Some(true)
}
