//! The faults: each is injected, held, and taken away.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use sqlx::{Connection as _, Executor as _};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::calls::{Call, in_seconds};
use super::cluster::Cluster;
use super::crew::Crew;
use super::database::NAME;
use super::nodes::{COUNT, Node, WITH_CLOCK, faketime};
use super::programs::is_root;
use super::record::Kind;
use super::{failover, overload};

/// Every fault with what it does, in the order of the first round.
pub const FAULTS: &[(&str, &str)] = &[
    ("node-kill", "a node is killed and started again"),
    ("node-stop", "a node is stopped (SIGSTOP) and continued"),
    ("node-drain", "all nodes are drained and restarted, in turn"),
    (
        "node-silent",
        "one node's links to the database are black-holed",
    ),
    ("row-lock", "a foreign transaction locks one exchange"),
    ("aborts", "clients abort half their calls"),
    ("notifications", "all notifications are lost"),
    ("backends", "all sessions are terminated, again and again"),
    (
        "silent-existing",
        "existing connections fall silent for good",
    ),
    (
        "silent-all",
        "all connections are black-holed, new ones too",
    ),
    ("connections", "the database accepts no more connections"),
    ("disk-full", "the database's disk is full"),
    ("disk-stall", "the database's disk takes no writes"),
    (
        "overload",
        "nodes and database get a tenth of one processor",
    ),
    ("clock", "one node's clock jumps ahead and back"),
    ("db-crash", "PostgreSQL is killed and started again"),
    ("db-restart", "PostgreSQL is restarted"),
    ("wrong-server", "new connections lead to the standby"),
    ("failover", "the primary is killed, the standby promoted"),
];

/// The service's target under a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    None,
    /// Service is back within this time after the fault's end.
    BackAfterEnd(Duration),
    /// Service is back within this time after the fault's beginning.
    BackAfterBegin(Duration),
    /// The p99 of calls through these entrances stays within three times that of the calm phase.
    Unaffected([bool; COUNT + 1]),
}

pub struct Effect {
    pub target: Target,
    /// Whether the database may have lost commits that nobody waited for.
    pub crash: bool,
    pub remarks: Vec<String>,
}

const AFTER_DATABASE: Target = Target::BackAfterEnd(Duration::from_secs(2));
/// A failover, or connections whose other end has vanished, as a failover may leave them.
const AFTER_FAILOVER: Target = Target::BackAfterBegin(Duration::from_secs(10));

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Injects a fault, holds it and takes it away. The text says why it is skipped.
pub async fn inject(
    name: &str,
    cluster: &mut Cluster,
    crew: &Arc<Crew>,
) -> anyhow::Result<Result<Effect, String>> {
    if cluster.database.patroni.is_some() {
        return failover::inject(name, cluster).await.map(Ok);
    }
    let victim = crew.clients.random.below(COUNT);
    let mut crash = false;
    let mut remarks = Vec::new();
    let target = match name {
        "node-kill" | "node-stop" | "node-drain" | "node-silent" => {
            on_nodes(name, victim, cluster).await?
        }
        "row-lock" => lock_row(cluster, crew).await?,
        "aborts" => {
            let usual = crew.clients.abort_percent.swap(50, Ordering::Relaxed);
            cluster.hold(seconds(8)).await?;
            crew.clients.abort_percent.store(usual, Ordering::Relaxed);
            Target::None
        }
        "clock" if faketime().is_none() => {
            return Ok(Err("libfaketime is not installed".to_owned()));
        }
        "clock" => {
            for jump in [3_600, -45, 0] {
                each(cluster, WITH_CLOCK, |node| {
                    node.move_clock(&format!("{jump:+}"))
                })?;
                cluster.hold(seconds(6)).await?;
                let seen = clock_offset(crew).await?;
                let moved = (seen - time::Duration::seconds(jump)).abs();
                // A fault that was not injected proves nothing.
                anyhow::ensure!(
                    moved < time::Duration::seconds(5),
                    "the node's clock should be {jump} s ahead, it is {seen}"
                );
            }
            Target::None
        }
        "disk-stall" => match overload::stall_disk(cluster, crew).await? {
            Ok((target, remark)) => {
                remarks.push(remark);
                target
            }
            Err(why) => return Ok(Err(why)),
        },
        "overload" => match overload::starve(cluster).await? {
            Ok(target) => target,
            Err(why) => return Ok(Err(why)),
        },
        "disk-full" if !is_root() => {
            return Ok(Err("mounting a small file system needs root".to_owned()));
        }
        _ => {
            crash = matches!(name, "db-crash" | "failover");
            on_database(name, cluster).await?
        }
    };
    Ok(Ok(Effect {
        target,
        crash,
        remarks,
    }))
}

/// How far the clock of the node with the library is ahead of ours, as the node says itself.
async fn clock_offset(crew: &Crew) -> anyhow::Result<time::Duration> {
    let call = Call::get(WITH_CLOCK + 1, "/v1/status", &crew.clients.keys.admin);
    let answer = crew.clients.definite(&call).await;
    let time = answer.and_then(|answer| Some(answer.body["time"].as_str()?.to_owned()));
    let theirs = OffsetDateTime::parse(&time.context("no time")?, &Rfc3339)?;
    Ok(theirs - OffsetDateTime::parse(&in_seconds(0), &Rfc3339)?)
}

fn each(
    cluster: &Cluster,
    number: usize,
    act: impl Fn(&Node) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    cluster.nodes.get(number).map_or(Ok(()), act)
}

/// Every entrance but the balancer, which may still send calls to the victim, and the victim
/// itself.
fn others(victim: usize) -> Target {
    let mut entrances = [true; COUNT + 1];
    for (entrance, counts) in entrances.iter_mut().enumerate() {
        *counts = entrance != 0 && entrance != victim + 1;
    }
    Target::Unaffected(entrances)
}

async fn on_nodes(name: &str, victim: usize, cluster: &mut Cluster) -> anyhow::Result<Target> {
    match name {
        "node-kill" => {
            if let Some(node) = cluster.nodes.get_mut(victim) {
                node.end(Signal::SIGKILL).await?;
            }
            cluster.hold(seconds(3)).await?;
            if let Some(node) = cluster.nodes.get_mut(victim) {
                node.start().await?;
            }
            Ok(Target::None)
        }
        "node-drain" => {
            for node in &mut cluster.nodes {
                node.end(Signal::SIGTERM).await?;
                node.start().await?;
            }
            Ok(Target::None)
        }
        "node-stop" => {
            let signal = |signal| {
                move |node: &Node| {
                    node.signal(signal);
                    anyhow::Ok(())
                }
            };
            each(cluster, victim, signal(Signal::SIGSTOP))?;
            cluster.hold(seconds(10)).await?;
            each(cluster, victim, signal(Signal::SIGCONT))?;
            Ok(others(victim))
        }
        _ => {
            let silence = |silent| {
                move |node: &Node| {
                    node.link.silence(silent);
                    node.listen_link.silence(silent);
                    anyhow::Ok(())
                }
            };
            each(cluster, victim, silence(true))?;
            cluster.hold(seconds(12)).await?;
            each(cluster, victim, silence(false))?;
            Ok(others(victim))
        }
    }
}

/// Three clients decide, and retry deciding, what a foreign transaction has locked.
async fn lock_row(cluster: &mut Cluster, crew: &Arc<Crew>) -> anyhow::Result<Target> {
    let (number, request) = crew.begin(Kind::Held, 0, vec![0]);
    cluster.hold(seconds(1)).await?;
    let mut foreign = cluster.database.connect().await?;
    let lock = format!("begin; select from exchanges where request_id = '{request}' for update");
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock))
        .execute(&mut foreign)
        .await?;
    for approver in crew.approvers.iter().filter(|one| one.number == 0) {
        for _ in 0..3 {
            let (approver, request) = (Arc::clone(approver), request.clone());
            crew.clients
                .tasks
                .spawn(async move { approver.decide(number, &request, false).await });
        }
    }
    cluster.hold(seconds(8)).await?;
    foreign.execute("commit").await?;
    foreign.close().await?;
    Ok(Target::Unaffected([true; COUNT + 1]))
}

async fn on_database(name: &str, cluster: &mut Cluster) -> anyhow::Result<Target> {
    match name {
        "notifications" => {
            for node in &cluster.nodes {
                node.listen_link.silence(true);
            }
            cluster.hold(seconds(12)).await?;
            for node in &cluster.nodes {
                node.listen_link.silence(false);
            }
            Ok(Target::None)
        }
        "backends" => {
            for _ in 0..5 {
                cluster.database.terminate().await?;
                cluster.hold(seconds(1)).await?;
            }
            cluster.database.terminate().await?;
            Ok(AFTER_DATABASE)
        }
        "silent-existing" => {
            for node in &cluster.nodes {
                node.link.silence_existing();
                node.listen_link.silence_existing();
            }
            Ok(AFTER_FAILOVER)
        }
        "silent-all" => {
            let silence = |cluster: &Cluster, silent| {
                for node in &cluster.nodes {
                    node.link.silence(silent);
                    node.listen_link.silence(silent);
                }
            };
            silence(cluster, true);
            cluster.hold(seconds(12)).await?;
            silence(cluster, false);
            Ok(AFTER_DATABASE)
        }
        "connections" => {
            let limit = |limit: i32| format!("alter role {NAME} connection limit {limit}");
            let primary = cluster.database.primary();
            primary.execute("postgres", &limit(4)).await?;
            cluster.database.terminate().await?;
            cluster.hold(seconds(8)).await?;
            let primary = cluster.database.primary();
            primary.execute("postgres", &limit(-1)).await?;
            Ok(AFTER_DATABASE)
        }
        "disk-full" => {
            cluster.database.primary().fill_disk(true)?;
            cluster.hold(seconds(8)).await?;
            cluster.database.primary().fill_disk(false)?;
            Ok(AFTER_DATABASE)
        }
        "db-crash" => {
            cluster.database.primary_mut().crash().await?;
            cluster.hold(seconds(3)).await?;
            cluster.database.primary_mut().start().await?;
            cluster.database.commits().await?;
            Ok(AFTER_DATABASE)
        }
        "db-restart" => {
            cluster.database.primary_mut().stop().await?;
            cluster.database.primary_mut().start().await?;
            cluster.database.commits().await?;
            Ok(AFTER_DATABASE)
        }
        "wrong-server" => {
            let standby = cluster.database.standby().port;
            for node in &cluster.nodes {
                node.link.lead_to(standby);
                node.listen_link.lead_to(standby);
                node.link.cut();
                node.listen_link.cut();
            }
            cluster.hold(seconds(5)).await?;
            cluster.lead_to_primary();
            Ok(AFTER_DATABASE)
        }
        "failover" => {
            cluster.database.fail_over().await?;
            cluster.lead_to_primary();
            Ok(AFTER_FAILOVER)
        }
        _ => anyhow::bail!("there is no fault {name}; --list shows all"),
    }
}
