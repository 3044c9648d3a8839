//! The proof with the real agents: each is made to call a tool by a model on loopback, with our
//! hook installed as users install it, while an approver decides or something is broken.
//! `make agents`, see CONTRIBUTING.md.

mod agents;
mod cases;
mod cell;
mod gateway;
mod hook;
mod mcp;
mod model;
mod relay;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use countersign::agent::Agent;

use self::agents::{MEASURED, Tool};
use self::cases::Case;
use self::cell::CellScene;
use self::report::Report;

#[derive(Parser)]
#[command(name = "agents")]
struct Options {
    /// Only these agents, separated by commas.
    #[arg(long, value_delimiter = ',')]
    agents: Vec<Agent>,
    /// Only these cases, separated by commas; see --list.
    #[arg(long, value_delimiter = ',')]
    cases: Vec<Case>,
    /// Only these tools, separated by commas: shell, edit, mcp.
    #[arg(long, value_delimiter = ',')]
    tools: Vec<Tool>,
    /// List the cases and the known holes.
    #[arg(long)]
    list: bool,
    /// The directory in which npm has installed the agents.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/target/agents"))]
    programs: PathBuf,
    /// Keep the homes of the agents and what they printed.
    #[arg(long)]
    keep: bool,
    /// Cargo adds it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    if std::env::args().nth(1).as_deref() == Some(mcp::ARGUMENT) {
        mcp::serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    // The library is compiled without a provider of its own.
    let _chosen_before = rustls::crypto::ring::default_provider().install_default();
    let options = Options::parse();
    if options.list {
        cases::list();
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let well = runtime.block_on(run(&options))?;
    runtime.shutdown_background();
    Ok(if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// True if every cell went as expected.
async fn run(options: &Options) -> anyhow::Result<bool> {
    let agents = chosen(&options.agents, &MEASURED);
    let cases = chosen(&options.cases, &Case::ALL);
    let tools = chosen(&options.tools, &Tool::ALL);
    let mut report = Report::default();
    for agent in agents {
        let stage = CellScene::prepare(agent, &options.programs, options.keep).await?;
        for case in &cases {
            for tool in tools.iter().filter(|tool| case.concerns(**tool)) {
                let seen = stage.play(*case, *tool).await?;
                report.add(agent, *case, *tool, &seen);
            }
        }
    }
    Ok(report.print())
}

fn chosen<T: Clone>(asked_for: &[T], all: &[T]) -> Vec<T> {
    let chosen = if asked_for.is_empty() { all } else { asked_for };
    chosen.to_vec()
}
