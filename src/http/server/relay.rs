//! Writes event streams over HTTP/1, taken over from hyper when their response begins. By hand,
//! because hyper keeps 16 KiB of buffers for as long as a response lasts, and these last for days.
//! This needs only a head and chunks of the protocol.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Method, Request, Response, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Buf as _, Incoming};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Bytes read and discarded of what a peer sends behind its request, in order to notice its end.
const DISCARDED_BYTES: usize = 1 << 10;

/// How long a peer may take to read the rest of a stream whose channel was closed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Marks a response as an event stream, and says when its connection is to end.
#[derive(Clone, Default)]
pub struct EventStream {
    aborted: CancellationToken,
}

impl EventStream {
    /// Ends the stream soon, whether or not its peer reads.
    pub fn abort(&self) {
        self.aborted.cancel();
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.is_cancelled()
    }

    /// Completes when an aborted stream has had its time to end.
    pub(super) async fn overdue(&self) {
        self.aborted.cancelled().await;
        sleep(END_TIMEOUT).await;
    }
}

/// Where a request handler leaves an event stream for its connection to take over.
#[derive(Clone, Default)]
pub(super) struct StreamHandover(Arc<Mutex<Option<Response<Body>>>>);

impl StreamHandover {
    /// Whether a response may be taken over: the peer knows chunks, and its request has ended.
    pub(super) fn suits(request: &Request<Incoming>) -> bool {
        request.version() == Version::HTTP_11
            && request.method() == Method::GET
            && request.body().is_end_stream()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Response<Body>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, response: Response<Body>) {
        *self.slot() = Some(response);
    }

    pub(super) fn is_filled(&self) -> bool {
        self.slot().is_some()
    }

    pub(super) fn take(&self) -> Option<Response<Body>> {
        self.slot().take()
    }
}

/// Sends a response in chunks until it ends or the peer does. A block, because an `async fn` would keep both arguments twice.
pub(super) fn relay(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    response: Response<Body>,
) -> impl Future<Output = io::Result<()>> + Send {
    let (mut head, mut body) = (head(&response), response.into_body());
    async move {
        stream.write_all(&std::mem::take(&mut head)).await?;
        let (mut discarded, mut bytes) = (0, [0; 64]);
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                read = stream.read(&mut bytes), if discarded < DISCARDED_BYTES => match read? {
                    0 => return Ok(()),
                    more => {
                        discarded += more;
                        continue;
                    }
                }
            };
            let Some(frame) = frame else {
                break;
            };
            let data = frame.map_err(io::Error::other)?.into_data();
            // An empty chunk would end the response.
            if let Some(data) = data.ok().filter(|data| !data.is_empty()) {
                Box::pin(write_chunk(&mut stream, data)).await?;
            }
        }
        stream.write_all(b"0\r\n\r\n").await?;
        stream.shutdown().await
    }
}

async fn write_chunk(stream: &mut (impl AsyncWrite + Unpin), data: Bytes) -> io::Result<()> {
    let size = Bytes::from(format!("{:x}\r\n", data.len()));
    let mut chunk = size.chain(data).chain(&b"\r\n"[..]);
    stream.write_all_buf(&mut chunk).await?;
    stream.flush().await
}

fn head(response: &Response<Body>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    // Closed after this response: a client that reconnects may reach another node.
    let added = [
        (&CONNECTION, &HeaderValue::from_static("close")),
        (&TRANSFER_ENCODING, &HeaderValue::from_static("chunked")),
    ];
    let headers = response
        .headers()
        .iter()
        .filter(|(name, _)| *name != CONNECTION);
    for (name, value) in headers.chain(added) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}
