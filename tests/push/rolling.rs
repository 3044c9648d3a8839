//! A rolling restart under load, behind a round-robin proxy: no request fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};

use crate::support::fleet::Fleet;
use crate::support::{Approver, Client, Cluster, Enforcer, compact, http, request_id, sealed};

/// A load balancer: asks every node now and then whether it is ready, and hands each connection to
/// the next one that is.
async fn round_robin(urls: &[String]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ready: Arc<Vec<(String, AtomicBool)>> = Arc::new(
        urls.iter()
            .map(|url| (url.replace("http://", ""), AtomicBool::new(true)))
            .collect(),
    );
    let checked = Arc::clone(&ready);
    tokio::spawn(async move {
        let http = http()
            .timeout(Duration::from_secs(2))
            .pool_max_idle_per_host(0)
            .build()
            .unwrap();
        loop {
            for (address, ready) in checked.iter() {
                let answer = http.get(format!("http://{address}/readyz")).send().await;
                ready.store(
                    answer.is_ok_and(|answer| answer.status() == 200),
                    Ordering::Relaxed,
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    tokio::spawn(async move {
        let mut turn = 0;
        while let Ok((mut client, _)) = listener.accept().await {
            turn += 1;
            let (ready, start) = (Arc::clone(&ready), turn);
            tokio::spawn(async move {
                for offset in 0.. {
                    let (address, up) = &ready[(start + offset) % ready.len()];
                    if up.load(Ordering::Relaxed)
                        && let Ok(mut node) = TcpStream::connect(address).await
                    {
                        drop(tokio::io::copy_bidirectional(&mut client, &mut node).await);
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_fails_no_request() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let fleet = Fleet::start(&cluster.database.url, 3);
    let proxy = round_robin(&fleet.urls()).await;
    let done = Arc::new(AtomicBool::new(false));
    let exchanges = Arc::new(AtomicUsize::new(0));
    let restarting = {
        let (done, exchanges) = (Arc::clone(&done), Arc::clone(&exchanges));
        tokio::task::spawn_blocking(move || {
            let mut fleet = fleet;
            for node in 0..3 {
                // Under load: each restart follows on some exchanges that went well.
                let deadline = Instant::now() + Duration::from_secs(60);
                while exchanges.load(Ordering::Relaxed) < 20 * (node + 1)
                    && Instant::now() < deadline
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                fleet.drain_and_restart(node);
            }
            done.store(true, Ordering::Relaxed);
        })
    };
    let clients = (0..4).map(|_| async {
        while !done.load(Ordering::Relaxed) {
            // A connection for each call, as through a balancer that keeps none: none of them may
            // fail.
            let there = |key: &str| Client::single_use(vec![proxy.clone()], key);
            let enforcer = Enforcer {
                client: there(enforcer.client.key()),
                id: enforcer.id.clone(),
            };
            let approver = Approver {
                client: there(approver.client.key()),
                id: approver.id.clone(),
            };
            let request = request_id();
            enforcer
                .submit(&request, "alice", sealed())
                .await
                .expect(202);
            let (waited, decided) = tokio::join!(
                enforcer.wait(&request, 30),
                approver.decide(&request, compact("approve"))
            );
            decided.expect(200);
            // A drained node answers its waits with 204: the next one is asked.
            if waited.status == 204 {
                enforcer.wait(&request, 30).await.expect(200);
            } else {
                waited.expect(200);
            }
            exchanges.fetch_add(1, Ordering::Relaxed);
        }
    });
    futures_util::future::join_all(clients).await;
    restarting.await.unwrap();
    assert!(exchanges.load(Ordering::Relaxed) >= 60, "there was load");
    let decided = cluster
        .database
        .number("select count(*) from exchanges where state = 'decided'")
        .await;
    assert_eq!(
        usize::try_from(decided).unwrap(),
        exchanges.load(Ordering::Relaxed)
    );
}
