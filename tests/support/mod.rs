//! Shared by the tests: a private PostgreSQL, clusters of nodes on databases of their own, clients
//! typed by role, and the messages they send.

pub mod answer;
pub mod client;
pub mod cluster;
pub mod collector;
pub mod contract;
pub mod database;
pub mod described;
pub mod devices;
pub mod exchanges;
pub mod fleet;
pub mod framing;
pub mod haproxy;
pub mod log;
pub mod messages;
pub mod process;
pub mod proxy;
pub mod push;
pub mod raw;
pub mod roles;
pub mod scrape;
pub mod tls;

pub use self::answer::Answer;
pub use self::client::{Approver, Client, Enforcer};
pub use self::cluster::Cluster;
pub use self::contract::Contract;
pub use self::messages::*;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};

/// For calls over plain HTTP. A client with reqwest's defaults reads the system's root
/// certificates, which takes longer than most calls.
pub fn http() -> reqwest::ClientBuilder {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("a configuration")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    // After many calls at once all their connections would stay open: each is two files of this
    // process, which may have few.
    reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .pool_max_idle_per_host(4)
}

/// One GET over plain HTTP.
pub async fn get(url: impl reqwest::IntoUrl) -> reqwest::Result<reqwest::Response> {
    http().build()?.get(url).send().await
}

/// Waits until `condition` holds, and fails the test if it does not within `patience`.
pub async fn until<F: Future<Output = bool>>(
    what: &str,
    patience: Duration,
    mut condition: impl FnMut() -> F,
) {
    let deadline = Instant::now() + patience;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Raises the soft limit of open files to the hard one. Some tests open thousands of connections,
/// and the usual soft limit is 1,024.
pub fn raise_file_limit() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("up to the hard limit");
}

/// Connections that a test may hold while it keeps this.
pub struct ConnectionCrowd {
    pub size: usize,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// As many connections as a test wants to hold. Where the limit of open files is low, they are
/// fewer, and such tests wait for each other: in this process a connection to a node behind a proxy
/// is four files, and other tests run beside.
pub async fn crowd(wanted: usize) -> ConnectionCrowd {
    static TURN: Mutex<()> = Mutex::const_new(());
    raise_file_limit();
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let size = wanted.min(limit.saturating_sub(400) / 5);
    let turn = if limit < 4_096 {
        Some(TURN.lock().await)
    } else {
        None
    };
    ConnectionCrowd { size, _turn: turn }
}

/// How often each outcome occurs.
pub fn tally(answers: &[Answer]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer.outcome()).or_default() += 1;
    }
    counts
}

/// The tally one expects.
pub fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected
        .map(|(outcome, count)| (outcome.to_owned(), count))
        .into()
}
