//! HTTP by hand, for what a well-behaved client would not send.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::Answer;

/// How long a node may take to answer what it need not wait for.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Sends a head and these bytes, then nothing more, and reads the answer; fails if it does not come
/// at once.
pub async fn send(url: &str, head: &str, body: &[u8]) -> Answer {
    let address = url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!("{head}\r\nhost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("sent");
    timeout(AT_ONCE, read(&mut stream))
        .await
        .expect("an answer, though the request is not complete")
}

async fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    loop {
        if let Some(answer) = parse(&bytes) {
            return answer;
        }
        let count = stream.read_buf(&mut bytes).await.expect("bytes");
        assert!(
            count > 0,
            "closed after {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

/// The answer, once it is there whole.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::try_from(name).expect("a header's name");
        let value = HeaderValue::try_from(value.trim()).expect("a header's value");
        headers.append(name, value);
    }
    let length: usize = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    (body.len() >= length).then(|| Answer {
        status,
        headers,
        text: body.to_owned(),
    })
}
