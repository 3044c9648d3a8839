//! Durable submissions per second: sealed artifacts over kept connections, answered once they are
//! committed.

use super::client::{Connection, request};
use super::load::{each, in_seconds, in_turns, median, random_id, saturate};
use super::nodes::{Nodes, Running};
use super::report::Target;
use super::{Bench, reference};

/// Connections that submit at once, here and in pgbench.
pub const CONNECTIONS: usize = 64;
/// Approvers who share what comes: few have ten thousand waiting.
const APPROVERS: usize = 500;
/// The usual artifact.
const USUAL: usize = 2 << 10;
/// The other sizes.
const SIZES: [(&str, usize); 4] = [
    ("1 KiB", 1 << 10),
    ("16 KiB", 16 << 10),
    ("128 KiB", 128 << 10),
    ("1 MiB", 1 << 20),
];
const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";

/// The submission, but for the id and the approver.
#[derive(Clone)]
pub struct Artifact {
    created_at: String,
    body: String,
}

impl Artifact {
    /// A sealed artifact of so many bytes that lives an hour.
    pub fn sealed(bytes: usize) -> anyhow::Result<Self> {
        let (data, expires_at) = ("A".repeat(bytes), in_seconds(3_600)?);
        Ok(Self {
            created_at: in_seconds(-1)?,
            body: format!(
                r#"{{"artifactType":"command.review","artifactHash":"{HASH}","ciphertext":{{"alg":"A256GCM","data":"{data}"}},"expiresAt":"{expires_at}"}}"#
            ),
        })
    }

    /// The usual one.
    pub fn usual() -> anyhow::Result<Self> {
        Self::sealed(USUAL)
    }

    /// As it is kept.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The envelope that submits it.
    pub fn envelope(&self, id: &str, enforcer: &str, approver: &str) -> String {
        let Self { created_at, body } = self;
        format!(
            r#"{{"msgType":"artifact.submit","requestId":"{id}","createdAt":"{created_at}","sender":{{"enforcerId":"{enforcer}"}},"recipient":{{"approverId":"{approver}"}},"body":{body}}}"#
        )
    }
}

/// One connection that submits.
pub struct Lane {
    connection: Connection,
    enforcer: String,
    turn: usize,
    key: String,
    artifact: Artifact,
}

impl Lane {
    /// Lanes over all nodes.
    pub async fn open(
        nodes: &Nodes,
        count: usize,
        artifact: &Artifact,
    ) -> anyhow::Result<Vec<Self>> {
        each((0..count).map(async |lane| {
            Ok(Self {
                connection: Connection::open(nodes.address(lane)).await?,
                enforcer: format!("enforcer-{lane}"),
                turn: lane,
                key: nodes.enforcer.clone(),
                artifact: artifact.clone(),
            })
        }))
        .await
    }

    /// Submits one artifact.
    pub async fn submit(&mut self) -> anyhow::Result<()> {
        self.turn += 1;
        let approver = format!("approver-{}", self.turn * 7 % APPROVERS);
        self.submit_to(&random_id()?, &approver).await
    }

    /// Submits one artifact to somebody.
    pub async fn submit_to(&mut self, id: &str, approver: &str) -> anyhow::Result<()> {
        let envelope = self.artifact.envelope(id, &self.enforcer, approver);
        let request = request("POST", "/v1/artifacts", &self.key, &envelope);
        self.connection.call(&request, 202).await?;
        Ok(())
    }
}

/// Submissions per second on so many nodes.
async fn rate(bench: &Bench, nodes: usize, artifact: &Artifact) -> anyhow::Result<f64> {
    rate_on(bench, bench.nodes(nodes).await?, artifact).await
}

/// Submissions per second on these nodes, which are stopped afterwards.
pub async fn rate_on(bench: &Bench, nodes: Running, artifact: &Artifact) -> anyhow::Result<f64> {
    let lanes = Lane::open(&nodes, CONNECTIONS, artifact).await?;
    let rate = saturate(&nodes.url, lanes, bench.seconds, Lane::submit).await?;
    nodes.stop().await?;
    Ok(rate)
}

/// Submissions against pgbench's inserts.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let artifact = Artifact::usual()?;
    let script = reference::submission(artifact.body());
    let rate = async |bench: &Bench, nodes| rate(bench, nodes, &artifact).await;
    let name = "durable submissions, 2 KiB sealed, 64 connections";
    let minimal = reference::minimal_submission(artifact.body());
    bench
        .against_pgbench(name, (&script, 2.2), Some((&minimal, 1.2)), 0.95, rate)
        .await
}

/// How submissions grow with what is submitted, here and in pgbench.
pub async fn measure_sizes(bench: &mut Bench) -> anyhow::Result<()> {
    let (here, sizes) = (&*bench, &SIZES);
    let figures = in_turns(here.rounds, async |which| {
        let artifact = Artifact::sealed(sizes[which / 2].1)?;
        if which % 2 == 0 {
            return rate(here, 1, &artifact).await;
        }
        here.pgbench(&reference::submission(artifact.body())).await
    });
    let figures: [f64; SIZES.len() * 2] = figures.await?.map(median);
    for (n, (name, _)) in SIZES.into_iter().enumerate() {
        let (figure, reference, smallest) = (figures[n * 2], figures[n * 2 + 1], figures[0]);
        bench.report.add(
            &format!("submissions of {name}, against pgbench"),
            (figure, "/s"),
            (reference, "/s"),
            Target::AtLeast(1.0),
        );
        if n > 0 {
            bench.report.add(
                &format!("submissions of {name}, against {}", SIZES[0].0),
                (figure, "/s"),
                (smallest, "/s"),
                Target::Open,
            );
        }
    }
    Ok(())
}
