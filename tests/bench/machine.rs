//! The machine beside the measured programs: whether it is at rest, whether its host took processor time away, and the share of
//! the processors that the load generator used itself.

use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use tokio::time::{Instant, sleep};

/// Busier than this before a part, the machine has other work.
const AT_REST: f64 = 0.15;
/// How long a part waits for the machine to come to rest.
const PATIENCE: Duration = Duration::from_secs(30);
/// If the host took more than this away, the part is repeated.
const DISTURBED: f64 = 0.1;

/// Processor time of all cores since the machine started, in ticks.
#[derive(Clone, Copy, Default)]
struct ProcessorTicks {
    all: f64,
    idle: f64,
    stolen: f64,
}

impl ProcessorTicks {
    /// Zero where there is no `/proc`: then nothing is known.
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<f64> = (line.split_whitespace().skip(1).take(8))
            .filter_map(|ticks| ticks.parse().ok())
            .collect();
        let at = |n: usize| ticks.get(n).copied().unwrap_or_default();
        Self {
            all: ticks.iter().sum(),
            idle: at(3) + at(4),
            stolen: at(7),
        }
    }

    fn is_unknown(self) -> bool {
        self.all <= 1.0
    }

    fn since(self, before: Self) -> Self {
        Self {
            all: (self.all - before.all).max(1.0),
            idle: self.idle - before.idle,
            stolen: self.stolen - before.stolen,
        }
    }
}

/// Waits until the machine has no other work, and returns how busy it is then.
pub async fn at_rest() -> f64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = ProcessorTicks::now();
        sleep(Duration::from_secs(1)).await;
        let now = ProcessorTicks::now().since(before);
        let busy = 1.0 - now.idle / now.all;
        if now.is_unknown() {
            return 0.0;
        }
        if busy < AT_REST || Instant::now() > deadline {
            return busy;
        }
    }
}

/// A part that is under way.
pub struct PartWatch {
    begun: Instant,
    ticks: ProcessorTicks,
    own: Duration,
}

pub struct PartShare {
    pub took: Duration,
    /// Of the processors, used by the generator.
    pub generator: f64,
    /// Of the processors, taken away by the host.
    pub stolen: f64,
}

impl PartShare {
    pub fn is_disturbed(&self) -> bool {
        self.stolen > DISTURBED
    }
}

impl PartWatch {
    pub fn begin() -> Self {
        Self {
            begun: Instant::now(),
            ticks: ProcessorTicks::now(),
            own: own_time(),
        }
    }

    pub fn end(&self) -> PartShare {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = f64::from(u32::try_from(cores).unwrap_or(1));
        let own = own_time().saturating_sub(self.own).as_secs_f64();
        let took = self.begun.elapsed();
        let ticks = ProcessorTicks::now().since(self.ticks);
        PartShare {
            took,
            generator: own / took.as_secs_f64() / cores,
            stolen: ticks.stolen / ticks.all,
        }
    }
}

/// Processor time that PostgreSQL and the nodes have used. Unlike a rate, what a turn costs hardly depends on other work on the machine.
#[derive(Clone, Copy, Default)]
pub struct ProcessorTime {
    pub postgres: Duration,
    pub nodes: Duration,
}

impl ProcessorTime {
    pub fn now() -> Self {
        let mut time = Self::default();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in processes {
            let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else {
                continue;
            };
            let Some((program, ticks)) = program_and_ticks(&stat) else {
                continue;
            };
            // A tick of `/proc` is a hundredth of a second.
            match program {
                "postgres" => time.postgres += Duration::from_millis(10 * ticks),
                "countersign" => time.nodes += Duration::from_millis(10 * ticks),
                _ => {}
            }
        }
        time
    }

    /// The cost of each of `turns` since `before`.
    pub fn per_turn(self, before: Self, turns: u32) -> String {
        let each = |now: Duration, before: Duration| {
            now.saturating_sub(before).as_secs_f64() * 1_000.0 / f64::from(turns.max(1))
        };
        let (postgres, nodes) = (
            each(self.postgres, before.postgres),
            each(self.nodes, before.nodes),
        );
        format!("{postgres:.3} ms of PostgreSQL and {nodes:.3} ms of the nodes")
    }
}

/// A process's name and its ticks, from a line such as `42 (name) S …`.
fn program_and_ticks(stat: &str) -> Option<(&str, u64)> {
    let (start, rest) = stat.rsplit_once(") ")?;
    let (_, program) = start.split_once('(')?;
    let mut fields = rest.split(' ').skip(11).map(str::parse::<u64>);
    Some((program, fields.next()?.ok()? + fields.next()?.ok()?))
}

/// Processor time of this program, without its children.
fn own_time() -> Duration {
    let micros = |usage: Usage| usage.user_time() + usage.system_time();
    let micros = getrusage(UsageWho::RUSAGE_SELF).map(|usage| micros(usage).num_microseconds());
    Duration::from_micros(
        micros
            .ok()
            .and_then(|it| u64::try_from(it).ok())
            .unwrap_or(0),
    )
}
