//! Push latency: from the commit on one node to the socket on another, against a bare commit with NOTIFY to a listener.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, timeout};

use super::Bench;
use super::client::{Socket, member};
use super::load::{
    Latencies, Timetable, analyse, each, in_seconds, keep, random_id, saturate, wall_clock,
};
use super::nodes::Nodes;
use super::report::Target;
use super::submissions::{Artifact, CONNECTIONS, Lane};

/// Pushes a second.
const A_SECOND: f64 = 200.0;
/// Approvers who listen.
const LISTENERS: usize = 20;
/// Connections that submit to them.
const SUBMITTERS: usize = 8;
/// How long the last push may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// From sending COMMIT, with a row of the usual size and a NOTIFY in the transaction, to the listener.
async fn bare(bench: &Bench) -> anyhow::Result<Latencies> {
    let database = bench.postgres.database().await?;
    let mut writer = PgConnection::connect(&database).await?;
    writer
        .execute("create table notes (id text primary key, body text not null)")
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
    let (timetable, body) = (Timetable::new(A_SECOND, bench.seconds), "A".repeat(2 << 10));
    let mut taken = Vec::new();
    while timetable.next().await.is_some() {
        let id = random_id()?;
        let mut transaction = writer.begin().await?;
        sqlx::query("insert into notes values ($1, $2)")
            .bind(&id)
            .bind(&body)
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

/// Submits to listeners on another node, on a timetable, and tells how long after its commit each push was there.
async fn pushed(bench: &Bench, nodes: &Nodes, run: &str) -> anyhow::Result<Latencies> {
    let (sender, mut received) = mpsc::unbounded_channel();
    let name = |n: usize| format!("{run}-{}", n % LISTENERS);
    let mut listening = Vec::new();
    for n in 0..LISTENERS {
        let socket = Socket::open(nodes.address(1), "approver", &name(n), &nodes.approver).await?;
        listening.push(spawn_local(listen(socket, name(n), sender.clone())));
    }
    let lanes = each((0..SUBMITTERS).map(async |_| {
        // All on the first node: the listeners are on the second.
        let mut lanes = Lane::open(nodes, 1, &Artifact::usual()?).await?;
        lanes.pop().ok_or_else(|| anyhow::anyhow!("no lane"))
    }))
    .await?;
    let timetable = Timetable::new(A_SECOND, bench.seconds);
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
    let mut connection = PgConnection::connect(&nodes.database).await?;
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

/// Pushes beside submissions to others, at half of what the nodes can take.
async fn beside_load(bench: &Bench, nodes: &Nodes) -> anyhow::Result<(Latencies, f64)> {
    let artifact = Artifact::usual()?;
    let lanes = Lane::open(nodes, CONNECTIONS, &artifact).await?;
    let most = saturate(&nodes.database, lanes, bench.seconds, Lane::submit).await?;
    let lanes = Lane::open(nodes, CONNECTIONS, &artifact).await?;
    let timetable = Timetable::new(most / 2.0, bench.seconds + 2);
    let load = keep(lanes, &timetable, Lane::submit);
    let (load, pushed) = tokio::join!(load, pushed(bench, nodes, "busy"));
    load?;
    Ok((pushed?, most))
}

/// Fills the inboxes of the listeners to come.
async fn fill(nodes: &Nodes, run: &str, each_has: usize) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(&nodes.database).await?;
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

/// Push latency at rest, beside load, and with a backlog.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    LocalSet::new().run_until(measure_here(bench)).await
}

async fn measure_here(bench: &mut Bench) -> anyhow::Result<()> {
    let bare = bare(bench).await?;
    let nodes = bench.nodes(2).await?;
    // Once for nothing: the first push of a node prepares its statements.
    pushed(bench, &nodes, "warm").await?;
    analyse(&nodes.database).await?;
    let calm = pushed(bench, &nodes, "calm").await?;
    anyhow::ensure!(calm.len() > 100, "too few pushes to speak of");
    for (name, per_mille, most) in [("p50", 500, 3.0), ("p99", 990, 5.0)] {
        bench.report.add(
            &format!("push, commit on one node to socket on another, 200/s, {name}"),
            (calm.quantile(per_mille), "ms"),
            (bare.quantile(per_mille), "ms bare NOTIFY"),
            Target::AtMost(most),
        );
    }
    let (busy, most) = beside_load(bench, &nodes).await?;
    bench.report.add(
        &format!(
            "push beside {:.0} submissions/s (half of the most), p50",
            most / 2.0
        ),
        (busy.quantile(500), "ms"),
        (bare.quantile(500), "ms bare NOTIFY"),
        Target::AtMost(5.0),
    );
    nodes.stop().await?;
    let nodes = bench.nodes(2).await?;
    fill(&nodes, "few", 10).await?;
    fill(&nodes, "many", 10_000 - 200).await?;
    pushed(bench, &nodes, "warm").await?;
    let few = pushed(bench, &nodes, "few").await?;
    let many = pushed(bench, &nodes, "many").await?;
    bench.report.add(
        "push to an inbox with 10,000 pending, against 10, p50",
        (many.quantile(500), "ms"),
        (few.quantile(500), "ms"),
        Target::AtMost(1.5),
    );
    nodes.stop().await
}
