//! The page that tells a phone how to trust the certificate authority, and the certificate itself.
//! Plain HTTP, because the phone trusts nothing of ours yet: it has no secret, and the person
//! compares the fingerprint with the one in the terminal.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::authority::LanAuthority;

const MAX_CONNECTIONS: usize = 16;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause when the process is out of file descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

const CERTIFICATE_PATH: &str = "/countersign-dev.crt";
const TEMPLATE: &str = include_str!("trust_page.html");

struct TrustPage {
    html: Bytes,
    certificate: Bytes,
}

pub fn serve(
    listener: TcpListener,
    authority: &LanAuthority,
    gateway: &str,
) -> impl Future<Output = ()> + Send + use<> {
    let html = TEMPLATE
        .replace("{certificate}", CERTIFICATE_PATH)
        .replace("{fingerprint}", &authority.fingerprint())
        .replace("{gateway}", gateway);
    let page = Arc::new(TrustPage {
        html: html.into(),
        certificate: authority.certificate.clone().into(),
    });
    let limiter = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    async move {
        loop {
            let permit = Arc::clone(&limiter).acquire_owned().await;
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_RETRY_INTERVAL).await;
                continue;
            };
            let page = Arc::clone(&page);
            tokio::spawn(async move {
                let _permit = permit;
                let service = service_fn(async |request: Request<Incoming>| {
                    Ok::<_, Infallible>(page.answer(&request))
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service);
                let _broken_off = timeout(CONNECTION_TIMEOUT, connection).await;
            });
        }
    }
}

impl TrustPage {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, kind, body) = match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => (StatusCode::OK, "text/html; charset=utf-8", &self.html),
            // Phones offer to install a certificate of this type.
            (&Method::GET, CERTIFICATE_PATH) => (
                StatusCode::OK,
                "application/x-x509-ca-cert",
                &self.certificate,
            ),
            _ => (StatusCode::NOT_FOUND, "text/plain", &Bytes::new()),
        };
        let mut response = Response::new(Full::new(body.clone()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
