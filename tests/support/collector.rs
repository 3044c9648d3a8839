//! A collector of OTLP over HTTP: it keeps what it is sent, as bytes and understood.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

/// One request it was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A span, and the node it comes from.
#[derive(Debug, Clone)]
pub struct Told {
    pub node: String,
    pub span: Span,
}

/// A collector that runs as long as the test.
pub struct Collector {
    /// The endpoint to configure.
    pub endpoint: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

async fn take(
    State(sent): State<Arc<Mutex<Vec<Sent>>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let path = uri.path().to_owned();
    sent.lock().unwrap().push(Sent {
        path,
        headers,
        body,
    });
    StatusCode::OK
}

/// The value of an attribute that is a text.
pub fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        any_value::Value::StringValue(text) => Some(text),
        any_value::Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{key} is {other:?}"),
    }
}

fn node_of(resource: Option<Resource>) -> String {
    let attributes = resource.expect("a resource").attributes;
    assert_eq!(
        text(&attributes, "service.name").as_deref(),
        Some("countersign")
    );
    text(&attributes, "service.instance.id").expect("a node")
}

impl Collector {
    /// Starts one.
    pub async fn start() -> Self {
        let sent: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .route("/v1/metrics", post(take))
            .with_state(Arc::clone(&sent));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { endpoint, sent }
    }

    /// Everything it was sent.
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The spans it was told.
    pub fn spans(&self) -> Vec<Told> {
        let mut told = Vec::new();
        for sent in self.sent().iter().filter(|sent| sent.path == "/v1/traces") {
            assert_eq!(sent.headers["content-type"], "application/x-protobuf");
            let request = ExportTraceServiceRequest::decode(sent.body.clone()).expect("OTLP");
            for resource in request.resource_spans {
                let node = node_of(resource.resource);
                let spans = resource
                    .scope_spans
                    .into_iter()
                    .flat_map(|scope| scope.spans);
                told.extend(spans.map(|span| Told {
                    node: node.clone(),
                    span,
                }));
            }
        }
        told
    }

    /// The spans of one trace.
    pub fn trace(&self, trace_id: &str) -> Vec<Told> {
        let mut spans = self.spans();
        spans.retain(|told| hex(&told.span.trace_id) == trace_id);
        spans
    }

    /// The last metrics it was told by a node, if any.
    pub fn metrics(&self, node: &str) -> Option<ExportMetricsServiceRequest> {
        let sent = self.sent();
        let requests = sent.iter().filter(|sent| sent.path == "/v1/metrics");
        let mut requests = requests
            .map(|sent| ExportMetricsServiceRequest::decode(sent.body.clone()).expect("OTLP"))
            .filter(|request| {
                let resource = request.resource_metrics[0].resource.clone();
                node_of(resource) == node
            });
        requests.next_back()
    }
}

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}
