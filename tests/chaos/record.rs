//! Every answer and message that clients got, in their order.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::trials::CommandTrial;

/// A client, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Party {
    Enforcer(u16),
    Approver(u16),
}

impl Party {
    /// Its id on the wire and in the database.
    pub fn id(self) -> String {
        match self {
            Self::Enforcer(number) => format!("enforcer-{number}"),
            Self::Approver(number) => format!("approver-{number}"),
        }
    }

    /// The party with this id.
    pub fn parse(id: &str) -> Option<Self> {
        let (role, number) = id.rsplit_once('-')?;
        let number = number.parse().ok()?;
        match role {
            "enforcer" => Some(Self::Enforcer(number)),
            "approver" => Some(Self::Approver(number)),
            _ => None,
        }
    }
}

/// The planned end of an exchange, unless a fault intervenes. The letter is part of its id, so that
/// approvers know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One approver id decides, possibly by two clients that disagree.
    Plain,
    /// Three paired approvers are asked, and all decide.
    Team,
    /// The enforcer withdraws it while the approver decides.
    Withdrawn,
    /// Nobody decides it.
    Expiring,
    /// It is decided about when it expires.
    Late,
    /// Only a fault decides it.
    Held,
    /// Its approver has no channel, and looks when it is notified.
    Notified,
}

impl Kind {
    /// Whether it expires within seconds.
    pub fn is_short(self) -> bool {
        matches!(self, Self::Expiring | Self::Late)
    }

    pub fn letter(self) -> char {
        match self {
            Self::Plain => 'p',
            Self::Team => 't',
            Self::Withdrawn => 'w',
            Self::Expiring => 'e',
            Self::Late => 'l',
            Self::Held => 'h',
            Self::Notified => 'n',
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    pub approver: u16,
    pub nonce: u64,
    pub approve: bool,
}

/// Why a decision or a withdrawal was refused, for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Another decision was there.
    Decided,
    Expired,
    /// 404, or `INVALID_STATE` of a withdrawal: it has ended otherwise.
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// The submission was accepted.
    Accepted,
    /// A decision was sent at least once.
    Tried(Decision),
    Decided(Decision),
    /// Another node showed it as pending after its decision was accepted.
    Stale,
    NotDecided(Decision, Refusal),
    TriedWithdrawal,
    Withdrawn,
    NotWithdrawn(Refusal),
    /// A message came over a channel.
    Pushed {
        to: Party,
        channel: u32,
        message: Uuid,
    },
    /// An enforcer got the decision, by push or by wait.
    Told {
        enforcer: u16,
        message: Uuid,
        decision: Decision,
    },
    /// A wait ended without a decision: `withdrawn`, or else `expired`.
    Ended {
        withdrawn: bool,
    },
    /// The gateway confirmed an acknowledgement.
    Acked {
        by: Party,
        message: Uuid,
    },
}

#[derive(Clone)]
pub struct Exchange {
    pub kind: Kind,
    pub enforcer: u16,
    pub approvers: Vec<u16>,
    pub begun: Duration,
    /// When its enforcer knew how it ended.
    pub finished: Option<Duration>,
    pub facts: Vec<(Duration, Fact)>,
}

/// How an attempt at a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Answered,
    /// A status that asks for a retry.
    Status(u16),
    TimedOut,
    Broken,
}

/// An attempt at a call.
#[derive(Clone, Copy)]
pub struct Sample {
    pub begun: Duration,
    pub ended: Duration,
    /// 0 is the balancer, 1 to 3 are the nodes.
    pub entrance: usize,
    pub outcome: Outcome,
    /// Whether the call waits for nobody but the gateway.
    pub timed: bool,
}

/// From the injection of a fault until it was taken away.
#[derive(Clone)]
pub struct Span {
    pub begun: Duration,
    pub ended: Duration,
    /// Whether the database lost what it had not flushed.
    pub crash: bool,
}

/// All of it; cloned by the self-test, which changes copies.
#[derive(Clone, Default)]
pub struct Record {
    /// The first part of every request id.
    pub run: String,
    pub exchanges: Vec<Exchange>,
    pub samples: Vec<Sample>,
    /// When each channel was opened.
    pub channels: Vec<Duration>,
    pub spans: Vec<Span>,
    /// When notifications arrived, and for which approver.
    pub notified: Vec<(Duration, u16)>,
    /// Calls of the real commands.
    pub trials: Vec<CommandTrial>,
    /// Violations that do not concern the database: an answer that should not be, a wait beyond the
    /// bound.
    pub odd: Vec<(Duration, String)>,
}

impl Record {
    pub fn request_id(&self, number: usize) -> Option<String> {
        let letter = self.exchanges.get(number)?.kind.letter();
        Some(format!("{}-{number}-{letter}", self.run))
    }
}

/// The record while it is written.
pub struct Book {
    epoch: Instant,
    record: Mutex<Record>,
}

impl Book {
    pub fn new(run: String) -> Self {
        Self {
            epoch: Instant::now(),
            record: Mutex::new(Record {
                run,
                ..Record::default()
            }),
        }
    }

    pub fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    pub fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new exchange: its number and its request id.
    pub fn begin(&self, kind: Kind, enforcer: u16, approvers: Vec<u16>) -> (usize, String) {
        let begun = self.now();
        let mut record = self.lock();
        let number = record.exchanges.len();
        record.exchanges.push(Exchange {
            kind,
            enforcer,
            approvers,
            begun,
            finished: None,
            facts: Vec::new(),
        });
        let id = record.request_id(number).unwrap_or_default();
        (number, id)
    }

    /// The number and the letter of the kind in a request id of this run.
    pub fn parse(&self, request: &str) -> Option<(usize, char)> {
        let record = self.lock();
        let rest = request.strip_prefix(record.run.as_str())?;
        let (number, letter) = rest.strip_prefix('-')?.split_once('-')?;
        Some((number.parse().ok()?, letter.chars().next()?))
    }

    pub fn note(&self, exchange: usize, fact: Fact) {
        let at = self.now();
        if let Some(exchange) = self.lock().exchanges.get_mut(exchange) {
            exchange.facts.push((at, fact));
        }
    }

    pub fn finish(&self, exchange: usize) {
        let at = self.now();
        if let Some(exchange) = self.lock().exchanges.get_mut(exchange) {
            exchange.finished.get_or_insert(at);
        }
    }

    pub fn odd(&self, what: String) {
        let at = self.now();
        self.lock().odd.push((at, what));
    }

    pub fn sample(&self, sample: Sample) {
        self.lock().samples.push(sample);
    }

    /// A channel was opened: its number.
    pub fn channel(&self) -> u32 {
        let at = self.now();
        let mut record = self.lock();
        record.channels.push(at);
        u32::try_from(record.channels.len() - 1).unwrap_or(u32::MAX)
    }

    pub fn notify(&self, approver: u16) {
        let at = self.now();
        self.lock().notified.push((at, approver));
    }

    /// Exchanges that began before `time` and whose enforcers still do not know how they ended.
    /// Those that wait for a notification may take longer.
    pub fn unfinished(&self, time: Duration) -> Vec<usize> {
        let record = self.lock();
        let exchanges = record.exchanges.iter().enumerate();
        exchanges
            .filter(|(_, exchange)| exchange.kind != Kind::Notified)
            .filter(|(_, exchange)| exchange.begun < time && exchange.finished.is_none())
            .map(|(number, _)| number)
            .collect()
    }

    pub fn count(&self) -> usize {
        self.lock().exchanges.len()
    }
}
