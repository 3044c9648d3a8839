//! The fault campaign: three nodes behind `HAProxy`, PostgreSQL with a standby, clients that record
//! all they are told, one fault after another; and a checker that compares the record with the
//! database. `make chaos`, see CONTRIBUTING.md.

mod approver;
mod calls;
mod campaign;
mod channel;
mod check;
mod cluster;
mod commands;
mod crew;
mod database;
mod enforcer;
mod failover;
mod faults;
mod figures;
mod link;
mod nodes;
mod options;
mod overload;
mod patroni;
mod planted;
mod programs;
mod random;
mod record;
mod report;
mod rows;
mod server;
mod states;
mod trials;
mod webhook;

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Parser as _;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::calls::Clients;
use self::cluster::Cluster;
use self::commands::CommandClients;
use self::crew::Crew;
use self::options::Options;
use self::random::Random;
use self::record::Book;

/// How long the calm run of the self-test lasts.
const SELF_TEST: Duration = Duration::from_secs(12);
/// How long the last exchanges have to finish, redeliveries included.
const FINISHING: Duration = Duration::from_secs(100);
/// How many of a hundred calls clients abort at any time.
const ABORTS: usize = 2;
/// Set once we have mounts of our own.
const ALONE: &str = "CHAOS_HAS_ITS_OWN_MOUNTS";

fn main() -> anyhow::Result<ExitCode> {
    // The library is compiled without a provider of its own.
    let _chosen_before = rustls::crypto::ring::default_provider().install_default();
    let options = Options::parse();
    if options.list {
        for (name, what) in options.all_faults() {
            println!("{name:<16} {what}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    // File systems that are mounted for a run go with it, however it ends.
    if programs::is_root() && std::env::var_os(ALONE).is_none() {
        let error = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--"])
            .arg(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .env(ALONE, "1")
            .exec();
        anyhow::bail!("unshare: {error}");
    }
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    // One thread: other processes end with the thread that started them, and clients must leave
    // room on a small machine.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let well = runtime.block_on(run(&options))?;
    // Tasks that still wait are abandoned.
    runtime.shutdown_background();
    Ok(if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The whole run. True if nothing was violated and no target missed.
async fn run(options: &Options) -> anyhow::Result<bool> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)?;
    let seed = options.seed.unwrap_or(u32::from_le_bytes(bytes).into());
    println!("seed {seed}, {} exchanges per second", options.rate);
    let mut cluster = Cluster::start(options.patroni).await?;
    let outcome = with_cluster(options, seed, &mut cluster).await;
    if let Some(directory) = &options.logs {
        cluster.keep_logs(directory)?;
    }
    outcome
}

async fn with_cluster(options: &Options, seed: u64, cluster: &mut Cluster) -> anyhow::Result<bool> {
    let clients = Arc::new(Clients {
        book: Arc::new(Book::new(format!("run{seed}"))),
        random: Random::new(seed),
        http: reqwest::Client::builder().build()?,
        entrances: cluster.entrances(),
        keys: cluster.keys.clone(),
        abort_percent: AtomicUsize::new(0),
        aborted: AtomicUsize::new(0),
        over: CancellationToken::new(),
        tasks: TaskTracker::new(),
    });
    let crew = Crew::start(Arc::clone(&clients)).await?;
    let commands = CommandClients::start(&clients, cluster.directory.path()).await?;
    clients.abort_percent.store(ABORTS, Ordering::Relaxed);
    let work = tokio::spawn(Arc::clone(&crew).work(options.rate));
    tokio::spawn(commands.work(crew.stop.clone()));
    let mut lines = Vec::new();
    if options.self_test {
        println!("calm for {} s", SELF_TEST.as_secs());
        cluster.hold(SELF_TEST).await?;
    } else {
        lines = campaign::run(options, cluster, &crew).await?;
    }
    crew.stop.cancel();
    work.await?;
    clients.tasks.close();
    println!("waiting for the last exchanges");
    if timeout(FINISHING, clients.tasks.wait()).await.is_err() {
        println!("{} tasks did not finish", clients.tasks.len());
    }
    clients.over.cancel();
    drop(timeout(Duration::from_secs(5), clients.tasks.wait()).await);
    let record = clients.book.lock().clone();
    let mut connection = cluster.database.connect().await?;
    let rows = rows::load(&mut connection, &record.run).await?;
    let violations = check::check(&record, &rows);
    let aborted = clients.aborted.load(Ordering::Relaxed);
    println!("{aborted} calls were aborted by their clients");
    let (trials, notified) = (record.trials.len(), record.notified.len());
    println!("{trials} calls of run and hook, {notified} notifications");
    let well = report::print(&mut lines, &violations, record.exchanges.len());
    if !options.self_test {
        return Ok(well);
    }
    anyhow::ensure!(well, "the calm run itself has violations");
    planted::find_all(&record, &mut connection).await
}
