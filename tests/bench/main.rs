//! The benchmark: a private PostgreSQL, nodes as processes, and a load generator, all on this
//! machine. Every figure is a ratio to a reference measured in the same run, since an absolute one
//! says more about the machine than about the code.

mod attacks;
mod channels;
mod chart;
mod client;
mod clients;
mod exchanges;
mod growth;
mod http2;
mod inbox;
mod load;
mod machine;
mod nodes;
mod postgres;
mod push;
mod reference;
mod report;
mod row_security;
mod submissions;
mod telemetry;

use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use self::load::{in_turns, median};
use self::machine::{PartWatch, at_rest};
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
    /// Whether PostgreSQL's files are in memory.
    is_in_memory: bool,
}

/// The parts, by the name that `BENCH_ONLY` chooses them by.
const PARTS: [&str; 11] = [
    "submissions",
    "exchanges",
    "row_security",
    "push",
    "inbox",
    "payloads",
    "channels",
    "telemetry",
    "attacks",
    "clients",
    GROWTH,
];
/// Takes longer than all others together, and so has to be chosen.
const GROWTH: &str = "growth";

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
    let chosen =
        |part: &str| only.is_empty() && part != GROWTH || only.split(',').any(|name| name == part);
    let mut bench = Bench {
        postgres: Postgres::from_environment().await?,
        report: Report::default(),
        seconds: number("BENCH_SECONDS", 3),
        rounds: usize::try_from(number("BENCH_ROUNDS", 3))?,
        is_in_memory: number("BENCH_MEMORY", 0) > 0,
    };
    let mut failed = Vec::new();
    for part in PARTS.into_iter().filter(|part| chosen(part)) {
        // The other parts are measured even so: a run takes minutes.
        if let Err(error) = bench.measure(part).await {
            eprintln!("{part} failed: {error:#}");
            failed.push(part);
        }
    }
    println!("{}", bench.report.table());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    std::fs::create_dir_all(&directory)?;
    let name = match (bench.is_in_memory, only.is_empty()) {
        (true, _) => "memory",
        (_, true) => "results",
        _ => "partial",
    };
    let (text, picture) = (format!("{name}.txt"), format!("{name}.svg"));
    std::fs::write(directory.join(&text), bench.report.table())?;
    std::fs::write(directory.join(&picture), chart::draw(&bench.report))?;
    println!("also in target/bench: {text}, {picture}");
    anyhow::ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
}

impl Bench {
    /// Measures a part, and once more if the machine was disturbed meanwhile.
    async fn measure(&mut self, part: &str) -> anyhow::Result<()> {
        for is_last in [false, true] {
            let busy = at_rest().await * 100.0;
            eprintln!("measuring {part} (the machine is {busy:.0} % busy with other work) …");
            let (watch, rows) = (PartWatch::begin(), self.report.rows.len());
            match part {
                "submissions" => submissions::measure(self).await?,
                "exchanges" => exchanges::measure(self).await?,
                "row_security" => row_security::measure(self).await?,
                "push" => push::measure(self).await?,
                "inbox" => inbox::measure(self).await?,
                "payloads" => submissions::measure_sizes(self).await?,
                "channels" => Box::pin(channels::measure(self)).await?,
                "telemetry" => telemetry::measure(self).await?,
                "attacks" => attacks::measure(self).await?,
                GROWTH => growth::measure(self).await?,
                _ => clients::measure(self).await?,
            }
            let share = watch.end();
            let (took, own, stolen) = (
                share.took.as_secs(),
                share.generator * 100.0,
                share.stolen * 100.0,
            );
            eprintln!(
                "{part} took {took} s: the generator used {own:.0} % of the processors, the host took {stolen:.0} % away"
            );
            if !share.is_disturbed() || is_last {
                break;
            }
            eprintln!("{part} was disturbed and is measured again");
            self.report.rows.truncate(rows);
        }
        Ok(())
    }

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
