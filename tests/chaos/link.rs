//! The network between a node and PostgreSQL: a TCP proxy that can fall silent, forget its
//! connections, or lead elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// How long the server's end of a silenced connection stays open; in production its keepalive ends
/// it.
const LINGER: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Default)]
struct Mood {
    /// Nothing passes; what was sent meanwhile arrives afterwards.
    silent: bool,
    /// Connections below this number never pass anything again.
    dead_below: u64,
    /// Connections below this number are closed.
    cut_below: u64,
}

pub struct Link {
    pub port: u16,
    target: Arc<AtomicU16>,
    next: Arc<AtomicU64>,
    mood: watch::Sender<Mood>,
}

impl Link {
    /// Leads to this port of this machine.
    pub async fn open(target: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let link = Self {
            port: listener.local_addr()?.port(),
            target: Arc::new(AtomicU16::new(target)),
            next: Arc::default(),
            mood: watch::Sender::new(Mood::default()),
        };
        let (target, next) = (Arc::clone(&link.target), Arc::clone(&link.next));
        let mood = link.mood.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = next.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(carry(client, number, Arc::clone(&target), mood.clone()));
            }
        });
        Ok(link)
    }

    /// New connections lead to this port.
    pub fn lead_to(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
    }

    /// Nothing passes, on old and new connections, until told otherwise.
    pub fn silence(&self, silent: bool) {
        self.mood.send_modify(|mood| mood.silent = silent);
    }

    /// Nothing ever passes again on the connections there are; new ones work.
    pub fn silence_existing(&self) {
        let next = self.next.load(Ordering::SeqCst);
        self.mood.send_modify(|mood| mood.dead_below = next);
    }

    /// Closes the connections there are.
    pub fn cut(&self) {
        let next = self.next.load(Ordering::SeqCst);
        self.mood.send_modify(|mood| mood.cut_below = next);
    }
}

async fn carry(
    client: TcpStream,
    number: u64,
    target: Arc<AtomicU16>,
    mut mood: watch::Receiver<Mood>,
) {
    let (mut cut, mut dead) = (mood.clone(), mood.clone());
    let relay = async {
        passes(number, &mut mood).await;
        let target = ("127.0.0.1", target.load(Ordering::SeqCst));
        let Ok(server) = TcpStream::connect(target).await else {
            return;
        };
        drop((client.set_nodelay(true), server.set_nodelay(true)));
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            () = copy(from_client, to_server, number, mood.clone()) => {}
            () = copy(from_server, to_client, number, mood.clone()) => {}
        }
    };
    let lingering = async {
        drop(dead.wait_for(|mood| number < mood.dead_below).await);
        sleep(LINGER).await;
    };
    tokio::select! {
        () = relay => {}
        () = lingering => {}
        _ = cut.wait_for(|mood| number < mood.cut_below) => {}
    }
}

/// Waits until bytes of this connection pass.
async fn passes(number: u64, mood: &mut watch::Receiver<Mood>) {
    drop(
        mood.wait_for(|mood| !mood.silent && number >= mood.dead_below)
            .await,
    );
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    mut mood: watch::Receiver<Mood>,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = from.read(&mut buffer).await;
        // Also the end of a connection is not seen while nothing passes.
        passes(number, &mut mood).await;
        let Ok(count @ 1..) = read else { return };
        let Some(bytes) = buffer.get(..count) else {
            return;
        };
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
