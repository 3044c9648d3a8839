//! A TCP proxy that a test can put between a node and PostgreSQL, to lose bytes in either
//! direction, silence or cut connections, or lead new ones to another server.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// The proxy's behaviour towards every connection.
#[derive(Default)]
struct Mood {
    swallow_up: AtomicBool,
    swallow_down: AtomicBool,
    refuse: AtomicBool,
    /// How long new connections take to be made.
    delay_ms: AtomicU64,
    /// How many were accepted.
    accepted: AtomicUsize,
    /// The address that new connections lead to.
    target: Mutex<String>,
}

/// Its behaviour towards the connections since the last cut.
#[derive(Default, Clone)]
struct Fate {
    cut: CancellationToken,
    silent: Arc<AtomicBool>,
}

/// A proxy in front of a database.
pub struct Proxy {
    /// Where to connect instead.
    pub url: String,
    mood: Arc<Mood>,
    /// Of the connections to come.
    fate: Arc<Mutex<Fate>>,
}

/// The address and the database of a URL.
fn parts(url: &str) -> (&str, &str) {
    url.strip_prefix("postgres://countersign@")
        .and_then(|rest| rest.split_once('/'))
        .expect("a test database's URL")
}

impl Proxy {
    /// A proxy in front of the database at `url`.
    pub async fn start(url: &str) -> Self {
        let name = parts(url).1;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let proxy = Self {
            url: format!("postgres://countersign@127.0.0.1:{port}/{name}"),
            mood: Arc::default(),
            fate: Arc::default(),
        };
        proxy.lead_to(url);
        let (mood, fate) = (Arc::clone(&proxy.mood), Arc::clone(&proxy.fate));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (mood, fate) = (Arc::clone(&mood), fate.lock().expect("no panic").clone());
                tokio::spawn(async move {
                    let relayed = relay(client, &mood, &fate.silent);
                    Box::pin(fate.cut.run_until_cancelled(relayed)).await
                });
            }
        });
        proxy
    }

    /// Loses everything the server sends.
    pub fn swallow_down(&self, swallow: bool) {
        self.mood.swallow_down.store(swallow, Ordering::SeqCst);
    }

    /// Loses everything the client sends.
    pub fn swallow_up(&self, swallow: bool) {
        self.mood.swallow_up.store(swallow, Ordering::SeqCst);
    }

    /// Refuses new connections.
    pub fn refuse(&self, refuse: bool) {
        self.mood.refuse.store(refuse, Ordering::SeqCst);
    }

    /// Delays everything on new connections.
    pub fn delay(&self, delay_ms: u64) {
        self.mood.delay_ms.store(delay_ms, Ordering::SeqCst);
    }

    /// How many connections were ever made.
    pub fn accepted(&self) -> usize {
        self.mood.accepted.load(Ordering::SeqCst)
    }

    /// Leads new connections to the server of this URL.
    pub fn lead_to(&self, url: &str) {
        parts(url)
            .0
            .clone_into(&mut self.mood.target.lock().expect("no panic"));
    }

    /// Cuts every connection under way; new ones work.
    pub fn cut(&self) {
        let fate = std::mem::take(&mut *self.fate.lock().expect("no panic"));
        fate.cut.cancel();
    }

    /// Silences every connection under way: nothing arrives any more, and nobody learns that the
    /// other side has closed. New ones work.
    pub fn silence(&self) {
        self.silence_later()();
    }

    /// The same, when the returned function is called, for those that are under way now.
    pub fn silence_later(&self) -> impl FnOnce() + use<> {
        let mut fate = self.fate.lock().expect("no panic");
        let silent = std::mem::take(&mut fate.silent);
        move || silent.store(true, Ordering::SeqCst)
    }
}

async fn relay(client: TcpStream, mood: &Mood, silent: &AtomicBool) {
    if mood.refuse.load(Ordering::SeqCst) {
        return;
    }
    mood.accepted.fetch_add(1, Ordering::SeqCst);
    let delay = mood.delay_ms.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(delay)).await;
    let target = mood.target.lock().expect("no panic").clone();
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pass(from_client, to_server, &mood.swallow_up, silent) => {}
        () = pass(from_server, to_client, &mood.swallow_down, silent) => {}
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    swallow: &AtomicBool,
    silent: &AtomicBool,
) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let lost = swallow.load(Ordering::SeqCst) || silent.load(Ordering::SeqCst);
        if !lost && to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    if silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}
