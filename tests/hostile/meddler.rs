//! A gateway in between that does what it likes with every call and every answer.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response, header};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::http;

/// A call on its way to the gateway.
#[derive(Clone)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// An answer on its way back.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Content,
}

#[derive(Clone)]
pub enum Content {
    Whole(Vec<u8>),
    /// It never ends.
    Flood,
    /// It begins, and nothing follows.
    Silence,
    /// The connection breaks in the middle.
    Broken,
}

/// The real gateway behind it.
#[derive(Clone)]
pub struct Gateway {
    node: String,
    http: reqwest::Client,
}

/// Passes calls on until it is dropped.
pub struct Meddler {
    pub url: String,
    serving: JoinHandle<()>,
}

/// The subject of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    Initiate,
    Status,
    Devices,
    Submit,
    Wait,
    Other,
}

impl Call {
    pub fn route(&self) -> Route {
        let path = self.path.split('?').next().unwrap();
        match path {
            "/v1/pairing/initiate" => Route::Initiate,
            "/v1/artifacts" => Route::Submit,
            _ if path.starts_with("/v1/pairing/status/") => Route::Status,
            _ if path.ends_with("/devices") => Route::Devices,
            _ if path.ends_with("/wait") => Route::Wait,
            _ => Route::Other,
        }
    }

    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        self.body = edited(&self.body, change);
    }
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: Content::Whole(body.into()),
        }
    }

    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(name, value.parse().unwrap());
        self
    }

    pub fn text(&self) -> &[u8] {
        match &self.body {
            Content::Whole(body) => body,
            Content::Flood | Content::Silence | Content::Broken => &[],
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(self.text()).unwrap()
    }

    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        self.body = Content::Whole(edited(self.text(), change));
    }

    pub fn rewrite(&mut self, change: impl FnOnce(&str) -> String) {
        let text = std::str::from_utf8(self.text()).unwrap();
        self.body = Content::Whole(change(text).into_bytes());
    }
}

fn edited(text: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value = serde_json::from_slice(text).unwrap();
    change(&mut value);
    value.to_string().into_bytes()
}

impl From<Content> for Body {
    fn from(content: Content) -> Self {
        let chunk = Bytes::from(vec![b' '; 1 << 20]);
        match content {
            Content::Whole(body) => Self::from(body),
            Content::Flood => Self::from_stream(stream::repeat(chunk).map(Ok::<_, std::io::Error>)),
            Content::Silence => {
                let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from("{"))]);
                Self::from_stream(first.chain(stream::pending()))
            }
            Content::Broken => {
                let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                Self::from_stream(stream::iter([Ok(Bytes::from("{")), Err(broken)]))
            }
        }
    }
}

impl Gateway {
    pub async fn pass(&self, call: &Call) -> Reply {
        let url = format!("{}{}", self.node, call.path);
        let request = self.http.request(call.method.clone(), url);
        let request = request
            .headers(call.headers.clone())
            .body(call.body.clone());
        let answer = request.send().await.unwrap();
        let mut headers = answer.headers().clone();
        for name in [
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
            header::CONNECTION,
        ] {
            headers.remove(name);
        }
        Reply {
            status: answer.status().as_u16(),
            headers,
            body: Content::Whole(answer.bytes().await.unwrap().to_vec()),
        }
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Meddler {
    /// `meddle` answers every call, with the real gateway's help or without.
    pub async fn start<F: Future<Output = Reply> + Send + 'static>(
        node: &str,
        meddle: impl Fn(Call, Gateway) -> F + Send + Sync + 'static,
    ) -> Self {
        let gateway = Gateway {
            node: node.to_owned(),
            http: http()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .unwrap(),
        };
        let meddle = Arc::new(meddle);
        let router = Router::new().fallback(move |request: Request| {
            let (gateway, meddle) = (gateway.clone(), Arc::clone(&meddle));
            async move {
                let (parts, body) = request.into_parts();
                let mut headers = parts.headers;
                headers.remove(header::HOST);
                headers.remove(header::CONTENT_LENGTH);
                let call = Call {
                    method: parts.method,
                    path: parts.uri.path_and_query().unwrap().to_string(),
                    headers,
                    body: to_bytes(body, 16 << 20).await.unwrap().to_vec(),
                };
                let reply = meddle(call, gateway).await;
                let mut response = Response::new(Body::from(reply.body));
                *response.status_mut() = reply.status.try_into().unwrap();
                *response.headers_mut() = reply.headers;
                response
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, serving }
    }
}

type OnCall = Arc<dyn Fn(&mut Call) + Send + Sync>;
type OnReply = Arc<dyn Fn(&mut Reply) + Send + Sync>;
type Invention = Arc<dyn Fn(&Call) -> Option<Reply> + Send + Sync>;

#[derive(Clone)]
enum Step {
    Call(Route, OnCall),
    Reply(Route, OnReply),
    Instead(Route, Invention),
    Twice(Route),
}

/// Alterations, on the way there and on the way back. The default is honest.
#[derive(Clone, Default)]
pub struct Lie {
    steps: Vec<Step>,
}

impl Lie {
    pub fn call(
        mut self,
        route: Route,
        change: impl Fn(&mut Call) + Send + Sync + 'static,
    ) -> Self {
        self.steps.push(Step::Call(route, Arc::new(change)));
        self
    }

    pub fn reply(
        mut self,
        route: Route,
        change: impl Fn(&mut Reply) + Send + Sync + 'static,
    ) -> Self {
        self.steps.push(Step::Reply(route, Arc::new(change)));
        self
    }

    /// An answer that the gateway never gave. None: it is asked after all.
    pub fn instead(
        mut self,
        route: Route,
        invent: impl Fn(&Call) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        self.steps.push(Step::Instead(route, Arc::new(invent)));
        self
    }

    /// A call that arrives twice. The second answer counts.
    pub fn twice(mut self, route: Route) -> Self {
        self.steps.push(Step::Twice(route));
        self
    }

    /// Changes a decision once there is one.
    pub fn decision(self, change: impl Fn(&mut Reply) + Send + Sync + 'static) -> Self {
        self.reply(Route::Wait, move |reply| {
            if reply.status == 200 {
                change(reply);
            }
        })
    }

    /// Changes what was signed in a decision.
    pub fn body(self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.decision(move |reply| reply.edit(|envelope| change(&mut envelope["body"])))
    }

    pub async fn tell(&self, mut call: Call, gateway: Gateway) -> Reply {
        let route = call.route();
        for step in &self.steps {
            match step {
                Step::Call(about, change) if *about == route => change(&mut call),
                Step::Twice(about) if *about == route => drop(gateway.pass(&call).await),
                Step::Instead(about, invent) if *about == route => {
                    if let Some(reply) = invent(&call) {
                        // As long as a call to a real one would take.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        return reply;
                    }
                }
                _ => {}
            }
        }
        let mut reply = gateway.pass(&call).await;
        for step in &self.steps {
            if let Step::Reply(about, change) = step
                && *about == route
            {
                change(&mut reply);
            }
        }
        reply
    }
}
