//! Clients that cost as little as they can, since they share the machine with what they measure:
//! requests written whole, answers read for their status and length.

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// A connection that is kept.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A request, whole.
pub fn request(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let content = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Type: application/json\r\nContent-Length: {length}\r\n")
    };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n{content}\r\n{body}"
    )
    .into_bytes()
}

impl Connection {
    /// Connects.
    pub async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends a request and waits for the whole answer; its status must be the one expected.
    pub async fn call(&mut self, request: &[u8], expected: u16) -> anyhow::Result<&str> {
        self.stream.write_all(request).await?;
        let head = self.head().await?;
        let text = std::str::from_utf8(self.buffer.get(..head).unwrap_or_default())?;
        let (status, length) = (status(text), content_length(text).unwrap_or(0));
        while self.buffer.len() < head + length {
            self.fill().await?;
        }
        let body = std::str::from_utf8(self.buffer.get(head..head + length).unwrap_or_default())?;
        anyhow::ensure!(status == Some(expected), "answered {status:?}: {body}");
        Ok(body)
    }

    /// Sends a request whose answer does not end, and reads its head.
    pub async fn stream(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).await?;
        let head = self.head().await?;
        let text = std::str::from_utf8(self.buffer.get(..head).unwrap_or_default())?;
        anyhow::ensure!(status(text) == Some(200), "answered {text}");
        self.buffer = Vec::new();
        Ok(())
    }

    /// Reads such an answer up to an event that says that it is alive.
    pub async fn pinged(&mut self) -> anyhow::Result<()> {
        const PING: &[u8] = b"event: ping";
        while !self.buffer.windows(PING.len()).any(|part| part == PING) {
            self.fill().await?;
        }
        Ok(())
    }

    /// Reads up to the end of an answer's headers, and tells where that is.
    async fn head(&mut self) -> anyhow::Result<usize> {
        self.buffer.clear();
        loop {
            self.fill().await?;
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                return Ok(end + 4);
            }
        }
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        let read = self.stream.read_buf(&mut self.buffer).await?;
        anyhow::ensure!(read > 0, "the connection ended");
        Ok(())
    }
}

fn status(head: &str) -> Option<u16> {
    head.split(' ').nth(1)?.parse().ok()
}

fn content_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse().ok()).flatten()
    })
}

/// A WebSocket.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Connects as an id in a role.
    pub async fn open(address: &str, role: &str, id: &str, key: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut request =
            format!("ws://{address}/v1/ws?role={role}&id={id}").into_client_request()?;
        request
            .headers_mut()
            .insert("authorization", format!("Bearer {key}").parse()?);
        let config = WebSocketConfig::default()
            .read_buffer_size(4_096)
            .write_buffer_size(0);
        let (stream, _) = client_async_with_config(request, stream, Some(config)).await?;
        Ok(Self { stream })
    }

    /// Sends a text.
    pub async fn send(&mut self, text: String) -> anyhow::Result<()> {
        Ok(self.stream.send(Message::text(text)).await?)
    }

    /// Waits for a ping, and answers it; what else comes is passed over.
    pub async fn pinged(&mut self) -> anyhow::Result<()> {
        loop {
            match self.stream.next().await.context("the socket ended")?? {
                Message::Ping(_) => return Ok(self.stream.flush().await?),
                Message::Close(frame) => anyhow::bail!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    /// The next text.
    pub async fn next(&mut self) -> anyhow::Result<Utf8Bytes> {
        loop {
            match self.stream.next().await.context("the socket ended")?? {
                Message::Text(text) => return Ok(text),
                Message::Close(frame) => anyhow::bail!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    /// The next message of a type; others are passed over, refusals end the run.
    pub async fn next_of(&mut self, msg_type: &str) -> anyhow::Result<Utf8Bytes> {
        loop {
            let text = self.next().await?;
            match member(&text, "msgType") {
                Some(found) if found == msg_type => return Ok(text),
                Some("error") => anyhow::bail!("refused: {text}"),
                _ => {}
            }
        }
    }
}

/// The first member of this name whose value is a string without escapes.
pub fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.find(&format!("\"{name}\":\""))? + name.len() + 4;
    text.get(start..)?.split('"').next()
}
