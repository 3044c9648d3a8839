//! Memory of idle channels: five thousand on one node.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::timeout;

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

/// Idle WebSockets and event streams over HTTP/1 and HTTP/2, each kind on a node of its own.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let nodes = bench.nodes(1).await?;
    // Once for nothing: the first connection of a node makes its pools.
    let first = Socket::open(nodes.address(0), "approver", "first", &nodes.approver).await?;
    let before = nodes.resident_kib(0)?;
    let sockets: Vec<_> = stream::iter(0..CHANNELS)
        .map(|n| open_socket(&nodes, n))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let sockets = all_live(sockets, Socket::pinged).await?;
    add(bench, &nodes, "WebSocket", before, 6.5)?;
    drop((sockets, first));
    nodes.stop().await?;

    let nodes = bench.nodes(1).await?;
    let first = open_stream(&nodes, CHANNELS).await?;
    let before = nodes.resident_kib(0)?;
    let streams: Vec<_> = stream::iter(0..CHANNELS)
        .map(|n| open_stream(&nodes, n))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let streams = all_live(streams, Connection::pinged).await?;
    add(bench, &nodes, "event stream", before, 7.0)?;
    drop((streams, first));
    nodes.stop().await?;

    let nodes = bench.nodes(1).await?;
    let first = Http2Stream::open(&nodes, CHANNELS).await?;
    let before = nodes.resident_kib(0)?;
    let streams: Vec<_> = stream::iter(0..CHANNELS)
        .map(|n| Http2Stream::open(&nodes, n))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let streams = all_live(streams, Http2Stream::pinged).await?;
    add(bench, &nodes, "event stream over HTTP/2", before, 12.0)?;
    drop((streams, first));
    nodes.stop().await
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

fn add(bench: &mut Bench, nodes: &Nodes, kind: &str, before: f64, most: f64) -> anyhow::Result<()> {
    let channels = f64::from(u32::try_from(CHANNELS)?);
    let each = (nodes.resident_kib(0)? - before) / channels;
    bench.report.add(
        &format!("resident memory of an idle {kind}, at 5,000"),
        (each, "KiB"),
        (1.0, "KiB"),
        Target::AtMost(most),
    );
    Ok(())
}
