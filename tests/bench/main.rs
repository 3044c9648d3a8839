//! The benchmark: a private PostgreSQL, nodes as processes, and a load generator, all on this
//! machine. Every figure is a ratio to a reference measured in the same run, since an absolute one
//! says more about the machine than about the code.

mod attacks;
mod channels;
mod chart;
mod client;
mod clients;
mod exchanges;
mod inbox;
mod load;
mod nodes;
mod postgres;
mod push;
mod reference;
mod report;
mod submissions;
mod telemetry;

use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use self::load::{in_turns, median};
use self::nodes::Running;
use self::postgres::Postgres;
use self::report::{Report, Target};
use self::submissions::CONNECTIONS;

/// Needed by each part of the run.
struct Bench {
    postgres: Postgres,
    report: Report,
    /// How long each measurement lasts, in seconds.
    seconds: u64,
    /// How often references and figures take turns.
    rounds: usize,
}

/// The parts, by the name that `BENCH_ONLY` chooses them by.
const PARTS: [&str; 9] = [
    "submissions",
    "exchanges",
    "push",
    "inbox",
    "payloads",
    "channels",
    "telemetry",
    "attacks",
    "clients",
];

fn main() -> anyhow::Result<()> {
    // One thread: on a small machine the generator must leave the cores to what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    // Thousands of idle channels are as many descriptors.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let number = |name: &str, default: u64| {
        let set = std::env::var(name).ok();
        set.and_then(|set| set.parse().ok()).unwrap_or(default)
    };
    let only = std::env::var("BENCH_ONLY").unwrap_or_default();
    let chosen = |part: &str| only.is_empty() || only.split(',').any(|name| name == part);
    let mut bench = Bench {
        postgres: Postgres::from_environment().await?,
        report: Report::default(),
        seconds: number("BENCH_SECONDS", 8),
        rounds: usize::try_from(number("BENCH_ROUNDS", 3))?,
    };
    for part in PARTS.into_iter().filter(|part| chosen(part)) {
        eprintln!(
            "measuring {part} (load of the machine: {}) …",
            machine_load()
        );
        match part {
            "submissions" => submissions::measure(&mut bench).await?,
            "exchanges" => exchanges::measure(&mut bench).await?,
            "push" => push::measure(&mut bench).await?,
            "inbox" => inbox::measure(&mut bench).await?,
            "payloads" => submissions::measure_sizes(&mut bench).await?,
            "channels" => channels::measure(&mut bench).await?,
            "telemetry" => telemetry::measure(&mut bench).await?,
            "attacks" => attacks::measure(&mut bench).await?,
            _ => clients::measure(&mut bench).await?,
        }
    }
    println!("{}", bench.report.table());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    std::fs::create_dir_all(&directory)?;
    let name = if only.is_empty() {
        "results"
    } else {
        "partial"
    };
    let (text, picture) = (format!("{name}.txt"), format!("{name}.svg"));
    std::fs::write(directory.join(&text), bench.report.table())?;
    std::fs::write(directory.join(&picture), chart::draw(&bench.report))?;
    println!("also in target/bench: {text}, {picture}");
    Ok(())
}

/// How many programs wanted a processor in the last minute: more than a few spoil the figures.
fn machine_load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("unknown").to_owned()
}

impl Bench {
    /// Nodes on a new database.
    async fn nodes(&self, count: usize) -> anyhow::Result<Running> {
        self.nodes_with(count, &[]).await
    }

    /// The same with settings, as environment variables.
    async fn nodes_with(&self, count: usize, settings: &[(&str, &str)]) -> anyhow::Result<Running> {
        Running::start(self.postgres.database().await?, count, settings).await
    }

    /// The rate of a script in pgbench, in transactions per second.
    async fn pgbench(&self, script: &str) -> anyhow::Result<f64> {
        let Self {
            postgres, seconds, ..
        } = self;
        postgres.pgbench(script, CONNECTIONS, *seconds).await
    }

    /// A rate on one node against pgbench, and on three nodes against one.
    async fn against_pgbench(
        &mut self,
        name: &str,
        (script, least): (&str, f64),
        minimal: Option<(&str, f64)>,
        least_on_three: f64,
        rate: impl AsyncFn(&Bench, usize) -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        let here = &*self;
        let figures = in_turns(here.rounds, async |which| match which {
            0 => here.pgbench(script).await,
            1 => rate(here, 1).await,
            2 => rate(here, 3).await,
            _ => match minimal {
                Some((script, _)) => here.pgbench(script).await,
                None => Ok(f64::NAN),
            },
        });
        let [reference, one, three, least_work] = figures.await?.map(median);
        self.report.add(
            &format!("{name}, against pgbench"),
            (one, "/s"),
            (reference, "/s"),
            Target::AtLeast(least),
        );
        if let Some((_, least)) = minimal {
            self.report.add(
                "the same, against pgbench on two minimal tables",
                (one, "/s"),
                (least_work, "/s"),
                Target::AtLeast(least),
            );
        }
        self.report.add(
            "the same on three nodes, against one",
            (three, "/s"),
            (one, "/s"),
            Target::AtLeast(least_on_three),
        );
        Ok(())
    }
}
