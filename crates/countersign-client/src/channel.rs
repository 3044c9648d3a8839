//! A channel: messages that the gateway pushes over a WebSocket. It uses the HTTP client of every
//! other call, with its proxies and certificates. A channel that breaks or falls silent is opened
//! again, at any node.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use reqwest::{Method, Response, Upgraded};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::error::{ClientError, GatewayRefusal, Result};
use crate::gateway::{GatewayClient, encode};
use crate::retry::RetryPause;
use crate::unreachable::unreachable;
use crate::visible::visible;

const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// The gateway pings every 30 s.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(75);
const FIRST_RETRY_INTERVAL: Duration = Duration::from_millis(250);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// The largest artifact, in base64 and in its Envelope.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Of a refused handshake.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// Whose messages a channel carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelRole {
    Approver,
    Enforcer,
}

#[derive(Debug)]
pub enum PushedEvent {
    /// The channel is open, at first or again. Messages that were missed have to be read elsewhere.
    Open,
    /// The text of an Envelope. The same one may come again.
    Envelope(String),
    /// It is opened again at the next call.
    Interrupted(ClientError),
}

/// A channel that lasts until it is dropped.
pub struct ChannelWatch<'c> {
    client: &'c GatewayClient,
    path: String,
    socket: Option<WebSocketStream<Upgraded>>,
    /// Before the next attempt to open it. None before the first.
    pause: Option<RetryPause>,
}

impl GatewayClient {
    pub fn watch(&self, role: ChannelRole, id: &str) -> ChannelWatch<'_> {
        let role = match role {
            ChannelRole::Approver => "approver",
            ChannelRole::Enforcer => "enforcer",
        };
        ChannelWatch {
            client: self,
            path: format!("/v1/ws?role={role}&id={}", encode(id)),
            socket: None,
            pause: None,
        }
    }

    async fn open_channel(&self, path: &str) -> Result<WebSocketStream<Upgraded>> {
        let key = generate_key();
        let mut request = self.request(Method::GET, path)?;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let value = HeaderValue::try_from(&key).map_err(ClientError::answer)?;
        headers.insert(SEC_WEBSOCKET_KEY, value);
        let url = self.address();
        let response = self.http.execute(request).await;
        let response = response.map_err(|error| unreachable(&url, &error))?;
        let status = response.status().as_u16();
        if status != 101 {
            return Err(ClientError::Refused(refusal(status, response).await));
        }
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        if accepted.map(HeaderValue::as_bytes) != Some(derive_accept_key(key.as_bytes()).as_bytes())
        {
            return Err(ClientError::answer("a WebSocket"));
        }
        let upgraded = response.upgrade().await;
        let upgraded = upgraded.map_err(|error| unreachable(&url, &error))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
    }
}

async fn refusal(status: u16, mut response: Response) -> GatewayRefusal {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await
        && body.len() + chunk.len() <= MAX_REFUSAL_BYTES
    {
        body.extend_from_slice(&chunk);
    }
    GatewayRefusal::read(status, &body)
}

impl ChannelWatch<'_> {
    /// The next event. After an error, opening the channel again would not help. The future may be
    /// dropped at any await.
    pub async fn next(&mut self) -> Result<PushedEvent> {
        let Some(socket) = &mut self.socket else {
            return self.open().await;
        };
        let interruption = loop {
            let broken = |cause: String| ClientError::Unreachable {
                url: self.client.address(),
                cause: visible(&cause),
            };
            match timeout(SILENCE_TIMEOUT, socket.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => {
                    self.pause = None;
                    return Ok(PushedEvent::Envelope(text.as_str().to_owned()));
                }
                Ok(Some(Ok(Message::Close(_))) | None) => {
                    break broken("the gateway closed the connection".to_owned());
                }
                // Pings are answered by the library.
                Ok(Some(Ok(_))) => self.pause = None,
                Ok(Some(Err(error))) => break broken(error.to_string()),
                Err(_) => break broken("the gateway has been silent for 75 s".to_owned()),
            }
        };
        self.socket = None;
        self.client.leave_node();
        Ok(PushedEvent::Interrupted(interruption))
    }

    async fn open(&mut self) -> Result<PushedEvent> {
        // Lengthened before the attempt, and reset only by a message: a channel that opens and
        // breaks at once must not be opened in a tight loop.
        match &mut self.pause {
            Some(pause) => {
                sleep(pause.current()).await;
                pause.lengthen();
            }
            first => *first = Some(RetryPause::new(FIRST_RETRY_INTERVAL, MAX_RETRY_INTERVAL)),
        }
        let opening = timeout(OPEN_TIMEOUT, self.client.open_channel(&self.path)).await;
        let url = self.client.address();
        match opening.unwrap_or(Err(ClientError::Slow { url })) {
            Ok(socket) => {
                self.socket = Some(socket);
                Ok(PushedEvent::Open)
            }
            Err(error) if error.is_unavailable() => {
                self.client.leave_node();
                Ok(PushedEvent::Interrupted(error))
            }
            Err(error) => Err(error),
        }
    }
}
