//! A reference client for push, written as the example a client author would copy: it reads a
//! WebSocket or an event stream, reconnects with exponential backoff to the next node in turn, and
//! drops what it has seen by `msgId`.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::described;

/// Longest wait for something that must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One WebSocket connection.
pub struct Socket<S = MaybeTlsStream<TcpStream>> {
    stream: WebSocketStream<S>,
}

impl Socket {
    /// Connects as `id` in `role`, or tells the HTTP status of the refusal.
    pub async fn connect(url: &str, role: &str, id: &str, key: &str) -> Result<Self, u16> {
        let url = format!(
            "{}/v1/ws?role={role}&id={id}",
            url.replace("http://", "ws://")
        );
        let mut request = url.into_client_request().expect("a request");
        let bearer = format!("Bearer {key}").parse().expect("a header");
        request.headers_mut().insert("authorization", bearer);
        let config = WebSocketConfig::default().read_buffer_size(4_096);
        match connect_async_with_config(request, Some(config), false).await {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(_) => Err(0),
        }
    }
}

impl Socket {
    /// The same as a browser does for a page of this origin, whose token is one of the
    /// subprotocols. A proxy may have passed another host on.
    pub async fn connect_from(
        url: &str,
        role: &str,
        id: &str,
        key: &str,
        origin: &str,
        host: Option<&str>,
    ) -> Result<Self, u16> {
        let url = url.replace("http://", "ws://");
        let url = format!("{url}/v1/ws?role={role}&id={id}");
        let mut request = url.into_client_request().expect("a request");
        let headers = request.headers_mut();
        let offer = format!("countersign, bearer.{key}");
        headers.insert("sec-websocket-protocol", offer.parse().expect("a header"));
        headers.insert("origin", origin.parse().expect("a header"));
        if let Some(host) = host {
            headers.insert("host", host.parse().expect("a header"));
        }
        match tokio_tungstenite::connect_async(request).await {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(_) => Err(0),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Connects over a stream that is open already, with whatever it has proven, or tells the
    /// status of the refusal.
    pub async fn over(stream: S, role: &str, id: &str) -> Result<Self, u16> {
        let url = format!("ws://localhost/v1/ws?role={role}&id={id}");
        match tokio_tungstenite::client_async(url, stream).await {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(_) => Err(0),
        }
    }

    /// The same with an API key.
    pub async fn over_with(stream: S, role: &str, id: &str, key: &str) -> Result<Self, u16> {
        let url = format!("ws://localhost/v1/ws?role={role}&id={id}");
        let mut request = url.into_client_request().expect("a request");
        let bearer = format!("Bearer {key}").parse().expect("a header");
        request.headers_mut().insert("authorization", bearer);
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(_) => Err(0),
        }
    }

    /// Sends an envelope.
    pub async fn send(&mut self, envelope: &Value) {
        self.send_raw(Message::text(envelope.to_string())).await;
    }

    /// Sends any frame.
    pub async fn send_raw(&mut self, message: Message) {
        self.stream.send(message).await.expect("it is sent");
    }

    /// The next envelope, or the code the connection was closed with.
    pub async fn next(&mut self) -> Result<Value, u16> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    let message: Value = serde_json::from_str(&text).expect("JSON");
                    described::frame(&message);
                    return Ok(message);
                }
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map_or(0, |frame| frame.code.into());
                    described::close(code);
                    return Err(code);
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(0),
            }
        }
    }

    /// The next envelope, which must come.
    pub async fn expect(&mut self) -> Value {
        timeout(PATIENCE, self.next())
            .await
            .expect("in time")
            .expect("an envelope")
    }

    /// The next envelope of a type, passing over others.
    pub async fn expect_type(&mut self, msg_type: &str) -> Value {
        loop {
            let envelope = self.expect().await;
            if envelope["msgType"] == msg_type {
                return envelope;
            }
        }
    }

    /// The code it is closed with.
    pub async fn closed(&mut self) -> u16 {
        let closing = async {
            loop {
                if let Err(code) = self.next().await {
                    return code;
                }
            }
        };
        timeout(PATIENCE, closing)
            .await
            .expect("it is closed in time")
    }

    /// Whether nothing comes for a while. A wait that must be long enough to mean something, and is
    /// no condition.
    pub async fn is_silent(&mut self, long: Duration) -> bool {
        timeout(long, self.next()).await.is_err()
    }
}

/// One event of a stream.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its type.
    pub kind: String,
    /// Its id.
    pub id: Option<String>,
    /// Its data.
    pub data: String,
}

/// One event stream.
pub struct Stream {
    response: reqwest::Response,
    buffer: String,
    ready: VecDeque<Event>,
}

impl Stream {
    /// Connects to `/v1/sse/{kind}/{id}`, or tells the HTTP status of the refusal.
    pub async fn connect(
        url: &str,
        kind: &str,
        id: &str,
        key: &str,
        last: Option<&str>,
    ) -> Result<Self, u16> {
        let request = (super::http().build().expect("a client"))
            .get(format!("{url}/v1/sse/{kind}/{id}"))
            .bearer_auth(key);
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let response = request.send().await.map_err(|_| 0_u16)?;
        match response.status().as_u16() {
            200 => {
                assert_eq!(response.headers()["content-type"], "text/event-stream");
                Ok(Self {
                    response,
                    buffer: String::new(),
                    ready: VecDeque::new(),
                })
            }
            status => Err(status),
        }
    }

    /// The next event that is no ping, or nothing once the stream has ended.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                described::event(&event.kind);
                if event.kind != "ping" {
                    return Some(event);
                }
            }
            let chunk = self.response.chunk().await.ok()??;
            self.buffer
                .push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
            while let Some((block, rest)) = self.buffer.split_once("\n\n") {
                self.ready.extend(parse_event(block));
                self.buffer = self.buffer.split_off(self.buffer.len() - rest.len());
            }
        }
    }

    /// The next event, which must come, with its envelope.
    pub async fn expect(&mut self) -> (Event, Value) {
        let event = timeout(PATIENCE, self.next())
            .await
            .expect("in time")
            .expect("an event");
        let envelope: Value = serde_json::from_str(&event.data).expect("JSON");
        assert_eq!(envelope["msgType"], event.kind.as_str());
        assert_eq!(envelope["msgId"].as_str(), event.id.as_deref());
        (event, envelope)
    }

    /// Waits for the stream's end.
    pub async fn ended(&mut self) {
        let ending = async { while self.next().await.is_some() {} };
        timeout(PATIENCE, ending).await.expect("it ends in time");
    }
}

fn parse_event(block: &str) -> Option<Event> {
    let (mut kind, mut id, mut data) = ("message".to_owned(), None, Vec::new());
    for line in block.lines() {
        match line.split_once(": ").or_else(|| line.split_once(':')) {
            Some(("event", value)) => value.clone_into(&mut kind),
            Some(("id", value)) => id = Some(value.to_owned()),
            Some(("data", value)) => data.push(value.to_owned()),
            _ => {}
        }
    }
    (!data.is_empty()).then(|| Event {
        kind,
        id,
        data: data.join("\n"),
    })
}

/// A live connection of either kind.
enum Link {
    Socket(Box<Socket>),
    Stream(Box<Stream>),
}

/// How a client that stays connected listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Over a WebSocket, which it also acknowledges over.
    Socket,
    /// Over an event stream; it acknowledges over REST.
    Stream,
}

/// A client that stays connected: whatever happens to its node, it comes back to the next one.
pub struct Persistent {
    urls: Vec<String>,
    by: By,
    role: &'static str,
    id: String,
    key: String,
    link: Option<Link>,
    last_event: Option<String>,
    attempts: u32,
    turn: usize,
    /// Messages that it has seen: repeats are dropped.
    seen: HashSet<String>,
    /// Messages whose acknowledgement the gateway has confirmed: none of them may ever come again.
    acked: HashSet<String>,
}

impl Persistent {
    /// A client of these nodes.
    pub fn new(urls: Vec<String>, by: By, role: &'static str, id: &str, key: &str) -> Self {
        Self {
            urls,
            by,
            role,
            id: id.to_owned(),
            key: key.to_owned(),
            link: None,
            last_event: None,
            attempts: 0,
            turn: 0,
            seen: HashSet::new(),
            acked: HashSet::new(),
        }
    }

    /// Connects again if need be: 50 ms after the first failure, then twice as long each time, up
    /// to 2 s.
    async fn link(&mut self) -> &mut Link {
        while self.link.is_none() {
            if self.attempts > 0 {
                sleep(Duration::from_millis(
                    (25 << self.attempts.min(6)).min(2_000),
                ))
                .await;
            }
            self.attempts += 1;
            self.turn += 1;
            let url = &self.urls[self.turn % self.urls.len()];
            self.link = match self.by {
                By::Socket => Socket::connect(url, self.role, &self.id, &self.key)
                    .await
                    .ok()
                    .map(|socket| Link::Socket(Box::new(socket))),
                By::Stream => {
                    let (kind, last) = (format!("{}s", self.role), self.last_event.as_deref());
                    let stream = Stream::connect(url, &kind, &self.id, &self.key, last).await;
                    stream.ok().map(|stream| Link::Stream(Box::new(stream)))
                }
            };
        }
        self.attempts = 0;
        self.link.as_mut().expect("just connected")
    }

    /// The next message not seen before, from whichever connection it comes.
    pub async fn next(&mut self) -> Value {
        loop {
            let received = match self.link().await {
                Link::Socket(socket) => socket.next().await.ok(),
                Link::Stream(stream) => match stream.next().await {
                    Some(event) => serde_json::from_str(&event.data).ok(),
                    None => None,
                },
            };
            let Some(envelope) = received else {
                self.link = None;
                continue;
            };
            let id = envelope["msgId"].as_str().unwrap_or_default().to_owned();
            if envelope["msgType"] == "ack.accepted" {
                let confirmed = envelope["body"]["msgId"].as_str().expect("an id");
                self.acked.insert(confirmed.to_owned());
            }
            assert!(
                !self.acked.contains(&id),
                "a message after its ack: {envelope}"
            );
            if self.by == By::Stream {
                self.last_event = Some(id.clone());
            }
            if self.seen.insert(id) {
                return envelope;
            }
            // Seen before: the ack was lost, so it is said again.
            self.ack(&envelope).await;
        }
    }

    /// Acknowledges a message; if that gets lost, the message will come again.
    pub async fn ack(&mut self, envelope: &Value) {
        let member = format!("{}Id", self.role);
        let message = envelope["msgId"].as_str().expect("an id");
        let body = json!({ "msgId": message, "status": "processed", "ackAt": super::now() });
        let request = envelope["requestId"].as_str().expect("an id");
        let ack = super::envelope("ack.submit", request, json!({ (member): self.id }), body);
        let lost = match &mut self.link {
            Some(Link::Socket(socket)) => {
                let sent = socket.stream.send(Message::text(ack.to_string())).await;
                sent.is_err()
            }
            Some(Link::Stream(_)) => {
                let client = super::Client::new(self.urls.clone(), Some(&self.key));
                let call = client.call(reqwest::Method::POST, "/v1/acks").json(&ack);
                drop(call.try_send().await);
                false
            }
            None => false,
        };
        if lost {
            self.link = None;
        }
    }

    /// Runs until `act`, which is handed every new message, says that it is done; fails the test
    /// past `patience`.
    pub async fn run(&mut self, patience: Duration, mut act: impl AsyncFnMut(&Value) -> bool) {
        let deadline = Instant::now() + patience;
        loop {
            let envelope = tokio::time::timeout_at(deadline, self.next())
                .await
                .expect("in time");
            let done = act(&envelope).await;
            if envelope["msgType"] != "ack.accepted" && envelope["msgType"] != "error" {
                self.ack(&envelope).await;
            }
            if done {
                return;
            }
        }
    }
}
