//! The requests of one server. Each has its own task and its own enforcer, so that none waits for
//! another. Only an accepted decision approves anything.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign::agent::receipt_folder;
use countersign::client::enforcer::{ApprovalRequest, Enforcer, RuleDemand};
use countersign::client::profile::ProfileFile;
use countersign::client::visible;
use countersign::clock::Clock;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answers;
use crate::commands::approver::payload_headline;
use crate::commands::client_options::ClientOptions;
use crate::commands::enforcer::{ContentOptions, demands};
use crate::commands::guard::{AskCall, AskReply, GuardAddress, answer};
use crate::commands::output::remark;
use crate::commands::waiting::WaitingFile;

/// Requests that may wait for a decision at once.
pub const MAX_PENDING: usize = 64;
/// Requests that have ended and are kept for `check_approval`.
const MAX_ENDED: usize = 256;
const BY: &str = "countersign mcp";
/// A request that is just being sent has this long to arrive before it is withdrawn. A request
/// that arrives after its withdrawal would stay.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
enum RequestState {
    /// The gateway does not have it yet.
    Asking,
    Waiting {
        id: String,
        asked: String,
        until: Instant,
    },
    Ended(Value),
}

/// A request, as seen by a call that waits for it.
#[derive(Clone)]
pub struct OpenRequest {
    state: watch::Receiver<RequestState>,
    /// Why the gateway cannot be asked at the moment, if so.
    trouble: watch::Receiver<Option<String>>,
    withdrawal: CancellationToken,
    begun: Instant,
    pub timeout: Duration,
}

impl OpenRequest {
    /// Waits for the answer.
    pub async fn ended(&mut self) -> Value {
        let ended = self
            .state
            .wait_for(|state| matches!(state, RequestState::Ended(_)));
        match ended.await.as_deref() {
            Ok(RequestState::Ended(answer)) => answer.clone(),
            // Its task has panicked.
            Ok(RequestState::Asking | RequestState::Waiting { .. }) | Err(_) => {
                answers::failed("internal error; nothing was approved")
            }
        }
    }

    /// Waits until the gateway has it or it has ended, and tells which.
    pub async fn sent(&mut self) -> Value {
        let sent = self
            .state
            .wait_for(|state| !matches!(state, RequestState::Asking));
        if sent.await.is_err() {
            return self.ended().await;
        }
        self.now()
    }

    pub fn now(&self) -> Value {
        let state = self.state.borrow();
        match &*state {
            RequestState::Asking => answers::pending(None, &self.note_of(&state), self.timeout),
            RequestState::Waiting { id, until, .. } => {
                let left = until.saturating_duration_since(Instant::now());
                answers::pending(Some(id), &self.note_of(&state), left)
            }
            RequestState::Ended(answer) => answer.clone(),
        }
    }

    /// One line for a person who watches.
    pub fn note(&self) -> String {
        self.note_of(&self.state.borrow())
    }

    fn note_of(&self, state: &RequestState) -> String {
        let note = match state {
            RequestState::Asking => "asking".to_owned(),
            RequestState::Waiting { asked, .. } => format!("waiting for {asked}"),
            RequestState::Ended(_) => return "decided".to_owned(),
        };
        match &*self.trouble.borrow() {
            Some(trouble) => format!("{note} ({trouble})"),
            None => note,
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed().min(self.timeout)
    }

    /// Takes it back, unless it has ended already.
    pub async fn withdraw(&mut self) -> Value {
        self.withdrawal.cancel();
        self.ended().await
    }
}

#[derive(Default)]
struct KnownRequests {
    requests: HashMap<String, OpenRequest>,
    /// The ids of those that have ended, oldest first.
    ended: VecDeque<String>,
}

pub struct OpenRequests {
    options: ClientOptions,
    guard: Option<GuardAddress>,
    slots: Arc<Semaphore>,
    known: Mutex<KnownRequests>,
    tasks: TaskTracker,
    /// Withdraws everything.
    stop: CancellationToken,
}

impl OpenRequests {
    pub fn new(options: ClientOptions, guard: Option<GuardAddress>) -> Arc<Self> {
        Arc::new(Self {
            options,
            guard,
            slots: Arc::new(Semaphore::new(MAX_PENDING)),
            known: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The profile is read anew for each request, so that one that was repaired works at once.
    pub fn enforcer(&self) -> anyhow::Result<Enforcer> {
        let file = self.options.file()?;
        let mut enforcer = Enforcer::open(&file, &Clock::system())?;
        enforcer.keep_receipts(receipt_folder(&file).map_err(anyhow::Error::msg)?);
        Ok(enforcer)
    }

    /// `rule` adds to those of the policy.
    pub fn begin(
        self: &Arc<Self>,
        wanted: ContentOptions,
        rule: Option<RuleDemand>,
    ) -> anyhow::Result<OpenRequest> {
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        let slot = slot.map_err(|_| {
            anyhow::anyhow!(
                "{MAX_PENDING} requests are already waiting; wait for one with check_approval, or withdraw one with withdraw_approval"
            )
        })?;
        let enforcer = match self.guard {
            Some(_) => None,
            None => Some(self.enforcer()?),
        };
        let trouble = (enforcer.as_ref()).map(|enforcer| enforcer.client().trouble());
        let limit = wanted.timeout;
        let (mut wanted, file) = (wanted.request()?, self.options.file()?);
        let sentence = payload_headline(&wanted.artifact_type, &wanted.payload);
        let notice = match self.guard {
            Some(_) => WaitingFile::new(&file, BY, sentence),
            None => WaitingFile::of_profile(&file, BY, sentence),
        };
        let (states, state) = watch::channel(RequestState::Asking);
        let request = OpenRequest {
            state,
            trouble: trouble.unwrap_or_else(|| watch::channel(None).1),
            withdrawal: self.stop.child_token(),
            begun: Instant::now(),
            timeout: limit,
        };
        let mut task = RequestTask {
            requests: Arc::clone(self),
            request: request.clone(),
            states,
            id: None,
        };
        self.tasks.spawn(async move {
            let guard = task.requests.guard.clone();
            let answer = match demands(&mut wanted, rule, &file, guard.as_ref()).await {
                Ok(rules) => {
                    if let Some(enforcer) =
                        enforcer.filter(|it| rules.is_empty() && !it.asks_teams_only())
                    {
                        task.ask(enforcer, wanted, notice).await
                    } else {
                        let call = AskCall {
                            rules,
                            ..AskCall::new(wanted)
                        };
                        task.ask_call(guard.as_ref(), &file, call, notice).await
                    }
                }
                Err(problem) => answers::failed(&problem),
            };
            task.states.send_replace(RequestState::Ended(answer));
            drop(slot);
            if let Some(id) = task.id {
                task.requests.forget_oldest(id);
            }
        });
        Ok(request)
    }

    /// A request of this server, however it stands.
    pub fn find(&self, id: &str) -> Option<OpenRequest> {
        self.known().requests.get(id).cloned()
    }

    fn forget_oldest(&self, ended: String) {
        let mut known = self.known();
        known.ended.push_back(ended);
        if known.ended.len() > MAX_ENDED
            && let Some(oldest) = known.ended.pop_front()
        {
            known.requests.remove(&oldest);
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownRequests> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Withdraws everything that waits, and returns once that is done.
    pub async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Asks for one request, and tells how it stands.
struct RequestTask {
    requests: Arc<OpenRequests>,
    request: OpenRequest,
    states: watch::Sender<RequestState>,
    /// Set once the request can be found.
    id: Option<String>,
}

impl RequestTask {
    fn publish(&mut self, id: &str) {
        let mut known = self.requests.known();
        known.requests.insert(id.to_owned(), self.request.clone());
        self.id = Some(id.to_owned());
    }

    async fn ask(
        &mut self,
        mut enforcer: Enforcer,
        wanted: ApprovalRequest,
        mut notice: WaitingFile,
    ) -> Value {
        let withdrawal = self.request.withdrawal.clone();
        let prepared = tokio::select! {
            biased;
            () = withdrawal.cancelled() => return answers::withdrawn(None, Ok(())),
            prepared = enforcer.prepare(wanted) => prepared,
        };
        let mut pending = match prepared {
            Ok(pending) => pending,
            Err(denial) => return answers::denied(None, &denial),
        };
        let id = pending.request_id().to_string();
        let asked: Vec<_> = pending.asked().map(|id| visible(id.as_str())).collect();
        let left = pending.time_left();
        let until = Instant::now() + left;
        self.publish(&id);
        let sent = CancellationToken::new();
        let decided = {
            let deciding = pending.decision(|| {
                sent.cancel();
                notice.show(&id, &asked, left.as_secs());
                let (id, asked) = (id.clone(), asked.join(", "));
                self.states
                    .send_replace(RequestState::Waiting { id, asked, until });
            });
            let withdrawn = async {
                withdrawal.cancelled().await;
                let _not_sent = timeout(SEND_TIMEOUT, sent.cancelled()).await;
            };
            tokio::select! {
                biased;
                decided = deciding => Some(decided),
                () = withdrawn => None,
            }
        };
        let answer = match decided {
            Some(Ok(accepted)) => answers::approved(&id, &accepted),
            Some(Err(denial)) => answers::denied(Some(&id), &denial),
            None => answers::withdrawn(Some(&id), pending.withdraw("withdrawn by the agent").await),
        };
        log(enforcer.take_receipt_problem());
        answer
    }

    /// The same by rules, or through a guard, which withdraws the request when the connection ends.
    async fn ask_call(
        &mut self,
        guard: Option<&GuardAddress>,
        file: &ProfileFile,
        call: AskCall,
        mut notice: WaitingFile,
    ) -> Value {
        let withdrawal = self.request.withdrawal.clone();
        let is_listed = call.rules.is_empty();
        let mut asked = |id: &str, approvers: &[String], seconds| {
            self.publish(id);
            if is_listed {
                notice.show(id, approvers, seconds);
            }
            self.states.send_replace(RequestState::Waiting {
                id: id.to_owned(),
                asked: approvers.join(", "),
                until: Instant::now() + Duration::from_secs(seconds),
            });
        };
        let Some(guard) = guard else {
            let asked = &mut |id: &str, approvers: Vec<String>, seconds| {
                asked(id, &approvers, seconds);
            };
            let answered = answer(file, call, &withdrawal, asked, async || Ok(()));
            return logged(answered.await);
        };
        tokio::select! {
            biased;
            replied = guard.ask(call, asked, async || Ok(())) => match replied {
                Ok(reply) => logged(reply),
                Err(problem) => answers::failed(&problem),
            },
            () = withdrawal.cancelled() => answers::withdrawn(None, Ok(())),
        }
    }
}

fn logged(mut reply: AskReply) -> Value {
    log(reply.remark.take());
    answers::replied(reply)
}

/// For the person who reads the agent's log. The model has no use for it.
fn log(note: Option<String>) {
    if let Some(note) = note {
        remark(&format!("countersign: {note}"));
    }
}
