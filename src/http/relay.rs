//! Event streams over HTTP/1, taken over from the protocol library when their answer begins: it keeps two buffers of 8 KiB
//! for as long as an answer lasts, and these last for days. All that is left to speak of the protocol is a head and chunks.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Method, Request, Response, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Buf as _, Incoming};
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::service::HttpService;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::connection::Stream;
use super::http_version::Conversation;
use super::metered::{InFlight, Meter, Metered};

/// How much of what a peer says behind its request is read, in order to notice its end. None of it is ever answered.
const HEARD: usize = 1 << 10;

#[derive(Clone, Copy)]
pub(super) struct EventStream;

/// Where a request leaves its answer for its connection to take over.
#[derive(Clone, Default)]
pub(super) struct Handover(Arc<Mutex<Option<Answer>>>);

/// The answer to a request that is under way for as long as it lasts.
type Answer = (Response<Body>, InFlight);

impl Handover {
    /// Whether the answer to this request could be taken over: its peer understands chunks, and has said all it will.
    pub(super) fn suits(request: &Request<Incoming>) -> bool {
        request.version() == Version::HTTP_11
            && request.method() == Method::GET
            && request.body().is_end_stream()
    }

    /// Leaves an answer, to be taken as soon as whoever leaves it waits.
    pub(super) fn leave(&self, answer: Response<Body>, in_flight: InFlight) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *left = Some((answer, in_flight));
    }

    /// Takes what was left, if what was answered before it has gone out: today the library reads no further until it has, but
    /// nowhere promises so.
    fn take(&self, meter: &Meter) -> Option<Answer> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.take_if(|_| meter.flushed())
    }
}

/// The stream of an HTTP/1 connection.
type Wire = TokioIo<Metered<Stream>>;

/// An HTTP/1 connection: the protocol library's, until an event stream begins on it.
pub(super) struct Http1<S: HttpService<Incoming>> {
    library: Option<UpgradeableConnection<Wire, S>>,
    handover: Handover,
    meter: Arc<Meter>,
    relay: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
}

impl<S: HttpService<Incoming>> Http1<S> {
    pub(super) fn new(
        library: UpgradeableConnection<Wire, S>,
        handover: Handover,
        meter: &Arc<Meter>,
    ) -> Self {
        Self {
            library: Some(library),
            handover,
            meter: Arc::clone(meter),
            relay: None,
        }
    }
}

impl<S> Future for Http1<S>
where
    S: HttpService<Incoming, ResBody = Body> + Unpin,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = Result<(), Box<dyn Error + Send + Sync>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(library) = &mut self.library {
            if let Poll::Ready(ended) = Pin::new(library).poll(cx) {
                return Poll::Ready(ended.map_err(Into::into));
            }
            let Some(answer) = self.handover.take(&self.meter) else {
                return Poll::Pending;
            };
            let parts = self
                .library
                .take()
                .and_then(UpgradeableConnection::into_parts);
            self.relay = parts.map(|parts| -> Pin<Box<dyn Future<Output = _> + Send>> {
                Box::pin(relay(parts.io.into_inner(), answer))
            });
        }
        match &mut self.relay {
            Some(relay) => Poll::Ready(Ok(ready!(relay.as_mut().poll(cx))?)),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S> Conversation for Http1<S>
where
    S: HttpService<Incoming, ResBody = Body> + Unpin,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Error = Box<dyn Error + Send + Sync>;

    fn wind_up(mut self: Pin<&mut Self>) {
        // A stream ends by itself when the node stops, and its connection with it.
        if let Some(library) = &mut self.library {
            Pin::new(library).graceful_shutdown();
        }
    }
}

/// Sends an answer piece by piece until it or its peer ends.
async fn relay(
    mut wire: impl AsyncRead + AsyncWrite + Unpin,
    (answer, _in_flight): Answer,
) -> io::Result<()> {
    let (head, mut body) = (head(&answer), answer.into_body());
    wire.write_all(&head).await?;
    drop(head);
    let (mut heard, mut bytes) = (0, [0; 64]);
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            read = wire.read(&mut bytes), if heard < HEARD => match read? {
                0 => return Ok(()),
                more => {
                    heard += more;
                    continue;
                }
            }
        };
        let Some(frame) = frame else {
            break;
        };
        let data = frame.map_err(io::Error::other)?.into_data();
        // An empty chunk would be the last.
        if let Some(data) = data.ok().filter(|data| !data.is_empty()) {
            let size = Bytes::from(format!("{:x}\r\n", data.len()));
            let mut chunk = size.chain(data).chain(&b"\r\n"[..]);
            wire.write_all_buf(&mut chunk).await?;
            wire.flush().await?;
        }
    }
    wire.write_all(b"0\r\n\r\n").await?;
    wire.shutdown().await
}

fn head(answer: &Response<Body>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {}\r\n", answer.status()).into_bytes();
    // Closed after its one answer: whoever follows streams comes back to any node.
    let ours = [
        (&CONNECTION, &HeaderValue::from_static("close")),
        (&TRANSFER_ENCODING, &HeaderValue::from_static("chunked")),
    ];
    let theirs = answer
        .headers()
        .iter()
        .filter(|(name, _)| *name != CONNECTION);
    for (name, value) in theirs.chain(ours) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}
