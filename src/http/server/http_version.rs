//! Detects the HTTP version of a connection before the protocol library reads from it. By hand,
//! because the library's own detection keeps a second read buffer for as long as the connection
//! lasts.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::either::Either;

use super::listener_mode::ConnectionStream;

/// How the preface of HTTP/2 begins, and no method does.
const PREFACE_START: &[u8] = b"PRI";
/// First pause between two peeks while the bytes fit either version; it doubles each time.
const FIRST_RETRY_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersion {
    Http1,
    Http2,
}

/// The version a peer speaks; `None` if its first bytes leave that open for longer than `headers`.
/// TLS negotiates it (ALPN).
pub(super) async fn detect(
    stream: &ConnectionStream,
    headers: Duration,
) -> io::Result<Option<HttpVersion>> {
    match stream {
        Either::Left(stream) => peek(stream, headers).await,
        Either::Right(stream) => Ok(Some(match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => HttpVersion::Http2,
            _ => HttpVersion::Http1,
        })),
    }
}

/// Reads the version from the first bytes without consuming them.
async fn peek(stream: &TcpStream, headers: Duration) -> io::Result<Option<HttpVersion>> {
    let mut buffer = [0; PREFACE_START.len()];
    let (mut waited, mut pause) = (Duration::ZERO, FIRST_RETRY_INTERVAL);
    while waited < headers {
        let count = stream.peek(&mut buffer).await?;
        let first = buffer.get(..count).unwrap_or_default();
        if first == PREFACE_START {
            return Ok(Some(HttpVersion::Http2));
        }
        // No bytes mean the end of the stream, which the protocol library handles.
        if first.is_empty() || !PREFACE_START.starts_with(first) {
            return Ok(Some(HttpVersion::Http1));
        }
        // Peeking again returns at once while these bytes are unread, so sleep.
        sleep(pause).await;
        (waited, pause) = (waited + pause, pause * 2);
    }
    Ok(None)
}
