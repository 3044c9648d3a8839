//! An approver who has no channel: it looks into its inbox when its webhook is called, as a person
//! does whose phone rings.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::json;
use tokio::net::TcpListener;

use super::approver::Approver;
use super::calls::{Call, Clients};
use super::record::Party;

/// How many of a hundred notifications the receiver fails to take.
const FAILURES: usize = 5;

struct WebhookReceiver {
    clients: Arc<Clients>,
    approver: Arc<Approver>,
}

/// Starts the receiver, and returns the call that registers its address.
pub async fn start(clients: &Arc<Clients>, number: u16) -> anyhow::Result<Call> {
    let receiver = Arc::new(WebhookReceiver {
        clients: Arc::clone(clients),
        approver: Arc::new(Approver::new(clients, number, 0)),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new().fallback(post(receive)).with_state(receiver);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let path = format!(
        "/v1/approvers/{}/notifications",
        Party::Approver(number).id()
    );
    let body = json!({ "kind": "webhook", "url": url });
    Ok(Call::post(1, &path, &clients.keys.admin, &body))
}

async fn receive(State(receiver): State<Arc<WebhookReceiver>>) -> StatusCode {
    let WebhookReceiver { clients, approver } = &*receiver;
    if clients.random.percent(FAILURES) {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    clients.book.notify(approver.number);
    let approver = Arc::clone(approver);
    clients.tasks.spawn(async move { approver.look().await });
    StatusCode::NO_CONTENT
}
