//! A TCP proxy that a test can put between a node and PostgreSQL, to lose bytes in either direction or cut connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// What the proxy does to bytes.
#[derive(Default)]
struct Mood {
    swallow_up: AtomicBool,
    swallow_down: AtomicBool,
    refuse: AtomicBool,
}

/// A proxy in front of a database.
pub struct Proxy {
    /// Where to connect instead.
    pub url: String,
    mood: Arc<Mood>,
    cut: std::sync::Mutex<CancellationToken>,
    current: Arc<std::sync::Mutex<CancellationToken>>,
}

impl Proxy {
    /// A proxy in front of the database at `url`.
    pub async fn start(url: &str) -> Self {
        let rest = url
            .strip_prefix("postgres://countersign@")
            .expect("a test database's URL");
        let (address, name) = rest.split_once('/').expect("a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mood = Arc::new(Mood::default());
        let token = CancellationToken::new();
        let current = Arc::new(std::sync::Mutex::new(token.clone()));
        let (target, shared, cuts) = (address.to_owned(), Arc::clone(&mood), Arc::clone(&current));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, mood) = (target.clone(), Arc::clone(&shared));
                let cut = cuts.lock().expect("no panic").clone();
                tokio::spawn(async move {
                    Box::pin(cut.run_until_cancelled(relay(client, &target, &mood))).await
                });
            }
        });
        Self {
            url: format!("postgres://countersign@127.0.0.1:{port}/{name}"),
            mood,
            cut: std::sync::Mutex::new(token),
            current,
        }
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

    /// Cuts every connection under way; new ones work.
    pub fn cut(&self) {
        let fresh = CancellationToken::new();
        *self.current.lock().expect("no panic") = fresh.clone();
        std::mem::replace(&mut *self.cut.lock().expect("no panic"), fresh).cancel();
    }
}

async fn relay(client: TcpStream, target: &str, mood: &Mood) {
    if mood.refuse.load(Ordering::SeqCst) {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            if !mood.swallow_up.load(Ordering::SeqCst)
                && to_server.write_all(&buffer[..count]).await.is_err()
            {
                return;
            }
        }
    };
    let down = async {
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            if !mood.swallow_down.load(Ordering::SeqCst)
                && to_client.write_all(&buffer[..count]).await.is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
