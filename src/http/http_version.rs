//! Which version of HTTP a connection speaks, told before the protocol library reads from it: left to tell for itself, it
//! reads the first bytes alone, and keeps twice the buffer for as long as the connection lasts.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::either::Either;

use super::connection::Stream;

/// How the preface of HTTP/2 begins, and no method does.
const PREFACE: &[u8] = b"PRI";
/// When a peer is listened to again that has begun like both; then less and less often.
const LISTEN_AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersion {
    Http1,
    Http2,
}

/// Waits until it can be told what is detect; `None` if, once begun, that takes longer than headers may. Over TLS it was
/// agreed upon.
pub(super) async fn detect(stream: &Stream, headers: Duration) -> io::Result<Option<HttpVersion>> {
    match stream {
        Either::Left(stream) => peek(stream, headers).await,
        Either::Right(stream) => Ok(Some(match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => HttpVersion::Http2,
            _ => HttpVersion::Http1,
        })),
    }
}

/// Told by the first bytes, which stay where they are.
async fn peek(stream: &TcpStream, headers: Duration) -> io::Result<Option<HttpVersion>> {
    let mut first = [0; PREFACE.len()];
    let (mut waited, mut pause) = (Duration::ZERO, LISTEN_AGAIN);
    while waited < headers {
        let count = stream.peek(&mut first).await?;
        let heard = first.get(..count).unwrap_or_default();
        if heard == PREFACE {
            return Ok(Some(HttpVersion::Http2));
        }
        // Nothing at all is the end of the stream, which the protocol handles.
        if heard.is_empty() || !PREFACE.starts_with(heard) {
            return Ok(Some(HttpVersion::Http1));
        }
        // Bytes that are there already wake nobody when more come.
        sleep(pause).await;
        (waited, pause) = (waited + pause, pause * 2);
    }
    Ok(None)
}

/// A connection under way, whichever version it speaks.
pub(super) trait Conversation: Future<Output = Result<(), Self::Error>> {
    type Error: Into<Box<dyn Error + Send + Sync>>;

    /// Lets it end once what is under way is done.
    fn wind_up(self: Pin<&mut Self>);
}

impl<I, B, S, E> Conversation for hyper::server::conn::http2::Connection<I, S, E>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, B>,
{
    type Error = hyper::Error;

    fn wind_up(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
