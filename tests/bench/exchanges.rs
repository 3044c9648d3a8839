//! Whole exchanges per second: submit, push, decide with a signature that is checked, deliver,
//! acknowledge. Enforcers and approvers hold a WebSocket each, on nodes in turn.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};

use super::client::{Connection, Socket, member, request};
use super::load::{each, in_seconds, random_id, saturate};
use super::nodes::Nodes;
use super::submissions::{Artifact, CONNECTIONS};
use super::{Bench, reference};

/// An enforcer and its approver.
pub struct Pair {
    enforcer: (String, Socket),
    approver: (String, Socket),
    key: SigningKey,
    artifact: Artifact,
    created_at: String,
    /// Makes the ids of its requests.
    pub ids: fn() -> anyhow::Result<String>,
}

impl Pair {
    pub async fn meet(nodes: &Nodes, turn: usize, artifact: &Artifact) -> anyhow::Result<Self> {
        let (enforcer, approver) = (format!("enforcer-{turn}"), format!("approver-{turn}"));
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let key = SigningKey::from_bytes(&seed);
        let public = URL_SAFE_NO_PAD.encode(key.verifying_key().as_bytes());
        let path = format!("/platform/v1/approvers/{approver}/keys/key-1");
        let register = request(
            "PUT",
            &path,
            &nodes.admin,
            &format!(r#"{{"publicKey":"{public}"}}"#),
        );
        let mut connection = Connection::open(nodes.address(turn)).await?;
        connection.call(&register, 200).await?;
        let one = Socket::open(nodes.address(turn), "enforcer", &enforcer, &nodes.enforcer).await?;
        let other = Socket::open(
            nodes.address(turn + 1),
            "approver",
            &approver,
            &nodes.approver,
        )
        .await?;
        Ok(Self {
            enforcer: (enforcer, one),
            approver: (approver, other),
            key,
            artifact: artifact.clone(),
            created_at: in_seconds(-1)?,
            ids: random_id,
        })
    }

    /// One exchange, from the submission to the answer to its last ack. Returns its id.
    pub async fn exchange(&mut self) -> anyhow::Result<String> {
        let id = (self.ids)()?;
        let Self {
            enforcer: (enforcer, enforcing),
            approver: (approver, approving),
            key,
            artifact,
            created_at,
            ids: _,
        } = self;
        enforcing
            .send(artifact.envelope(&id, enforcer, approver))
            .await?;
        let asked = approving.next_of("approval.request").await?;
        anyhow::ensure!(asked.contains(&id), "asked about something else: {asked}");
        let hash = member(&asked, "artifactHash").unwrap_or_default();
        let signed = format!(
            r#"{{"artifactHash":"{hash}","decision":"approve","nonce":"{id}","signerKeyId":"key-1"}}"#
        );
        let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()).to_bytes());
        let body = signed.trim_end_matches('}');
        approving
            .send(format!(
                r#"{{"msgType":"decision.submit","requestId":"{id}","createdAt":"{created_at}","sender":{{"approverId":"{approver}"}},"body":{body},"signature":"{signature}"}}}}"#
            ))
            .await?;
        let delivered = enforcing.next_of("decision.deliver").await?;
        anyhow::ensure!(
            delivered.contains(&id),
            "decided something else: {delivered}"
        );
        let message = member(&delivered, "msgId").unwrap_or_default();
        enforcing
            .send(format!(
                r#"{{"msgType":"ack.submit","requestId":"{id}","createdAt":"{created_at}","sender":{{"enforcerId":"{enforcer}"}},"body":{{"msgId":"{message}","status":"processed","ackAt":"{created_at}"}}}}"#
            ))
            .await?;
        enforcing.next_of("ack.accepted").await?;
        Ok(id)
    }
}

/// Exchanges per second on so many nodes.
async fn rate(bench: &Bench, nodes: usize, artifact: &Artifact) -> anyhow::Result<f64> {
    let nodes = bench.nodes(nodes).await?;
    let pairs = each((0..CONNECTIONS).map(|turn| Pair::meet(&nodes, turn, artifact))).await?;
    let rate = saturate(&nodes.url, pairs, bench.seconds, async |pair: &mut Pair| {
        pair.exchange().await.map(drop)
    })
    .await?;
    nodes.stop().await?;
    Ok(rate)
}

/// Whole exchanges against pgbench's three transactions.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let artifact = Artifact::usual()?;
    let script = reference::exchange(artifact.body());
    let rate = async |bench: &Bench, nodes| rate(bench, nodes, &artifact).await;
    // With PostgreSQL's files in memory, commits cost nothing and only processor time counts.
    let (name, least) = if bench.is_in_memory {
        ("whole exchanges, 64 at once, files in memory", 1.5)
    } else {
        ("whole exchanges, 64 at once", 2.0)
    };
    bench
        .against_pgbench(name, (&script, least), None, 0.9, rate)
        .await
}
