//! Clients that hang up at any moment: nothing accepted is lost, and no connection is left in the
//! middle of anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Cluster, compact, request_id, sealed, until};

/// How many requests are broken off.
const REQUESTS: usize = 10_000;
/// How many at a time.
const AT_ONCE: usize = 64;

/// A number below `most`, from the operating system.
fn random(most: u64) -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_be_bytes(bytes) % most
}

/// Sends a request as raw bytes and hangs up at a random moment: in the middle of sending, while it
/// is being served, or after the first bytes of the answer. True if the answer said 202 or 200.
async fn send_and_abort(address: &str, request: String, patience: &Timeouts) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return false;
    };
    let bytes = request.into_bytes();
    let cut = if random(4) == 0 {
        usize::try_from(random(bytes.len() as u64)).unwrap()
    } else {
        bytes.len()
    };
    if stream.write_all(&bytes[..cut]).await.is_err() || cut < bytes.len() {
        return false;
    }
    let mut answer = [0; 12];
    let heard = match timeout(patience.next(), stream.read_exact(&mut answer)).await {
        Ok(Ok(_)) => answer.starts_with(b"HTTP/1.1 20"),
        _ => false,
    };
    patience.note(heard);
    heard
}

/// How long a client waits before it hangs up, at most: it follows the machine, so that on a busy
/// one too some answers are heard and most are not.
struct Timeouts(AtomicU64);

impl Timeouts {
    fn next(&self) -> Duration {
        Duration::from_micros(random(self.0.load(Ordering::Relaxed)))
    }

    fn note(&self, heard: bool) {
        let most = self.0.load(Ordering::Relaxed);
        let most = if heard {
            most - most / 32
        } else {
            most + most / 128
        };
        self.0
            .store(most.clamp(5_000, 5_000_000), Ordering::Relaxed);
    }
}

fn raw(path: &str, key: &str, body: &serde_json::Value) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_broken_off_requests_leave_everything_whole() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let addresses: Vec<_> = cluster
        .urls()
        .iter()
        .map(|url| url.replace("http://", ""))
        .collect();
    let accepted = Arc::new(tokio::sync::Mutex::new(Vec::new()));
    let heard = AtomicUsize::new(0);
    let patience = Timeouts(AtomicU64::new(80_000));
    stream::iter(0..REQUESTS / 2)
        .for_each_concurrent(AT_ONCE, |number| {
            let (address, enforcer, approver) = (&addresses[number % 2], &enforcer, &approver);
            let (heard, patience) = (&heard, &patience);
            let accepted = Arc::clone(&accepted);
            async move {
                let id = request_id();
                let submission = raw(
                    "/v1/artifacts",
                    enforcer.client.key(),
                    &enforcer.submission(&id, "alice", sealed()),
                );
                let submitted = send_and_abort(address, submission, patience).await;
                let decision = raw(
                    "/v1/decisions",
                    approver.client.key(),
                    &approver.decision(&id, compact("approve")),
                );
                let decided = send_and_abort(address, decision, patience).await;
                heard.fetch_add(usize::from(submitted), Ordering::Relaxed);
                accepted.lock().await.push((id, submitted, decided));
            }
        })
        .await;
    assert!(
        heard.load(Ordering::Relaxed) > REQUESTS / 50,
        "some answers were heard"
    );

    let idle = "select count(*) from pg_stat_activity
                 where datname = current_database() and (state like 'idle in transaction%' or wait_event_type = 'Lock')";
    until(
        "no connection is in a transaction",
        Duration::from_secs(10),
        async || cluster.database.number(idle).await == 0,
    )
    .await;
    for node in &cluster.nodes {
        until("the pool is whole", Duration::from_secs(10), async || {
            let (open, idle) = node.gateway.health.pool_usage();
            open == idle
        })
        .await;
    }

    let accepted = accepted.lock().await;
    let mut connection = cluster.database.connect().await;
    let lost: i64 = sqlx::query_scalar(
        "select count(*)
           from unnest($1::text[], $2::boolean[], $3::boolean[]) as a (request_id, submitted, decided)
           left join exchanges e on e.request_id = a.request_id
          where (a.submitted and e.state is null) or (a.decided and e.state is distinct from 'decided')",
    )
    .bind(accepted.iter().map(|(id, _, _)| id.clone()).collect::<Vec<_>>())
    .bind(accepted.iter().map(|(_, submitted, _)| *submitted).collect::<Vec<_>>())
    .bind(accepted.iter().map(|(_, _, decided)| *decided).collect::<Vec<_>>())
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(lost, 0, "an accepted write is never lost");
    let torn = "select count(*) from exchanges e
                 where not exists (select from inbox_items i where i.request_id = e.request_id)
                    or not exists (select from exchange_payloads p where p.request_id = e.request_id and p.part = 'artifact')
                    or (select count(*) from exchange_events v where v.request_id = e.request_id)
                       <> case when e.state = 'decided' then 2 else 1 end
                    or (e.state = 'decided') <> exists (select from messages m where m.request_id = e.request_id)";
    assert_eq!(
        cluster.database.number(torn).await,
        0,
        "what was written was written whole"
    );

    let request = request_id();
    enforcer.submit(&request, "bob", sealed()).await.expect(202);
    assert_eq!(enforcer.state(&request).await, "pendingApproval");
}
