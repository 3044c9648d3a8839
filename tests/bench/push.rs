//! Push latency: from the commit on one node to the socket on another, against a bare commit with
//! NOTIFY to a listener.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_blocking, spawn_local};
use tokio::time::{Instant, timeout};

use super::Bench;
use super::client::{Socket, member};
use super::load::{
    Latencies, Timetable, analyse, each, in_seconds, in_turns, keep, median, random_id, wall_clock,
};
use super::nodes::{Nodes, Running};
use super::postgres::Database;
use super::report::Target;
use super::submissions::{Artifact, CONNECTIONS, Lane};

/// Pushes a second.
const A_SECOND: f64 = 200.0;
/// Submissions a second beside them.
const LOAD: f64 = 2_500.0;
/// Approvers who listen.
const LISTENERS: usize = 20;
/// Connections that submit to them.
const SUBMITTERS: usize = 8;
/// The delay of a flush on a slow disk.
const SLOW_FLUSH: Duration = Duration::from_millis(5);
/// How long the last push may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs on a thread of its own: the one that stamps arrivals has no other work meanwhile.
async fn apart<T, F>(work: impl FnOnce() -> F + Send + 'static) -> anyhow::Result<T>
where
    T: Send + 'static,
    F: Future<Output = anyhow::Result<T>>,
{
    spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, work())
    })
    .await?
}

/// From sending COMMIT, with a row of the usual size and a NOTIFY in the transaction, to the
/// listener.
async fn notified(database: String, seconds: u64) -> anyhow::Result<Latencies> {
    let mut writer = PgConnection::connect(&database).await?;
    // Kept as the gateway keeps artifacts: not compressed.
    writer
        .execute(
            "create table notes (id text primary key, body text not null);
             alter table notes alter column body set storage external",
        )
        .await?;
    let mut listener = PgListener::connect(&database).await?;
    listener.listen("notes").await?;
    let (sender, mut heard) = mpsc::unbounded_channel();
    let listening = spawn_local(async move {
        while let Ok(note) = listener.recv().await {
            if sender
                .send((note.payload().to_owned(), Instant::now()))
                .is_err()
            {
                return;
            }
        }
    });
    let (timetable, artifact) = (Timetable::new(A_SECOND, seconds), Artifact::usual()?);
    let mut taken = Vec::new();
    while timetable.next().await.is_some() {
        let id = random_id()?;
        let mut transaction = writer.begin().await?;
        sqlx::query("insert into notes values ($1, $2)")
            .bind(&id)
            .bind(artifact.body())
            .execute(&mut *transaction)
            .await?;
        sqlx::query("select pg_notify('notes', $1)")
            .bind(&id)
            .execute(&mut *transaction)
            .await?;
        let begun = Instant::now();
        transaction.commit().await?;
        let (_, at) = timeout(PATIENCE, heard.recv())
            .await?
            .ok_or_else(|| anyhow::anyhow!("the listener ended"))?;
        taken.push((at - begun).as_secs_f64() * 1_000.0);
    }
    listening.abort();
    Ok(Latencies::new(taken))
}

/// An approver that acknowledges what it is pushed, and tells when it came.
async fn listen(
    mut socket: Socket,
    approver: String,
    pushed: mpsc::UnboundedSender<(String, f64)>,
) -> anyhow::Result<()> {
    let now = in_seconds(-1)?;
    loop {
        let message = socket.next_of("approval.request").await?;
        let at = wall_clock();
        let id = member(&message, "requestId").unwrap_or_default();
        let message_id = member(&message, "msgId").unwrap_or_default();
        let ack = format!(
            r#"{{"msgType":"ack.submit","requestId":"{id}","createdAt":"{now}","sender":{{"approverId":"{approver}"}},"body":{{"msgId":"{message_id}","status":"processed","ackAt":"{now}"}}}}"#
        );
        if pushed.send((id.to_owned(), at)).is_err() {
            return Ok(());
        }
        socket.send(ack).await?;
    }
}

/// Submits to listeners on another node, on a timetable, and tells how long after its commit each
/// push was there.
async fn pushed(nodes: Nodes, seconds: u64, run: String) -> anyhow::Result<Latencies> {
    let (sender, mut received) = mpsc::unbounded_channel();
    let name = |n: usize| format!("{run}-{}", n % LISTENERS);
    let mut listening = Vec::new();
    for n in 0..LISTENERS {
        let socket = Socket::open(nodes.address(1), "approver", &name(n), &nodes.approver).await?;
        listening.push(spawn_local(listen(socket, name(n), sender.clone())));
    }
    let lanes = each((0..SUBMITTERS).map(async |_| {
        // All on the first node: the listeners are on the second.
        let mut lanes = Lane::open(&nodes, 1, &Artifact::usual()?).await?;
        lanes.pop().ok_or_else(|| anyhow::anyhow!("no lane"))
    }))
    .await?;
    let timetable = Timetable::new(A_SECOND, seconds);
    let sent = std::cell::RefCell::new(Vec::new());
    keep(lanes, &timetable, async |lane: &mut Lane| {
        let id = random_id()?;
        let turn = sent.borrow().len();
        sent.borrow_mut().push(id.clone());
        lane.submit_to(&id, &name(turn)).await
    })
    .await?;
    let sent = sent.into_inner();
    let mut arrived = HashMap::new();
    while arrived.len() < sent.len() {
        let next = timeout(PATIENCE, received.recv()).await;
        anyhow::ensure!(next.is_ok(), "{} of {} came", arrived.len(), sent.len());
        if let Ok(Some((id, at))) = next {
            arrived.entry(id).or_insert(at);
        }
    }
    for task in listening {
        task.abort();
    }
    let mut connection = PgConnection::connect(&nodes.url).await?;
    let commits = sqlx::query(
        "select request_id, extract(epoch from pg_xact_commit_timestamp(xmin))::float8 as at
           from exchanges where tenant_id = $1 and request_id = any ($2)",
    )
    .bind(&nodes.tenant)
    .bind(&sent)
    .fetch_all(&mut connection)
    .await?;
    let taken = commits
        .iter()
        .filter_map(|row| {
            let came = arrived.get(row.get::<&str, _>("request_id"))?;
            Some((came - row.get::<f64, _>("at")) * 1_000.0)
        })
        .collect();
    Ok(Latencies::new(taken))
}

/// The same on a thread of its own.
async fn push(bench: &Bench, nodes: &Nodes, run: &str) -> anyhow::Result<Latencies> {
    let (nodes, seconds, run) = (nodes.clone(), bench.seconds, run.to_owned());
    let taken = apart(move || pushed(nodes, seconds, run)).await?;
    anyhow::ensure!(taken.len() > 100, "too few pushes to speak of");
    Ok(taken)
}

/// The reference, on a database of its own.
async fn bare(bench: &Bench) -> anyhow::Result<Latencies> {
    let database = bench.postgres.database().await?;
    let bare = bare_on(bench, &database).await?;
    database.remove().await?;
    Ok(bare)
}

async fn bare_on(bench: &Bench, database: &Database) -> anyhow::Result<Latencies> {
    let (url, seconds) = (database.url.clone(), bench.seconds);
    apart(move || notified(url, seconds)).await
}

/// Pushes by nodes that do nothing else.
async fn calm(bench: &Bench, nodes: &Nodes) -> anyhow::Result<Latencies> {
    push(bench, nodes, &random_id()?).await
}

/// Pushes by nodes that also take `LOAD` submissions to others; or, instead of them, the reference.
async fn beside_load(bench: &Bench, nodes: &Nodes, reference: bool) -> anyhow::Result<Latencies> {
    // Made before the load begins: it writes out everything.
    let database = bench.postgres.database().await?;
    let artifact = Artifact::usual()?;
    let lanes = Lane::open(nodes, CONNECTIONS, &artifact).await?;
    let timetable = Timetable::new(LOAD, bench.seconds + 2);
    let begun = Instant::now();
    let load = async {
        keep(lanes, &timetable, Lane::submit).await?;
        let late =
            begun.elapsed().as_secs_f64() / Duration::from_secs(bench.seconds + 2).as_secs_f64();
        if late > 1.2 {
            // A slow disk: the figure and its reference still have the same load beside them.
            eprintln!("the load of {LOAD:.0}/s took {late:.1} times its time");
        }
        anyhow::Ok(())
    };
    let measured = async {
        if reference {
            bare_on(bench, &database).await
        } else {
            push(bench, nodes, &random_id()?).await
        }
    };
    let ((), taken) = tokio::try_join!(load, measured)?;
    database.remove().await?;
    Ok(taken)
}

/// Two nodes that have pushed before: the first push of a node prepares its statements.
async fn warm(bench: &Bench) -> anyhow::Result<Running> {
    let nodes = bench.nodes(2).await?;
    push(bench, &nodes, "warm").await?;
    analyse(&nodes.url).await?;
    Ok(nodes)
}

/// Fills the inboxes of the listeners to come.
async fn fill(nodes: &Nodes, run: &str, each_has: usize) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(&nodes.url).await?;
    for n in 0..LISTENERS {
        super::inbox::fill(
            &mut connection,
            &nodes.tenant,
            &format!("{run}-{n}"),
            each_has,
        )
        .await?;
    }
    connection.execute("analyze").await?;
    Ok(())
}

/// Push latency if every flush to the disk takes longer: whether pushes wait for others' flushes.
async fn measure_slow_disk(bench: &mut Bench, nodes: &Nodes) -> anyhow::Result<()> {
    bench.postgres.delay_flushes(SLOW_FLUSH).await?;
    let here = &*bench;
    let turns = in_turns(here.rounds, async |which| match which {
        0 => bare(here).await,
        _ => calm(here, nodes).await,
    });
    let turns: anyhow::Result<[Vec<Latencies>; 2]> = turns.await;
    bench.postgres.delay_flushes(Duration::ZERO).await?;
    let [bare, calm] = turns?.map(|turns| {
        let each = turns.iter().map(|taken| taken.quantile(500));
        median(each.collect())
    });
    bench.report.add(
        "push at 200/s, every flush delayed by 5 ms, p50",
        (calm, "ms"),
        (bare, "ms bare NOTIFY, delayed too"),
        Target::AtMost(3.0),
    );
    Ok(())
}

/// Push latency at rest, beside load, on a slow disk, and with a backlog.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let nodes = warm(bench).await?;
    let here = &*bench;
    let turns = in_turns(here.rounds, async |which| match which {
        0 => bare(here).await,
        1 => calm(here, &nodes).await,
        2 => beside_load(here, &nodes, false).await,
        _ => beside_load(here, &nodes, true).await,
    });
    let [bare, calm, busy, beside] = turns.await?;
    let middle = |turns: &[Latencies], per_mille| {
        let each = turns.iter().map(|taken| taken.quantile(per_mille));
        median(each.collect())
    };
    for (name, per_mille, most) in [("p50", 500, 2.5), ("p99", 990, 5.0)] {
        bench.report.add(
            &format!("push, commit on one node to socket on another, 200/s, {name}"),
            (middle(&calm, per_mille), "ms"),
            (middle(&bare, per_mille), "ms bare NOTIFY"),
            Target::AtMost(most),
        );
    }
    bench.report.add(
        &format!("push beside {LOAD:.0} submissions/s, p50"),
        (middle(&busy, 500), "ms"),
        (middle(&beside, 500), "ms bare NOTIFY beside as many"),
        Target::AtMost(2.5),
    );
    bench.report.add(
        &format!("a bare NOTIFY beside {LOAD:.0} submissions/s, p50"),
        (middle(&beside, 500), "ms"),
        (middle(&bare, 500), "ms bare NOTIFY"),
        Target::Open,
    );
    measure_slow_disk(bench, &nodes).await?;
    nodes.stop().await?;
    measure_backlog(bench).await
}

/// Push latency to those who have few pending, and to those who have many.
async fn measure_backlog(bench: &mut Bench) -> anyhow::Result<()> {
    let nodes = bench.nodes(2).await?;
    fill(&nodes, "few", 10).await?;
    fill(&nodes, "many", 10_000 - 200).await?;
    push(bench, &nodes, "warm").await?;
    let few = push(bench, &nodes, "few").await?;
    let many = push(bench, &nodes, "many").await?;
    bench.report.add(
        "push to an inbox with 10,000 pending, against 10, p50",
        (many.quantile(500), "ms"),
        (few.quantile(500), "ms"),
        Target::AtMost(1.5),
    );
    nodes.stop().await
}
