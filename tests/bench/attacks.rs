//! Honest clients of one tenant while another tenant, or nobody known, attacks the node: the 99th
//! percentile of their calls beside that without the attack, and the memory of the node.

mod scene;

use std::cell::Cell;
use std::convert::Infallible;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use self::scene::{AttackScene, ELSEWHERE, HONEST};
use super::Bench;
use super::client::Connection;
use super::load::{Latencies, Timetable, keep, median, random_id};
use super::report::Target;

/// Honest calls a second, whatever the attack.
const RATE: f64 = 20.0;
/// How slowly honest calls may become.
const SLOWER: f64 = 3.0;
/// The node's budget, as it is by default, and what it may have beside that.
const MEMORY_MIB: f64 = 256.0 + 64.0;
/// How long an attack goes on before it is measured.
const BEFORE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    /// One approver opens event streams on four items of 2 MiB and hardly reads them.
    Streams,
    /// 35 connections ask for a page of 8 MB and hardly read it.
    Pages,
    /// Bodies of 5 MB that are expensive to parse.
    Bodies,
    /// Tokens that nobody issued, from eight addresses.
    Tokens,
    /// More idle connections than the node takes.
    Idle,
}

impl Attack {
    const ALL: [(Self, &str); 5] = [
        (Self::Streams, "slow event streams"),
        (Self::Pages, "35 slow connections"),
        (Self::Bodies, "bodies of 5 MB"),
        (Self::Tokens, "invented tokens"),
        (Self::Idle, "idle connections"),
    ];

    /// Attacks until it is dropped.
    async fn run(self, scene: &AttackScene) -> anyhow::Result<Infallible> {
        match self {
            Self::Streams => streams(scene).await,
            Self::Pages => pages(scene).await,
            Self::Bodies => bodies(scene).await,
            Self::Tokens => tokens(scene).await,
            Self::Idle => idle(scene).await,
        }
    }

    /// How long honest calls take.
    async fn honest(self, scene: &AttackScene, seconds: u64) -> anyhow::Result<Latencies> {
        let timetable = Timetable::new(RATE, seconds);
        if self == Self::Tokens {
            let lanes = try_join_all((0..4).map(|_| Connection::open(&scene.address))).await?;
            let fresh = async |lane: &mut Connection| {
                let token = format!("fresh-{}", random_id()?);
                let call = scene.get("/v1/approvers/alice/inbox?limit=1", &token, HONEST);
                lane.call(&call, 200).await.map(drop)
            };
            return keep(lanes, &timetable, fresh).await;
        }
        let lanes = try_join_all((0..4).map(|_| Connection::open(&scene.address))).await?;
        let exchange = async |lane: &mut Connection| scene.exchange(lane).await;
        keep(lanes, &timetable, exchange).await
    }
}

/// A connection with a small receive buffer that has sent a request and not read the answer.
async fn unread(scene: &AttackScene, request: &[u8]) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(8 << 10)?;
    let mut stream = socket.connect(scene.address.parse()?).await?;
    stream.write_all(request).await?;
    Ok(stream)
}

async fn streams(scene: &AttackScene) -> anyhow::Result<Infallible> {
    let open = scene.get("/v1/sse/approvers/mallory", &scene.mallory, ELSEWHERE);
    let mut held = Vec::new();
    loop {
        held.push(unread(scene, &open).await?);
        for stream in &mut held {
            let mut bytes = [0; 512];
            let _cut = timeout(Duration::from_micros(100), stream.read(&mut bytes)).await;
        }
        // As often as one identity may open channels.
        sleep(Duration::from_millis(200)).await;
    }
}

async fn pages(scene: &AttackScene) -> anyhow::Result<Infallible> {
    let ask = scene.get("/v1/approvers/mallory/inbox", &scene.mallory, ELSEWHERE);
    let slow = async || {
        loop {
            let mut stream = unread(scene, &ask).await?;
            let mut bytes = vec![0; 16 << 10];
            // As slowly as the node lets it, and again once it is cut off.
            while let Ok(1..) = stream.read(&mut bytes).await {
                sleep(Duration::from_millis(500)).await;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let all: Vec<anyhow::Result<Infallible>> = join_all((0..35).map(|_| slow())).await;
    ended(all)
}

async fn bodies(scene: &AttackScene) -> anyhow::Result<Infallible> {
    let values = "1,".repeat(2_600_000);
    let body =
        format!(r#"{{"sessionId":"s","eventType":"session.snapshot","payload":[{values}1]}}"#);
    let post = scene.post("/v1/session/event", &scene.mallory_bot, ELSEWHERE, &body);
    loop {
        let mut stream = TcpStream::connect(&scene.address).await?;
        let send = async {
            stream.write_all(&post).await?;
            stream.read(&mut [0; 4_096]).await
        };
        // Refused, perhaps while it is still being sent.
        let _refused = timeout(Duration::from_secs(5), send).await;
        sleep(Duration::from_secs(1)).await;
    }
}

async fn tokens(scene: &AttackScene) -> anyhow::Result<Infallible> {
    let invent = async |address: String| {
        loop {
            let mut connection = Connection::open(&scene.address).await?;
            loop {
                let token = format!("invented-{}", random_id()?);
                let call = scene.get("/v1/approvers/alice/inbox", &token, &address);
                // 401, 429 or 503.
                if connection.call(&call, 401).await.is_err() {
                    break;
                }
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let floods = (0..8 * 40).map(|flood| invent(format!("198.51.100.{}", flood % 8)));
    let all: Vec<anyhow::Result<Infallible>> = join_all(floods).await;
    ended(all)
}

async fn idle(scene: &AttackScene) -> anyhow::Result<Infallible> {
    let mut held = Vec::new();
    loop {
        for _ in 0..50 {
            held.push(TcpStream::connect(&scene.address).await?);
        }
        // Half as many again as there is room for.
        let excess = held.len().saturating_sub(scene::MAX_CONNECTIONS * 3 / 2);
        held.drain(..excess);
        sleep(Duration::from_millis(50)).await;
    }
}

/// The error that ended an attack, which should not have ended.
fn ended(all: Vec<anyhow::Result<Infallible>>) -> anyhow::Result<Infallible> {
    let first = all.into_iter().next();
    first.unwrap_or_else(|| Err(anyhow::anyhow!("nobody attacks")))
}

/// Each attack on a node of its own.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    for (attack, name) in Attack::ALL {
        let (mut without, mut during, mut most_mib) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.rounds {
            let scene = AttackScene::start(bench).await?;
            // Once for nothing, so that caches and plans are warm.
            attack.honest(&scene, 2).await?;
            without.push(attack.honest(&scene, bench.seconds).await?.quantile(990));
            let measured = async {
                sleep(BEFORE).await;
                attack.honest(&scene, bench.seconds).await
            };
            let most = Cell::new(0.0);
            tokio::select! {
                attacked = attack.run(&scene) => match attacked? {},
                watched = scene.watch(&most) => match watched? {},
                latencies = measured => during.push(latencies?.quantile(990)),
            }
            most_mib.push(most.get());
            scene.stop().await?;
        }
        bench.report.add(
            &format!("honest calls beside {name}, p99"),
            (median(during), "ms"),
            (median(without), "ms"),
            Target::AtMost(SLOWER),
        );
        bench.report.add(
            &format!("resident memory at most beside {name}"),
            (median(most_mib), "MiB"),
            (MEMORY_MIB, "MiB"),
            Target::AtMost(1.0),
        );
    }
    Ok(())
}
