//! The command line.

use clap::Parser;

use super::{failover, faults};

/// Runs a cluster, breaks it in every way we know, and compares what clients were told with the
/// database.
#[derive(Parser, Clone)]
#[command(name = "chaos")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Options {
    /// Plant violations after a short calm run; every one must be found.
    #[arg(long)]
    pub self_test: bool,
    /// Only these faults, separated by commas; see --list.
    #[arg(long, value_delimiter = ',')]
    pub faults: Vec<String>,
    /// Have Patroni run the database; this has faults of its own.
    #[arg(long)]
    pub patroni: bool,
    /// List the faults.
    #[arg(long)]
    pub list: bool,
    /// How long to inject faults, one round of them at least.
    #[arg(long, default_value_t = 540)]
    pub seconds: u64,
    /// Run until this many exchanges were made, however long it takes.
    #[arg(long)]
    pub exchanges: Option<usize>,
    /// Decides about the order of later rounds, which node is hit, and what clients do.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Exchanges begun per second.
    #[arg(long, default_value_t = 60)]
    pub rate: u32,
    /// Keep the logs of nodes and servers in this directory.
    #[arg(long)]
    pub logs: Option<std::path::PathBuf>,
    /// Added by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// The faults there are, each with what it does.
    pub fn all_faults(&self) -> &'static [(&'static str, &'static str)] {
        if self.patroni {
            failover::FAULTS
        } else {
            faults::FAULTS
        }
    }
}
