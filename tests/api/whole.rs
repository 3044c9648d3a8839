//! A whole life of everything, each answer held against the document.

mod administration;
mod devices;
mod exchanges;
mod limits;
mod people;

use reqwest::Method;
use serde_json::{Value, json};

use super::Everyone;
use crate::support::{Answer, Client, Cluster, Contract, envelope};

/// A node, everyone, and the document.
struct ApiScene {
    cluster: Cluster,
    everyone: Everyone,
    contract: Contract,
}

impl ApiScene {
    async fn new() -> Self {
        let cluster = Cluster::with(1, |config| {
            config.limits.pending_per_approver = 1_000;
            config.presence.write_seconds = 1;
        })
        .await;
        let everyone = Everyone::of(&cluster).await;
        let contract = Contract::of(&everyone.nobody).await;
        Self {
            cluster,
            everyone,
            contract,
        }
    }

    async fn get(&self, client: &Client, path: &str) -> Answer {
        self.contract.call(client, Method::GET, path, None).await
    }

    async fn post(&self, client: &Client, path: &str, body: &Value) -> Answer {
        let call = self.contract.call(client, Method::POST, path, Some(body));
        call.await
    }

    /// A call with a header, checked too.
    async fn with(
        &self,
        client: &Client,
        path: &str,
        header: (&str, &str),
        body: &Value,
    ) -> Answer {
        let call = client.call(Method::POST, path).header(header.0, header.1);
        let answer = call.json(body).send().await;
        if let Err(fault) = self.contract.check(&Method::POST, path, &answer) {
            panic!("{fault}");
        }
        answer
    }
}

fn submission(request: &str, body: Value) -> Value {
    let mut sent = envelope(
        "artifact.submit",
        request,
        json!({ "enforcerId": "build-bot" }),
        body,
    );
    sent["recipient"] = json!({ "approverId": "alice" });
    sent
}

fn decision(request: &str, body: Value) -> Value {
    envelope(
        "decision.submit",
        request,
        json!({ "approverId": "alice" }),
        body,
    )
}
