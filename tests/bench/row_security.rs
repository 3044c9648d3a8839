//! Submissions by a role that row-level security confines to a tenant, against the same without.

use std::process::Stdio;

use anyhow::Context as _;
use tokio::process::Command;

use super::Bench;
use super::load::{in_turns, median};
use super::nodes::Running;
use super::postgres::program;
use super::report::Target;
use super::submissions::{Artifact, rate_on};

/// The role that the nodes connect as.
const APPLICATION: &str = "bench_application";

/// A node on a database of its own, whose tables another role owns.
async fn confined(bench: &Bench) -> anyhow::Result<Running> {
    let mut database = bench.postgres.migrated().await?;
    let done = Command::new(program("psql")?)
        .args(["-X", "-q", "-v", "owner=bench_owner", "-v"])
        .arg(format!("application={APPLICATION}"))
        .args(["-v", "reader=bench_reader", "-f"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/roles.sql"))
        // `countersign dev` migrates first, though there is nothing to do.
        .arg("-c")
        .arg(format!("grant create on schema public to {APPLICATION}"))
        .arg(&database.url)
        .stdout(Stdio::null())
        .status()
        .await?;
    anyhow::ensure!(done.success(), "the roles could not be made");
    let (_, rest) = (database.url.split_once('@')).context("a user in the URL")?;
    database.url = format!("postgres://{APPLICATION}@{rest}");
    let settings = [("COUNTERSIGN_DATABASE__ROW_SECURITY", "true")];
    Running::start(database, 1, &settings).await
}

pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let artifact = Artifact::usual()?;
    let here = &*bench;
    let figures = in_turns(here.rounds, async |which| {
        let nodes = match which {
            0 => here.nodes(1).await?,
            _ => confined(here).await?,
        };
        rate_on(here, nodes, &artifact).await
    });
    let [without, with] = figures.await?.map(median);
    bench.report.add(
        "durable submissions with row-level security, against without",
        (with, "/s"),
        (without, "/s"),
        Target::AtLeast(0.95),
    );
    Ok(())
}
