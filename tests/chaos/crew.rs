//! The clients of a run: who they are, where they enter, and how often they begin an exchange.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::approver::Approver;
use super::calls::{Answer, Call, Clients};
use super::channel::By::{self, Socket, Stream};
use super::enforcer::Enforcer;
use super::record::{Fact, Kind};
use super::webhook;

/// Exchanges that may be under way before no new ones begin: an outage must not end in a flood.
const AT_ONCE: usize = 300;
/// Where each enforcer enters and how it listens; none listens without a channel.
const ENFORCERS: [(usize, &[By]); 12] = [
    (0, &[]),
    (0, &[Stream]),
    (0, &[Socket]),
    (0, &[Socket, Stream]),
    (1, &[]),
    (2, &[Stream]),
    (3, &[Socket]),
    (1, &[Socket]),
    (2, &[]),
    (3, &[Stream]),
    // The one that is paired with a team.
    (0, &[Socket]),
    // The one that only probes.
    (1, &[]),
];
const SUBMITTING: usize = 10;
const PAIRED: usize = 10;
const PROBING: usize = 11;
/// The clients of approvers: two of them appear twice.
const APPROVERS: [(u16, usize, By); 11] = [
    (0, 0, Socket),
    (1, 0, Stream),
    (2, 1, Socket),
    (3, 2, Stream),
    (4, 3, Socket),
    (5, 0, Socket),
    (5, 1, Stream),
    (6, 0, Stream),
    (6, 2, Socket),
    (7, 0, Stream),
    (8, 3, Socket),
];
/// Whom plain exchanges are for.
const ASKED: usize = 7;
const TEAM: [u16; 3] = [1, 7, 8];
/// Has no client: nobody decides what probes submit.
const NOBODY: u16 = 9;
/// Those who have a webhook and no channel. Each is asked rarely, so that the next notification
/// does not make up for a lost one.
const NOTIFIED: [u16; 4] = [11, 12, 13, 14];

pub struct Crew {
    pub clients: Arc<Clients>,
    enforcers: Vec<Arc<Enforcer>>,
    pub approvers: Vec<Arc<Approver>>,
    under_way: AtomicUsize,
    pub stop: CancellationToken,
}

impl Crew {
    /// Registers keys, pairs the team, and opens all channels.
    pub async fn start(clients: Arc<Clients>) -> anyhow::Result<Arc<Self>> {
        for number in 0..NOBODY {
            if let Some(call) = Approver::registration(number, &clients.keys.admin) {
                expect(&clients, &call).await?;
            }
        }
        for number in NOTIFIED {
            let webhook = webhook::start(&clients, number).await?;
            expect(&clients, &webhook).await?;
        }
        for approver in TEAM {
            pair(&clients, PAIRED, approver).await?;
        }
        let enforcers = ENFORCERS
            .iter()
            .zip(0..)
            .map(|((entrance, by), number)| Enforcer::start(&clients, number, *entrance, by));
        let enforcers = enforcers.collect();
        let approvers = APPROVERS
            .iter()
            .map(|(number, entrance, by)| Approver::start(&clients, *number, *entrance, *by));
        let approvers = approvers.collect();
        Ok(Arc::new(Self {
            clients,
            enforcers,
            approvers,
            under_way: AtomicUsize::new(0),
            stop: CancellationToken::new(),
        }))
    }

    /// Begins exchanges at a rate until stopped.
    pub async fn work(self: Arc<Self>, rate: u32) {
        let mut ticks = interval(Duration::from_secs(1) / rate.max(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while self.stop.run_until_cancelled(ticks.tick()).await.is_some() {
            if self.under_way.load(Ordering::Relaxed) < AT_ONCE {
                self.begin_any();
            }
        }
    }

    fn begin_any(self: &Arc<Self>) {
        let random = &self.clients.random;
        let kind = match random.below(100) {
            0..6 => Kind::Withdrawn,
            6..10 => Kind::Expiring,
            10..14 => Kind::Late,
            14..26 => Kind::Team,
            26 => Kind::Notified,
            _ => Kind::Plain,
        };
        let (enforcer, approvers) = match kind {
            Kind::Team => (PAIRED, TEAM.to_vec()),
            Kind::Notified => {
                let approver = NOTIFIED.get(random.below(NOTIFIED.len())).copied();
                (random.below(SUBMITTING), vec![approver.unwrap_or_default()])
            }
            _ => {
                let approver = u16::try_from(random.below(ASKED)).unwrap_or_default();
                (random.below(SUBMITTING), vec![approver])
            }
        };
        self.begin(kind, enforcer, approvers);
    }

    /// Begins an exchange: its number and its request id.
    pub fn begin(
        self: &Arc<Self>,
        kind: Kind,
        enforcer: usize,
        approvers: Vec<u16>,
    ) -> (usize, String) {
        let crew = Arc::clone(self);
        let number = u16::try_from(enforcer).unwrap_or_default();
        let (number, request) = self.clients.book.begin(kind, number, approvers.clone());
        let begun = (number, request.clone());
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.clients.tasks.spawn(async move {
            if let Some(enforcer) = crew.enforcers.get(enforcer) {
                enforcer.exchange(kind, number, &request, &approvers).await;
            }
            crew.under_way.fetch_sub(1, Ordering::Relaxed);
        });
        begun
    }

    /// One submission that is not repeated. True if it was accepted.
    pub async fn probe(&self, entrance: usize) -> bool {
        let Some(enforcer) = self.enforcers.get(PROBING) else {
            return false;
        };
        let book = &self.clients.book;
        let (number, request) = book.begin(Kind::Expiring, enforcer.number, vec![NOBODY]);
        book.finish(number);
        let call = Call {
            entrance,
            ..enforcer.submission(&request, &[NOBODY], 5)
        };
        let accepted =
            matches!(self.clients.attempt(&call).await, Ok(answer) if answer.status == 202);
        if accepted {
            book.note(number, Fact::Accepted);
        }
        accepted
    }
}

/// A call of the setup, which must work.
async fn expect(clients: &Clients, call: &Call) -> anyhow::Result<Value> {
    let answer = clients.definite(call).await.context("no answer")?;
    let Answer { status, body, .. } = answer;
    anyhow::ensure!(
        matches!(status, 200 | 201),
        "{} answered {status}: {body}",
        call.path
    );
    Ok(body)
}

async fn pair(clients: &Clients, enforcer: usize, approver: u16) -> anyhow::Result<()> {
    let Clients { keys, .. } = clients;
    let enforcer = json!({ "enforcerId": format!("enforcer-{enforcer}") });
    let call = Call::post(1, "/v1/pairing/initiate", &keys.enforcer, &enforcer);
    let begun = expect(clients, &call).await?;
    let code = begun["code"].as_str().context("a code")?;
    let path = format!("/v1/pairing/resolve/{code}");
    expect(clients, &Call::get(1, &path, &keys.approver)).await?;
    let body = json!({ "nonce": begun["nonce"], "approverId": format!("approver-{approver}") });
    let call = Call::post(1, "/v1/pairing/complete", &keys.approver, &body);
    expect(clients, &call).await.map(drop)
}
