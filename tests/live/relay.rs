//! Gateways that lie: one that alters the signatures of decisions on the way, and one that approves
//! everything itself.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const CLAIM: &str = r#"{"decision":"approve","state":"approved","type":"decision.deliver"}"#;

/// Answers whatever it is asked with the claim that it is approved.
pub async fn claiming() -> anyhow::Result<String> {
    let (listener, url) = listen().await?;
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 16 << 10];
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{CLAIM}",
                    CLAIM.len()
                );
                let _lost = socket.read(&mut buffer).await;
                let _lost = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    Ok(url)
}

/// Passes on what a node says, with every signature changed.
pub async fn altering(node: &str) -> anyhow::Result<String> {
    let (listener, url) = listen().await?;
    let node = node.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let node = node.clone();
            tokio::spawn(async move {
                let Ok(server) = TcpStream::connect(node).await else {
                    return;
                };
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let up = tokio::io::copy(&mut from_client, &mut to_server);
                let down = async {
                    let mut buffer = vec![0; 256 << 10];
                    while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
                        alter(&mut buffer[..count]);
                        if to_client.write_all(&buffer[..count]).await.is_err() {
                            break;
                        }
                    }
                };
                tokio::select! { _ = up => {}, () = down => {} }
            });
        }
    });
    Ok(url)
}

async fn listen() -> anyhow::Result<(TcpListener, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    Ok((listener, url))
}

fn alter(bytes: &mut [u8]) {
    const NAME: &[u8] = b"\"signature\":\"";
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(NAME.len())
        .position(|part| part == NAME)
    {
        at += found + NAME.len();
        if let Some(first) = bytes.get_mut(at) {
            *first = if *first == b'A' { b'B' } else { b'A' };
        }
    }
}
