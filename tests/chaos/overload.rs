//! Faults of the machine: too little processor for the nodes and their database, and a disk that
//! stalls.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, sleep};

use super::calls::Call;
use super::cluster::Cluster;
use super::crew::Crew;
use super::faults::Target;
use super::nodes::COUNT;
use super::record::{Fact, Outcome};

/// Where the kernel shows its groups of processes.
const GROUPS: &str = "/sys/fs/cgroup";
/// How much of one processor all of them get together, in percent.
const SHARE: u32 = 10;
const OVERLOAD: Duration = Duration::from_secs(30);
const STALL: Duration = Duration::from_secs(5);
/// How often an exchange is read while the disk stalls.
const READS: Duration = Duration::from_millis(50);
/// The calls that have piled up are served first.
const AFTER_OVERLOAD: Target = Target::BackAfterEnd(Duration::from_secs(10));
const AFTER_STALL: Target = Target::BackAfterEnd(Duration::from_secs(2));

/// Processes that share a part of a processor, until this is dropped.
struct ProcessorLimit {
    group: PathBuf,
    /// Where they were before.
    parent: PathBuf,
    /// The file of the limit, and the text that lifts it.
    limit: PathBuf,
    no_limit: String,
}

impl ProcessorLimit {
    fn new(processes: &[u32], percent: u32) -> anyhow::Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let path = |controller: &str| {
            let mut lines = own.lines();
            lines.find_map(|line| line.split_once(':')?.1.strip_prefix(controller))
        };
        let name = format!("chaos-{}", std::process::id());
        let quota = (percent * 1_000).to_string();
        // The first version of the interface has a tree for each controller, the second one tree.
        let (parent, group, file, limit, no_limit) = if let Some(path) = path("cpu:") {
            let tree = Path::new(GROUPS).join("cpu");
            let parent = below(&tree, path);
            (parent, tree.join(name), "cpu.cfs_quota_us", quota, "-1")
        } else {
            let tree = Path::new(GROUPS);
            let path = path(":").context("this system has no groups of processes")?;
            std::fs::write(tree.join("cgroup.subtree_control"), "+cpu")?;
            let limit = format!("{quota} 100000");
            (below(tree, path), tree.join(name), "cpu.max", limit, "max")
        };
        // It is still there if a process that was started as the limit was lifted stayed in it.
        match std::fs::create_dir(&group) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        let limited = Self {
            limit: group.join(file),
            no_limit: no_limit.to_owned(),
            group,
            parent,
        };
        std::fs::write(&limited.limit, limit)?;
        for process in processes {
            // One that has ended needs no limit.
            drop(std::fs::write(limited.members(), process.to_string()));
        }
        Ok(limited)
    }

    fn members(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

fn below(tree: &Path, path: &str) -> PathBuf {
    tree.join(path.trim_start_matches('/'))
}

impl Drop for ProcessorLimit {
    /// Lifts the limit first: a process that is started meanwhile may stay in the group.
    fn drop(&mut self) {
        drop(std::fs::write(&self.limit, &self.no_limit));
        let members = std::fs::read_to_string(self.members()).unwrap_or_default();
        for process in members.lines() {
            drop(std::fs::write(self.parent.join("cgroup.procs"), process));
        }
        drop(std::fs::remove_dir(&self.group));
    }
}

/// A process and all that descend from it.
fn family(process: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name before it may contain anything.
            let (_, rest) = stat.rsplit_once(')')?;
            Some((id, rest.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(id, _)| *id));
        next += 1;
    }
    found
}

/// All nodes and both servers get a tenth of one processor. The text says why it is skipped.
pub async fn starve(cluster: &mut Cluster) -> anyhow::Result<Result<Target, String>> {
    let nodes = cluster.nodes.iter().filter_map(super::nodes::Node::id);
    let servers = [cluster.database.primary(), cluster.database.standby()];
    let servers = servers.into_iter().filter_map(super::server::Server::id);
    let processes: Vec<u32> = nodes.chain(servers).flat_map(family).collect();
    let limit = match ProcessorLimit::new(&processes, SHARE) {
        Ok(limit) => limit,
        Err(error) => return Ok(Err(format!("no group of processes: {error}"))),
    };
    cluster.hold(OVERLOAD).await?;
    drop(limit);
    Ok(Ok(AFTER_OVERLOAD))
}

/// The primary's log of changes cannot be written; what was written before is read all the while. A
/// remark says how that went.
pub async fn stall_disk(
    cluster: &mut Cluster,
    crew: &Arc<Crew>,
) -> anyhow::Result<Result<(Target, String), String>> {
    let Some(request) = accepted(crew) else {
        return Ok(Err("no exchange can be read yet".to_owned()));
    };
    if let Err(error) = cluster.database.primary().freeze_disk(true) {
        return Ok(Err(format!("no disk of its own: {error}")));
    }
    let reading = tokio::spawn(read_all_the_while(Arc::clone(crew), request));
    let held = cluster.hold(STALL).await;
    cluster.database.primary().freeze_disk(false)?;
    held?;
    let mut times = reading.await?;
    times.sort_unstable();
    let at = |part: usize| {
        let time = times.get(times.len() * part / 100).copied();
        time.unwrap_or_default().as_secs_f64() * 1_000.0
    };
    let (median, late, reads) = (at(50), at(99), times.len());
    let remark = format!("{reads} reads meanwhile: median {median:.1} ms, p99 {late:.1} ms");
    Ok(Ok((AFTER_STALL, remark)))
}

/// The newest exchange that was accepted.
fn accepted(crew: &Crew) -> Option<String> {
    let record = crew.clients.book.lock();
    let mut numbered = record.exchanges.iter().enumerate().rev();
    let is_accepted = |fact: &(Duration, Fact)| fact.1 == Fact::Accepted;
    let (number, _) = numbered.find(|(_, exchange)| exchange.facts.iter().any(is_accepted))?;
    record.request_id(number)
}

/// How long each read took. One that failed counts as long as clients wait at most; those that
/// clients aborted do not count.
async fn read_all_the_while(crew: Arc<Crew>, request: String) -> Vec<Duration> {
    let end = Instant::now() + STALL;
    let mut reading = tokio::task::JoinSet::new();
    let mut entrance = 0;
    while Instant::now() < end {
        entrance = entrance % COUNT + 1;
        let (crew, path) = (Arc::clone(&crew), format!("/v1/exchanges/{request}"));
        reading.spawn(async move {
            let call = Call {
                timed: false,
                ..Call::get(entrance, &path, &crew.clients.keys.admin)
            };
            let begun = Instant::now();
            match crew.clients.attempt(&call).await {
                Ok(_) => Some(begun.elapsed()),
                Err(Outcome::TimedOut) if begun.elapsed() < call.patience => None,
                Err(_) => Some(call.patience),
            }
        });
        sleep(READS).await;
    }
    reading.join_all().await.into_iter().flatten().collect()
}
