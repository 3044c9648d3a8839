//! An event stream over HTTP/2, on a connection of its own, as each browser has it.

use anyhow::Context as _;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::nodes::Nodes;

/// It ends when it is dropped.
pub struct Http2Stream {
    body: Incoming,
    connection: JoinHandle<hyper::Result<()>>,
}

impl Http2Stream {
    pub async fn open(nodes: &Nodes, n: usize) -> anyhow::Result<Self> {
        let address = nodes.address(0);
        let stream = TcpStream::connect(address).await?;
        let shaken = handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = shaken.await?;
        let connection = tokio::spawn(connection);
        let request = http::Request::get(format!("http://{address}/v1/sse/approvers/idle-{n}"))
            .header("authorization", format!("Bearer {}", nodes.approver))
            .body(Empty::<Bytes>::new())?;
        let response = sender.send_request(request).await?;
        anyhow::ensure!(response.status() == 200, "answered {}", response.status());
        let body = response.into_body();
        Ok(Self { body, connection })
    }

    /// Reads up to an event that says that it is alive.
    pub async fn pinged(&mut self) -> anyhow::Result<()> {
        const PING: &[u8] = b"event: ping";
        loop {
            let frame = self.body.frame().await.context("the stream ended")??;
            let data = frame.data_ref().map(AsRef::as_ref).unwrap_or_default();
            if <[u8]>::windows(data, PING.len()).any(|part| part == PING) {
                return Ok(());
            }
        }
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
