//! The cost of telemetry: durable submissions on a node that is scraped and sends to a collector,
//! against one that does neither and so records nothing. Every call is traced, which is the
//! default.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::Bench;
use super::client::{Connection, request};
use super::load::{in_turns, median};
use super::report::Target;
use super::submissions::{Artifact, rate_on};

/// More often than operators do either.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);
const EXPORT_SECONDS: &str = "1";
/// The least that is left of the rate without telemetry.
const LEAST: f64 = 0.97;

/// A collector that takes everything and keeps nothing.
async fn collector() -> anyhow::Result<String> {
    let router = Router::new().fallback(async |_: Bytes| ());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(endpoint)
}

/// Scrapes until the node ends, and tells how often.
async fn scrape(address: String) -> anyhow::Result<u64> {
    let mut connection = Connection::open(&address).await?;
    let request = request("GET", "/metrics", "", "");
    let mut scrapes = 0;
    while connection.call(&request, 200).await.is_ok() {
        scrapes += 1;
        sleep(SCRAPE_EVERY).await;
    }
    Ok(scrapes)
}

/// Submissions per second on one node that is scraped if it has a listener for that, and sends to
/// this collector if any.
async fn rate(bench: &Bench, metrics_listen: &str, collector: &str) -> anyhow::Result<f64> {
    let settings = [
        ("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", metrics_listen),
        ("COUNTERSIGN_TELEMETRY__OTLP_ENDPOINT", collector),
        ("COUNTERSIGN_TELEMETRY__EXPORT_SECONDS", EXPORT_SECONDS),
    ];
    let (nodes, artifact) = (bench.nodes_with(1, &settings).await?, Artifact::usual()?);
    let scraping = nodes.metrics.first().cloned().map(scrape).map(tokio::spawn);
    let rate = rate_on(bench, nodes, &artifact).await?;
    if let Some(scraping) = scraping {
        let scrapes = scraping.await??;
        anyhow::ensure!(scrapes >= bench.seconds, "only {scrapes} scrapes");
    }
    Ok(rate)
}

/// Submissions with telemetry against submissions without.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let (here, collector) = (&*bench, collector().await?);
    let any_port = "127.0.0.1:0";
    let figures = in_turns(here.rounds, async |which| match which {
        0 => rate(here, "", "").await,
        1 => rate(here, any_port, "").await,
        _ => rate(here, any_port, &collector).await,
    });
    let [off, metrics, all] = figures.await?.map(median);
    let mut add = |name, figure| {
        let target = Target::AtLeast(LEAST);
        bench.report.add(name, (figure, "/s"), (off, "/s"), target);
    };
    add("submissions with metrics, against no telemetry", metrics);
    add(
        "submissions with metrics and OTLP, against no telemetry",
        all,
    );
    Ok(())
}
