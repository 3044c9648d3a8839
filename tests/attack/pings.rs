//! Pings whose answers nobody reads.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;
use tokio::time::timeout;

use super::peers::{PATIENCE, address, status};
use crate::support::{Cluster, until};

/// A ping of the largest size, masked with zeros.
fn ping() -> Vec<u8> {
    let mut frame = vec![0x89, 0x80 | 0x7d, 0, 0, 0, 0];
    frame.resize(frame.len() + 125, b'x');
    frame
}

/// More than the kernel buffers in both directions.
const MOST_TAKEN: usize = 32 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_whose_pongs_nobody_reads_is_not_read_any_more() {
    let cluster = Cluster::with(1, |config| config.push.send_timeout_seconds = 2).await;
    let mallory = cluster.approver("mallory").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    let mut stream = socket
        .connect(address(&cluster.nodes[0].url))
        .await
        .unwrap();
    let head = format!(
        "GET /v1/ws?role=approver&id=mallory HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        mallory.client.key()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(status(&mut stream).await, 101);
    let pings = ping().repeat(500);
    let mut taken = 0;
    // It ends when the node takes nothing for longer than its own patience, or closes the socket.
    while let Ok(Ok(())) = timeout(Duration::from_secs(5), stream.write_all(&pings)).await {
        taken += pings.len();
        assert!(taken < MOST_TAKEN, "{taken} bytes were read");
    }
    let channels = &cluster.nodes[0].gateway.channels;
    until("it is closed", PATIENCE, async || {
        channels.channel_count() == 0
    })
    .await;
}
