//! A gateway that is away: it is said at once, tried until the time-out, and asked when it comes
//! back.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use countersign::client::profile::{Profile, ProfileError};
use countersign::protocol::decision::Verdict;

use super::enforcer::{decide, paired};
use crate::client::people::{ClientScene, PATIENCE, choice};
use crate::hostile::meddler::{Content, Meddler, Reply};
use crate::support::Cluster;
use crate::support::process::countersign;

/// A gateway that can go away, in front of the real one.
struct GatewaySwitch {
    is_away: Arc<AtomicBool>,
    _meddler: Meddler,
}

impl GatewaySwitch {
    /// While it is away, it answers `instead`.
    async fn start(world: &ClientScene, instead: fn() -> Reply) -> Self {
        let is_away = Arc::new(AtomicBool::new(false));
        let node = world.cluster.nodes[0].url.clone();
        let known = is_away.clone();
        let meddler = Meddler::start(&node, move |call, gateway| {
            let is_away = known.load(Ordering::Relaxed);
            async move {
                if is_away {
                    instead()
                } else {
                    gateway.pass(&call).await
                }
            }
        })
        .await;
        let url = meddler.url.clone();
        let file = world.file("bot");
        file.update(|profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = vec![url];
            Ok::<_, ProfileError>(())
        })
        .unwrap();
        Self {
            is_away,
            _meddler: meddler,
        }
    }

    fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Relaxed);
    }
}

fn run(world: &ClientScene, timeout: &str, marker: &Path) -> Child {
    let mut command: Command = countersign();
    command
        .env("XDG_CONFIG_HOME", world.directory.path())
        .env("COUNTERSIGN_PROFILE", "bot")
        .args(["run", "--timeout", timeout, "--", "touch"])
        .arg(marker)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work);
    tokio::time::timeout(PATIENCE * 2, done)
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_comes_back_is_asked() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let switch = GatewaySwitch::start(&world, || Reply::new(503, "")).await;
    switch.set_away(true);
    let marker = world.directory.path().join("it-ran");
    let mut child = run(&world, "60s", &marker);
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let (line, mut errors) = blocking(move || {
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        (line, errors)
    })
    .await;
    assert!(line.contains("busy (status 503); trying again"), "{line}");
    switch.set_away(false);
    decide(&alice, &choice(Verdict::Approve)).await;
    let (status, rest) = blocking(move || {
        let mut rest = String::new();
        errors.read_to_string(&mut rest).unwrap();
        (child.wait().unwrap(), rest)
    })
    .await;
    assert!(status.success(), "{rest}");
    assert!(rest.contains("approved by alice"), "{rest}");
    assert!(marker.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_is_exact_while_the_gateway_is_silent() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let silence = || Reply {
        body: Content::Silence,
        ..Reply::new(200, "")
    };
    let switch = GatewaySwitch::start(&world, silence).await;
    let marker = world.directory.path().join("it-ran");
    // Away from the beginning, and once the request is there.
    for is_submitted in [false, true] {
        switch.set_away(!is_submitted);
        let begun = Instant::now();
        let child = run(&world, "6s", &marker);
        if is_submitted {
            crate::support::until("a request waits", PATIENCE, async || {
                alice.find("").await.unwrap().len() == 1
            })
            .await;
            switch.set_away(true);
        }
        let output = blocking(move || child.wait_with_output().unwrap()).await;
        let took = begun.elapsed();
        assert_eq!(output.status.code(), Some(77));
        // A busy machine may start and end a process late; an overrun of the last call would be
        // five seconds.
        let bounds = Duration::from_secs(5)..Duration::from_secs(10);
        assert!(bounds.contains(&took), "{took:?}");
    }
    assert!(!marker.exists());
}
