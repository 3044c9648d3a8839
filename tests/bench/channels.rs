//! Memory of idle channels: five thousand on one node.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::{sleep, timeout};

use super::Bench;
use super::client::{Connection, Socket, request};
use super::http2::Http2Stream;
use super::nodes::Nodes;
use super::report::Target;

/// How many.
const CHANNELS: usize = 5_000;
/// How many are opened at once.
const AT_ONCE: usize = 64;
/// How long the last may take to be pinged: sockets are after 30 s, streams after 15, a fifth more
/// or less.
const PATIENCE: Duration = Duration::from_secs(90);
/// The allocator returns over ten seconds what starting, or opening the channels, needed for a moment.
const ALLOCATOR_DECAY: Duration = Duration::from_secs(15);

/// Idle WebSockets and event streams over HTTP/1 and HTTP/2, side by side: most of the time they wait for pings.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let here = &*bench;
    let (sockets, streams, http2_streams) = tokio::try_join!(
        memory_of_each(here, open_socket, Socket::pinged),
        memory_of_each(here, open_stream, Connection::pinged),
        memory_of_each(here, Http2Stream::open, Http2Stream::pinged),
    )?;
    for (kind, memory, most) in [
        ("WebSocket", sockets, 6.5),
        ("event stream", streams, 7.0),
        ("event stream over HTTP/2", http2_streams, 12.0),
    ] {
        bench.report.add(
            &format!("resident memory of an idle {kind}, at 5,000"),
            (memory, "KiB"),
            (1.0, "KiB"),
            Target::AtMost(most),
        );
    }
    Ok(())
}

/// The resident memory that each of many idle channels takes on a node of their own, in KiB.
async fn memory_of_each<C>(
    bench: &Bench,
    open: impl AsyncFn(&Nodes, usize) -> anyhow::Result<C>,
    pinged: impl AsyncFn(&mut C) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let nodes = bench.nodes(1).await?;
    // Once for nothing: the first connection of a node makes its pools.
    let first = open(&nodes, CHANNELS).await?;
    let before = settled_kib(&nodes).await?;
    let channels: Vec<_> = stream::iter(0..CHANNELS)
        .map(|n| open(&nodes, n))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let channels = all_live(channels, pinged).await?;
    let after = settled_kib(&nodes).await?;
    drop((channels, first));
    nodes.stop().await?;
    Ok((after - before) / f64::from(u32::try_from(CHANNELS)?))
}

/// The resident memory of the node at rest.
async fn settled_kib(nodes: &Nodes) -> anyhow::Result<f64> {
    sleep(ALLOCATOR_DECAY).await;
    nodes.resident_kib(0)
}

/// Waits until every one of them was pinged: all are open at once, and have what a channel has once
/// it has sent something.
async fn all_live<C>(
    mut channels: Vec<C>,
    pinged: impl AsyncFn(&mut C) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<C>> {
    let all = try_join_all(
        channels
            .iter_mut()
            .map(async |channel| pinged(channel).await),
    );
    timeout(PATIENCE, all)
        .await
        .context("not all were pinged")??;
    Ok(channels)
}

async fn open_socket(nodes: &Nodes, n: usize) -> anyhow::Result<Socket> {
    let id = format!("idle-{n}");
    Socket::open(nodes.address(0), "approver", &id, &nodes.approver).await
}

async fn open_stream(nodes: &Nodes, n: usize) -> anyhow::Result<Connection> {
    let path = format!("/v1/sse/approvers/idle-{n}");
    let mut connection = Connection::open(nodes.address(0)).await?;
    let get = request("GET", &path, &nodes.approver, "");
    connection.stream(&get).await?;
    Ok(connection)
}
