//! A channel that is always open: after silence or an end it is opened again, with backoff.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::calls::Clients;

/// Pings come every 3 s, so a channel that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Stream,
    Socket,
}

/// An Envelope that came, and over which channel.
pub struct Received {
    pub envelope: Value,
    pub channel: u32,
}

/// Where a channel leads.
pub struct Address {
    pub by: By,
    pub entrance: usize,
    pub role: &'static str,
    pub id: String,
    pub key: String,
}

/// The client's end. Frames that are sent while a socket is away are lost.
pub struct Ends {
    pub received: mpsc::UnboundedReceiver<Received>,
    pub send: mpsc::UnboundedSender<Value>,
}

/// Opens it, and keeps it open until the run is over.
pub fn open(clients: &Arc<Clients>, address: Address) -> Ends {
    let (deliver, received) = mpsc::unbounded_channel();
    let (send, frames) = mpsc::unbounded_channel();
    let clients = Arc::clone(clients);
    tokio::spawn(async move {
        let over = clients.over.clone();
        over.run_until_cancelled(keep_open(&clients, &address, &deliver, frames))
            .await
    });
    Ends { received, send }
}

async fn keep_open(
    clients: &Clients,
    address: &Address,
    deliver: &mpsc::UnboundedSender<Received>,
    mut frames: mpsc::UnboundedReceiver<Value>,
) {
    let mut pause = 50;
    loop {
        let before = clients.book.now();
        // Its error is the reason for the next attempt, which is all that a client makes of it.
        drop(match address.by {
            By::Stream => stream(clients, address, deliver).await,
            By::Socket => socket(clients, address, deliver, &mut frames).await,
        });
        if clients.book.now().saturating_sub(before) > SILENCE {
            pause = 50;
        }
        sleep(Duration::from_millis(
            pause / 2 + clients.random.next() % pause,
        ))
        .await;
        pause = (pause * 2).min(1_000);
        while frames.try_recv().is_ok() {}
    }
}

async fn stream(
    clients: &Clients,
    address: &Address,
    deliver: &mpsc::UnboundedSender<Received>,
) -> anyhow::Result<()> {
    let Address { role, id, key, .. } = address;
    let url = clients.entrances.get(address.entrance).context("a url")?;
    let request = clients
        .http
        .get(format!("{url}/v1/sse/{role}s/{id}"))
        .bearer_auth(key);
    let mut response = timeout(SILENCE, request.send()).await??;
    anyhow::ensure!(response.status().as_u16() == 200, "refused");
    let channel = clients.book.channel();
    let mut buffer = Vec::new();
    loop {
        let chunk = timeout(SILENCE, response.chunk()).await??;
        buffer.extend_from_slice(&chunk.context("the stream ended")?);
        while let Some(end) = buffer.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = buffer.drain(..end + 2).collect();
            let event = String::from_utf8(event)?;
            let data: Vec<&str> = event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .collect();
            if let Ok(envelope) = serde_json::from_str(&data.join("\n")) {
                deliver.send(Received { envelope, channel })?;
            }
        }
    }
}

async fn socket(
    clients: &Clients,
    address: &Address,
    deliver: &mpsc::UnboundedSender<Received>,
    frames: &mut mpsc::UnboundedReceiver<Value>,
) -> anyhow::Result<()> {
    let Address { role, id, key, .. } = address;
    let url = clients.entrances.get(address.entrance).context("a url")?;
    let host = url.replace("http://", "");
    let mut request = format!("ws://{host}/v1/ws?role={role}&id={id}").into_client_request()?;
    let bearer = format!("Bearer {key}").parse()?;
    request.headers_mut().insert("authorization", bearer);
    let opening = async {
        let connection = TcpStream::connect(&host).await?;
        connection.set_nodelay(true)?;
        anyhow::Ok(client_async(request, connection).await?)
    };
    let (mut socket, _) = timeout(SILENCE, opening).await??;
    let channel = clients.book.channel();
    loop {
        tokio::select! {
            message = timeout(SILENCE, socket.next()) => {
                match message?.context("the socket ended")?? {
                    Message::Text(text) => {
                        let envelope = serde_json::from_str(&text)?;
                        deliver.send(Received { envelope, channel })?;
                    }
                    Message::Close(_) => return Ok(()),
                    // Answers to pings are written with the next flush.
                    _ => socket.flush().await?,
                }
            }
            frame = frames.recv() => {
                let frame = frame.context("the client is gone")?;
                socket.send(Message::text(frame.to_string())).await?;
            }
        }
    }
}
