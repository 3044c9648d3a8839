//! An authorization server in the test's own process: it publishes keys and introspects tokens,
//! counts what it is asked, and can be slow, wrong or gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::issuer::IssuerKey;

/// An endpoint's answer.
#[derive(Debug, Clone)]
pub enum Says {
    /// This, with 200.
    Json(Value),
    /// This text with this status.
    Text(u16, String),
    /// That the answer is elsewhere.
    Redirect(String),
    /// This, after a while.
    Late(Duration, Value),
}

impl Says {
    async fn respond(self) -> Response {
        match self {
            Self::Json(value) => value.to_string().into_response(),
            Self::Text(status, text) => {
                (StatusCode::from_u16(status).unwrap(), text).into_response()
            }
            Self::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
            Self::Late(pause, value) => {
                tokio::time::sleep(pause).await;
                value.to_string().into_response()
            }
        }
    }
}

/// Shared by the endpoints and the test.
#[derive(Default)]
struct Desk {
    keys: Mutex<Option<Says>>,
    keys_read: AtomicUsize,
    tokens: Mutex<HashMap<String, Says>>,
    asked: AtomicUsize,
    asking: AtomicUsize,
    most_asking: AtomicUsize,
    authorization: Mutex<Option<String>>,
    traceparent: Mutex<Option<String>>,
}

/// The server.
pub struct Provider {
    /// Where it is.
    pub url: String,
    desk: Arc<Desk>,
    serving: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Provider {
    /// A server that publishes these keys.
    pub async fn start(keys: &[&IssuerKey]) -> Self {
        Self::start_at("127.0.0.1:0", keys).await
    }

    /// The same, at a certain address.
    pub async fn start_at(address: &str, keys: &[&IssuerKey]) -> Self {
        let desk = Arc::<Desk>::default();
        let router = Router::new()
            .route("/jwks", get(jwks))
            .route("/introspect", post(introspect))
            .with_state(Arc::clone(&desk));
        let listener = TcpListener::bind(address).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        let provider = Self { url, desk, serving };
        provider.publish(keys);
        provider
    }

    /// Publishes these keys from now on.
    pub fn publish(&self, keys: &[&IssuerKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        self.publish_as(Says::Json(json!({ "keys": keys })));
    }

    /// Answers for its keys like this from now on.
    pub fn publish_as(&self, says: Says) {
        *self.desk.keys.lock().unwrap() = Some(says);
    }

    /// How often its keys were read.
    pub fn keys_read(&self) -> usize {
        self.desk.keys_read.load(Ordering::SeqCst)
    }

    /// Answers for this token like this from now on.
    pub fn know(&self, token: &str, says: Says) {
        let mut tokens = self.desk.tokens.lock().unwrap();
        tokens.insert(token.to_owned(), says);
    }

    /// How often it was asked about tokens.
    pub fn asked(&self) -> usize {
        self.desk.asked.load(Ordering::SeqCst)
    }

    /// How often at once, at most.
    pub fn most_asking(&self) -> usize {
        self.desk.most_asking.load(Ordering::SeqCst)
    }

    /// The header of the last request.
    pub fn authorization(&self) -> String {
        self.desk.authorization.lock().unwrap().clone().unwrap()
    }

    /// In which trace it was last asked.
    pub fn traceparent(&self) -> Option<String> {
        self.desk.traceparent.lock().unwrap().clone()
    }
}

async fn jwks(State(desk): State<Arc<Desk>>) -> Response {
    desk.keys_read.fetch_add(1, Ordering::SeqCst);
    let says = desk.keys.lock().unwrap().clone().expect("keys");
    says.respond().await
}

/// A question until it is answered, or until the node that asked has hung up.
struct Asking<'a>(&'a Desk);

impl<'a> Asking<'a> {
    fn begin(desk: &'a Desk) -> Self {
        let asking = desk.asking.fetch_add(1, Ordering::SeqCst) + 1;
        desk.most_asking.fetch_max(asking, Ordering::SeqCst);
        Self(desk)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn introspect(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    desk.asked.fetch_add(1, Ordering::SeqCst);
    let _asking = Asking::begin(&desk);
    let authorization = headers[header::AUTHORIZATION].to_str().unwrap().to_owned();
    *desk.authorization.lock().unwrap() = Some(authorization);
    let traceparent = headers.get("traceparent");
    *desk.traceparent.lock().unwrap() = traceparent.map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(
        headers[header::CONTENT_TYPE],
        "application/x-www-form-urlencoded"
    );
    // The tokens of the tests need no decoding, but for the few that are there to be encoded.
    let form = String::from_utf8(body.to_vec()).unwrap();
    let token = form.split('&').find_map(|pair| pair.strip_prefix("token="));
    let token = token
        .expect("a token")
        .replace("%2B", "+")
        .replace("%2F", "/")
        .replace("%3D", "=");
    let says = desk.tokens.lock().unwrap().get(&token).cloned();
    let says = says.unwrap_or(Says::Json(json!({ "active": false })));
    says.respond().await
}
