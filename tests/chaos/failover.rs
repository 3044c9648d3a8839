//! The faults of a database that Patroni runs: in each of them Patroni loses its primary, and has
//! one again by itself.

use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::Cluster;
use super::database::{COMMIT, Database, NAME};
use super::faults::{Effect, Target};
use super::server::Server;

/// Every fault with what it does, in the order of the first round.
pub const FAULTS: &[(&str, &str)] = &[
    ("switchover", "patronictl hands over to the standby"),
    (
        "machine",
        "the primary's machine dies: its agent and PostgreSQL are killed",
    ),
    (
        "agent-frozen",
        "the primary's agent is stopped (SIGSTOP); its PostgreSQL runs on",
    ),
    (
        "etcd-away",
        "etcd does not answer until the primary has stepped down",
    ),
];

/// From when Patroni has a primary again, which includes that `HAProxy` notices.
const BACK: Target = Target::BackAfterEnd(Duration::from_secs(10));
/// How long etcd stays away after the primary has stepped down.
const AWAY: Duration = Duration::from_secs(5);
/// How long the former primary is given to acknowledge a commit, which it must not.
const ATTEMPT: Duration = Duration::from_secs(3);

/// Injects a fault and waits until Patroni has a primary again.
pub async fn inject(name: &str, cluster: &mut Cluster) -> anyhow::Result<Effect> {
    let former = cluster.database.primary;
    let patroni = &mut cluster.database.patroni;
    let patroni = patroni.as_mut().context("Patroni does not run")?;
    let begun = Instant::now();
    let mut remarks = Vec::new();
    let mut wanted = vec![1 - former];
    let mut command = None;
    match name {
        "switchover" => command = Some(patroni.switch_over(former)?),
        "machine" => patroni.kill(former).await?,
        "agent-frozen" => patroni.signal(former, Signal::SIGSTOP),
        "etcd-away" => {
            patroni.signal_etcd(Signal::SIGSTOP);
            patroni.demotes().await?;
            remarks.push(format!("the primary stepped down {}", after(begun)));
            sleep(AWAY).await;
            patroni.signal_etcd(Signal::SIGCONT);
            wanted.push(former);
        }
        _ => anyhow::bail!("there is no fault {name}; --list shows all"),
    }
    cluster.database.primary = patroni.elects(&wanted).await?;
    // It may still be waiting to print the result.
    drop(command);
    remarks.push(format!("Patroni had a primary again {}", after(begun)));
    Ok(Effect {
        target: BACK,
        // A planned handover loses nothing at all.
        crash: name != "switchover",
        remarks,
    })
}

fn after(begun: Instant) -> String {
    format!("after {:.1} s", begun.elapsed().as_secs_f64())
}

/// Has the servers run again as before the fault. Returns the findings; `Err` for one that must not
/// be.
pub async fn restore(
    name: &str,
    database: &mut Database,
) -> anyhow::Result<Option<Result<String, String>>> {
    let mut found = None;
    if name == "agent-frozen" {
        found = Some(examine(database.standby()).await?);
    }
    if let Some(patroni) = &mut database.patroni {
        patroni.repair().await?;
        let primary = patroni.elects(&[0, 1]).await?;
        if primary != database.primary {
            database.primary = primary;
            found = Some(Err("the former primary took the lead back".to_owned()));
        }
    }
    Ok(found)
}

/// Examines a primary that was replaced while its agent was stopped. It must not acknowledge a
/// commit.
async fn examine(former: &Server) -> anyhow::Result<Result<String, String>> {
    // A fault that was not injected proves nothing.
    let standby = former.ask("select pg_is_in_recovery()::text").await?;
    anyhow::ensure!(
        standby.as_deref() == Some("false"),
        "the former primary has stepped down though its agent is stopped"
    );
    let sessions = format!(
        "select count(*) || ' sessions of nodes, ' || count(*) filter (where wait_event = 'SyncRep') || ' of them in a commit'
         from pg_stat_activity where usename = '{NAME}'"
    );
    let sessions = former.ask(&sessions).await?.unwrap_or_default();
    let commit = timeout(ATTEMPT, former.execute("postgres", COMMIT));
    Ok(if commit.await.is_ok_and(|answer| answer.is_ok()) {
        Err("the former primary acknowledged a commit".to_owned())
    } else {
        Ok(format!(
            "the former primary still ran and acknowledged no commit; it had {sessions}"
        ))
    })
}
