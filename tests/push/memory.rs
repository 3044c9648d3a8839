//! The memory of a channel that has carried something large: no more than before.

use countersign::store::identity::credential::RoleName;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::support::cluster::CLUSTER_SECRET;
use crate::support::process::{Process, countersign};
use crate::support::push::Socket;
use crate::support::{Cluster, request_id, sealed, with};

/// Channels of each side that are measured.
const CHANNELS: u64 = 60;
/// Channels before them: what the allocator and the connections to PostgreSQL keep does not grow
/// with the channels, but is there only once some have carried something large.
const FIRST: u64 = 20;
/// How much the node may have grown for each of them, in KiB, after it has carried 2 MB.
const KEPT_KIB: u64 = 1_000;

/// Resident memory of a process, in KiB.
fn resident_kib(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_has_carried_something_large_is_as_small_as_before() {
    let cluster = Cluster::start(1).await;
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("url");
    let listen = ["serve", "--listen", "127.0.0.1:0", "--ready-file"];
    let mut node = Process::start(
        countersign()
            .args(["--database-url", &cluster.database.url])
            .args(listen)
            .arg(&ready)
            .env("COUNTERSIGN_RATES__ENABLED", "false")
            .env("COUNTERSIGN_DATABASE__POOL_SIZE", "2")
            // Nobody acknowledges: what is offered again is held for those who do not read it.
            .env("COUNTERSIGN_PUSH__REOFFER_SECONDS", "600")
            .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET", CLUSTER_SECRET),
    );
    let url = node.await_file(&ready);
    let enforcing = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let approving = cluster.key(&cluster.tenant, RoleName::Approver, None).await;

    let mut sockets = Vec::new();
    for number in 0..FIRST + CHANNELS {
        let id = format!("agent-{number}");
        let socket = Socket::connect(&url, "enforcer", &id, &enforcing).await;
        sockets.push(socket.unwrap());
    }
    let mut before = 0;
    let large = Message::text(" ".repeat(2_000_000));
    for (socket, number) in sockets.iter_mut().zip(0..) {
        if number == FIRST {
            before = resident_kib(&node);
        }
        socket.send_raw(large.clone()).await;
        assert_eq!(socket.expect().await["msgType"], "error", "it is no JSON");
    }
    let heard = (resident_kib(&node).saturating_sub(before)) / CHANNELS;

    let mut sockets = Vec::new();
    for number in 0..FIRST + CHANNELS {
        let id = format!("human-{number}");
        let socket = Socket::connect(&url, "approver", &id, &approving).await;
        sockets.push((id, socket.unwrap()));
    }
    let mut before = 0;
    let enforcer = cluster.enforcer("build-bot").await;
    let large = with(&sealed(), "/ciphertext/data", json!("x".repeat(2_000_000)));
    for ((id, socket), number) in sockets.iter_mut().zip(0..) {
        if number == FIRST {
            before = resident_kib(&node);
        }
        let taken = enforcer.submit(&request_id(), id, large.clone()).await;
        taken.expect(202);
        assert_eq!(socket.expect().await["msgType"], "approval.request");
    }
    let told = (resident_kib(&node).saturating_sub(before)) / CHANNELS;
    assert!(
        heard < KEPT_KIB && told < KEPT_KIB,
        "{heard} and {told} KiB a channel"
    );
}
