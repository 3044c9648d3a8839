//! Clients of a cluster, typed by role. Each call goes to a node of the caller's choice, or to the
//! next in turn: any request may reach any node.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::answer::Answer;
use super::messages::{envelope, now};

/// Any client.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    urls: Vec<String>,
    key: Option<String>,
    turn: AtomicUsize,
}

/// A call in the making.
pub struct Call<'a> {
    client: &'a Client,
    request: reqwest::RequestBuilder,
}

impl Client {
    /// A client of these nodes.
    pub fn new(urls: Vec<String>, key: Option<&str>) -> Self {
        let http = super::http()
            .timeout(Duration::from_secs(90))
            .build()
            .expect("a client");
        Self {
            http,
            urls,
            key: key.map(str::to_owned),
            turn: AtomicUsize::new(0),
        }
    }

    /// A client that makes a connection for each call.
    pub fn single_use(urls: Vec<String>, key: &str) -> Self {
        let http = super::http()
            .timeout(Duration::from_secs(90))
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client");
        Self {
            http,
            ..Self::new(urls, Some(key))
        }
    }

    /// The same client, but only of one node.
    pub fn on(&self, node: usize) -> Self {
        Self::new(vec![self.urls[node].clone()], self.key.as_deref())
    }

    /// The key it presents.
    pub fn key(&self) -> &str {
        self.key.as_deref().expect("a key")
    }

    /// A node's address.
    pub fn url(&self, node: usize) -> &str {
        &self.urls[node]
    }

    /// A call to the next node in turn.
    pub fn call(&self, method: Method, path: &str) -> Call<'_> {
        let node = self.turn.fetch_add(1, Ordering::Relaxed) % self.urls.len();
        let request = self
            .http
            .request(method, format!("{}{path}", self.urls[node]));
        let request = match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        Call {
            client: self,
            request,
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path).send().await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path).send().await
    }

    /// POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path).json(body).send().await
    }

    /// PUT of JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PUT, path).json(body).send().await
    }
}

impl Call<'_> {
    /// With a header.
    pub fn header(self, name: &str, value: &str) -> Self {
        Self {
            request: self.request.header(name, value.as_bytes()),
            ..self
        }
    }

    /// With a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.text(&body.to_string())
    }

    /// With a body of this exact text, said to be JSON.
    pub fn text(self, body: &str) -> Self {
        self.header("content-type", "application/json")
            .bytes(body.as_bytes().to_vec())
    }

    /// With a body of these exact bytes.
    pub fn bytes(self, body: Vec<u8>) -> Self {
        Self {
            request: self.request.body(body),
            ..self
        }
    }

    /// Sends it and reads the answer whole.
    pub async fn send(self) -> Answer {
        self.try_send()
            .await
            .unwrap_or_else(|error| panic!("no answer: {error:?}"))
    }

    /// Sends it, where the node may be gone.
    pub async fn try_send(self) -> Result<Answer, reqwest::Error> {
        let _ = self.client;
        let response = self.request.send().await?;
        Ok(Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await?,
        })
    }
}

/// An enforcer.
#[derive(Debug)]
pub struct Enforcer {
    /// Its connection.
    pub client: Client,
    /// Its id.
    pub id: String,
}

impl Enforcer {
    /// The same enforcer, but of other nodes.
    pub fn at(self, urls: Vec<String>) -> Self {
        Self {
            client: Client::new(urls, Some(self.client.key())),
            ..self
        }
    }

    /// The same enforcer, but on one node only.
    pub fn on(&self, node: usize) -> Self {
        Self {
            client: self.client.on(node),
            id: self.id.clone(),
        }
    }

    /// Submits an artifact body to one approver.
    pub async fn submit(&self, request: &str, approver: &str, body: Value) -> Answer {
        self.client
            .post("/v1/artifacts", &self.submission(request, approver, body))
            .await
    }

    /// The envelope of a submission.
    pub fn submission(&self, request: &str, approver: &str, body: Value) -> Value {
        let mut envelope = envelope(
            "artifact.submit",
            request,
            json!({ "enforcerId": self.id }),
            body,
        );
        envelope["recipient"] = json!({ "approverId": approver });
        envelope
    }

    /// Waits for a decision.
    pub async fn wait(&self, request: &str, seconds: u32) -> Answer {
        self.client
            .get(&format!("/v1/exchanges/{request}/wait?timeout={seconds}"))
            .await
    }

    /// Reads an exchange.
    pub async fn status(&self, request: &str) -> Answer {
        self.client.get(&format!("/v1/exchanges/{request}")).await
    }

    /// Its exchange's state.
    pub async fn state(&self, request: &str) -> String {
        self.status(request)
            .await
            .expect(200)
            .body("/state")
            .as_str()
            .expect("a state")
            .to_owned()
    }

    /// Takes an exchange back.
    pub async fn withdraw(&self, request: &str) -> Answer {
        let body = envelope(
            "exchange.withdrawn",
            request,
            json!({ "enforcerId": self.id }),
            json!({}),
        );
        self.client
            .post(&format!("/v1/exchanges/{request}/withdraw"), &body)
            .await
    }

    /// Acknowledges a message.
    pub async fn ack(&self, request: &str, message: &str) -> Answer {
        let body = json!({ "msgId": message, "status": "processed", "ackAt": now() });
        let envelope = envelope(
            "ack.submit",
            request,
            json!({ "enforcerId": self.id }),
            body,
        );
        self.client.post("/v1/acks", &envelope).await
    }
}

/// An approver.
#[derive(Debug)]
pub struct Approver {
    /// Its connection.
    pub client: Client,
    /// Its id.
    pub id: String,
}

impl Approver {
    /// The same approver, but of other nodes.
    pub fn at(self, urls: Vec<String>) -> Self {
        Self {
            client: Client::new(urls, Some(self.client.key())),
            ..self
        }
    }

    /// The same approver, but on one node only.
    pub fn on(&self, node: usize) -> Self {
        Self {
            client: self.client.on(node),
            id: self.id.clone(),
        }
    }

    /// Submits a decision body.
    pub async fn decide(&self, request: &str, body: Value) -> Answer {
        self.client
            .post("/v1/decisions", &self.decision(request, body))
            .await
    }

    /// The envelope of a decision.
    pub fn decision(&self, request: &str, body: Value) -> Value {
        envelope(
            "decision.submit",
            request,
            json!({ "approverId": self.id }),
            body,
        )
    }

    /// A page of the inbox; `query` begins with a question mark, or is empty.
    pub async fn inbox(&self, query: &str) -> Answer {
        self.client
            .get(&format!("/v1/approvers/{}/inbox{query}", self.id))
            .await
    }

    /// A page of the expired inbox.
    pub async fn expired(&self, query: &str) -> Answer {
        self.client
            .get(&format!("/v1/approvers/{}/inbox/expired{query}", self.id))
            .await
    }

    /// The ids of the exchanges on one page.
    pub async fn inbox_ids(&self) -> Vec<String> {
        request_ids(&self.inbox("?limit=200").await.expect(200))
    }

    /// The ids of the exchanges on one page of the expired inbox.
    pub async fn expired_ids(&self) -> Vec<String> {
        request_ids(&self.expired("?limit=200").await.expect(200))
    }

    /// The ids of the exchanges on all pages of `inbox` or `inbox/expired`, in order.
    pub async fn all_ids(&self, shelf: &str) -> Vec<String> {
        let (mut ids, mut query) = (Vec::new(), "?limit=200".to_owned());
        loop {
            let path = format!("/v1/approvers/{}/{shelf}{query}", self.id);
            let page = self.client.get(&path).await.expect(200);
            ids.append(&mut request_ids(&page));
            match page.body("/nextCursor").as_str() {
                Some(cursor) => query = format!("?limit=200&cursor={cursor}"),
                None => return ids,
            }
        }
    }

    /// Removes an item.
    pub async fn remove(&self, request: &str) -> Answer {
        self.client
            .delete(&format!("/v1/approvers/{}/inbox/{request}", self.id))
            .await
    }

    /// Asks for a refresh.
    pub async fn refresh(&self, request: &str, body: Value) -> Answer {
        let envelope = envelope(
            "refresh.request",
            request,
            json!({ "approverId": self.id }),
            body,
        );
        self.client
            .post(&format!("/v1/exchanges/{request}/refresh"), &envelope)
            .await
    }

    /// Acknowledges a message.
    pub async fn ack(&self, request: &str, message: &str) -> Answer {
        let body = json!({ "msgId": message, "status": "received", "ackAt": now() });
        let envelope = envelope(
            "ack.submit",
            request,
            json!({ "approverId": self.id }),
            body,
        );
        self.client.post("/v1/acks", &envelope).await
    }
}

/// The ids of the exchanges on a page.
pub fn request_ids(page: &Answer) -> Vec<String> {
    let items = page.body("/items");
    let items = items.as_array().expect("items");
    items
        .iter()
        .map(|item| item["requestId"].as_str().expect("an id").to_owned())
        .collect()
}
