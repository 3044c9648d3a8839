//! How load is made: as fast as answers come, or on a timetable that does not wait for them. A call
//! on a timetable is timed from when it was due, not from when it could be sent: a stall counts for
//! everyone it delayed.

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::try_join_all;
use sqlx::{Connection as _, Executor as _, PgConnection};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{Instant, sleep_until};

use super::machine::ProcessorTime;

/// Left out at the beginning: connections, caches and plans warm up.
pub const WARM_UP: Duration = Duration::from_secs(2);

/// Runs `lanes` loops side by side until the time is up, and tells how many turns a second they
/// made. Meanwhile the database is analysed once, as it analyses itself in the first minutes of its
/// life.
pub async fn saturate<F, L>(
    database: &str,
    lanes: Vec<L>,
    seconds: u64,
    turn: F,
) -> anyhow::Result<f64>
where
    F: AsyncFn(&mut L) -> anyhow::Result<()>,
{
    let begin = Instant::now() + WARM_UP;
    let end = begin + Duration::from_secs(seconds);
    let turns = Cell::new(0_u32);
    let before = OnceCell::new();
    let analysed = async {
        sleep_until(begin - WARM_UP / 2).await;
        analyse(database).await
    };
    let run = try_join_all(lanes.into_iter().map(async |mut lane| {
        loop {
            turn(&mut lane).await?;
            let now = Instant::now();
            if now >= end {
                return anyhow::Ok(());
            }
            if now >= begin {
                before.get_or_init(ProcessorTime::now);
                turns.set(turns.get() + 1);
            }
        }
    }));
    tokio::try_join!(analysed, run)?;
    if let Some(before) = before.get() {
        let cost = ProcessorTime::now().per_turn(*before, turns.get());
        eprintln!("  each turn cost {cost} in processor time");
    }
    Ok(f64::from(turns.get()) / Duration::from_secs(seconds).as_secs_f64())
}

/// Tells the planner what there is by now.
pub async fn analyse(database: &str) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(database).await?;
    connection.execute("analyze").await?;
    Ok(())
}

/// A timetable, shared by those who keep it.
#[derive(Clone)]
pub struct Timetable {
    begin: Instant,
    every: Duration,
    count: u32,
    next: Rc<Cell<u32>>,
}

impl Timetable {
    pub fn new(a_second: f64, seconds: u64) -> Self {
        let every = Duration::from_secs_f64(1.0 / a_second);
        let count = Duration::from_secs(seconds).as_nanos() / every.as_nanos();
        Self {
            begin: Instant::now(),
            every,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            next: Rc::default(),
        }
    }

    /// Waits for the next entry that nobody has taken, and tells when it was due; nothing at the
    /// end.
    pub async fn next(&self) -> Option<Instant> {
        let turn = self.next.get();
        if turn >= self.count {
            return None;
        }
        self.next.set(turn + 1);
        let due = self.begin + self.every * turn;
        sleep_until(due).await;
        Some(due)
    }
}

/// Runs `lanes` loops side by side that share a timetable, and tells how long after it was due each
/// entry was done, in milliseconds.
pub async fn keep<F, L>(lanes: Vec<L>, timetable: &Timetable, turn: F) -> anyhow::Result<Latencies>
where
    F: AsyncFn(&mut L) -> anyhow::Result<()>,
{
    let all = try_join_all(lanes.into_iter().map(async |mut lane| {
        let mut taken = Vec::new();
        while let Some(due) = timetable.next().await {
            turn(&mut lane).await?;
            taken.push(due.elapsed().as_secs_f64() * 1_000.0);
        }
        anyhow::Ok(taken)
    }))
    .await?;
    Ok(Latencies::new(all.into_iter().flatten().collect()))
}

/// How long things took, in milliseconds.
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// Of these.
    pub fn new(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        Self(all)
    }

    /// The value that `per_mille` in a thousand do not exceed.
    pub fn quantile(&self, per_mille: usize) -> f64 {
        let at = (self.0.len() * per_mille / 1_000).min(self.0.len().saturating_sub(1));
        self.0.get(at).copied().unwrap_or(f64::NAN)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The one in the middle: one slow round is no result.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Measures each of several things once in every round, and begins with another one each time:
/// nobody always comes first.
pub async fn in_turns<T, const N: usize>(
    rounds: usize,
    measure: impl AsyncFn(usize) -> anyhow::Result<T>,
) -> anyhow::Result<[Vec<T>; N]> {
    let mut all = [const { Vec::new() }; N];
    for round in 0..rounds {
        for turn in 0..N {
            let which = (round + turn) % N;
            all[which].push(measure(which).await?);
        }
    }
    Ok(all)
}

/// Tries once per node or other choice, one after the other, and collects what comes of it.
pub async fn each<T, F: Future<Output = anyhow::Result<T>>>(
    turns: impl Iterator<Item = F>,
) -> anyhow::Result<Vec<T>> {
    let mut all = Vec::new();
    for turn in turns {
        all.push(turn.await?);
    }
    Ok(all)
}

/// A random id, as clients make them.
pub fn random_id() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
    Ok(id.to_string())
}

/// An id in the order of time: PostgreSQL writes far less for it than for a random one.
#[expect(
    clippy::disallowed_methods,
    reason = "the generator has a clock of its own"
)]
pub fn time_id() -> anyhow::Result<String> {
    let mut bytes = [0; 10];
    getrandom::fill(&mut bytes)?;
    let millis = (OffsetDateTime::now_utc() - OffsetDateTime::UNIX_EPOCH).whole_milliseconds();
    let id = uuid::Builder::from_unix_timestamp_millis(u64::try_from(millis)?, &bytes);
    Ok(id.into_uuid().to_string())
}

/// A time from now, as clients print it.
#[expect(
    clippy::disallowed_methods,
    reason = "the generator has a clock of its own"
)]
pub fn in_seconds(ahead: i64) -> anyhow::Result<String> {
    let at = OffsetDateTime::now_utc() + time::Duration::seconds(ahead);
    Ok(at.format(&Rfc3339)?)
}

/// The time as the database's host prints it, in seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "compared with the commit times of a database on the same machine"
)]
pub fn wall_clock() -> f64 {
    (OffsetDateTime::now_utc() - OffsetDateTime::UNIX_EPOCH).as_seconds_f64()
}
