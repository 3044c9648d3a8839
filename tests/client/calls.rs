//! Calls to a gateway that is away, slow, busy, or not the right one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use countersign::client::{ClientError, GatewayCall, GatewayClient, GatewayLocation};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::support::Cluster;
use crate::support::tls::{Authority, Files};

/// A server whose answers a test chooses, by the number of the call.
async fn server(
    answer: impl Fn(usize, &Request) -> Response + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, answer) = (Arc::clone(&calls), Arc::new(answer));
    let router = Router::new().fallback(move |request: Request| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        let answer = Arc::clone(&answer);
        async move { answer(number, &request) }
    });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, calls)
}

/// The address of nobody.
async fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn client(urls: &[String]) -> GatewayClient {
    let location = GatewayLocation {
        urls,
        ..GatewayLocation::default()
    };
    GatewayClient::new(&location, Some("csk_test")).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_answers_at_once_when_one_is_away() {
    let (url, calls) = server(|_, _| "fine".into_response()).await;
    let client = client(&[nowhere().await, nowhere().await, url]);
    let begun = Instant::now();
    let answer = client.call(&GatewayCall::get("/"), soon()).await.unwrap();
    assert_eq!((answer.status, answer.text().unwrap()), (200, "fine"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    // The next call goes to the node that answered.
    client.call(&GatewayCall::get("/"), soon()).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_made_again_while_the_gateway_is_busy_and_no_longer() {
    let (url, calls) = server(|number, _| match number {
        0 => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")]).into_response(),
        1 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        2 => StatusCode::BAD_GATEWAY.into_response(),
        _ => "fine".into_response(),
    })
    .await;
    let client = client(&[url]);
    let begun = Instant::now();
    let answer = client
        .call(&GatewayCall::post("/", "{}"), soon())
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "as it was asked to"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_without_end_is_not_waited_for() {
    let (url, calls) = server(|_, _| {
        let longest = u64::MAX.to_string();
        (
            StatusCode::TOO_MANY_REQUESTS,
            [(header::RETRY_AFTER, longest)],
        )
            .into_response()
    })
    .await;
    let begun = Instant::now();
    let answer = client(&[url])
        .call(&GatewayCall::get("/"), soon())
        .await
        .unwrap();
    assert_eq!(answer.status, 429);
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_stays_away_is_given_up_in_time_and_named() {
    let url = nowhere().await;
    let client = client(std::slice::from_ref(&url));
    let begun = Instant::now();
    let deadline = begun + Duration::from_millis(800);
    let error = client
        .call(&GatewayCall::get("/"), deadline)
        .await
        .unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(error.is_unavailable());
    let shown = error.to_string();
    assert!(
        shown.contains(&url) && shown.contains("Connection refused"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_may_have_arrived_is_not_made_again_if_it_must_not() {
    let (url, calls) = server(|_, _| StatusCode::SERVICE_UNAVAILABLE.into_response()).await;
    let client = client(&[url]);
    let call = GatewayCall::post("/", "{}").once();
    let error = client.expect(&call, &[200], soon()).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(_)), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed_and_the_credential_stays() {
    let (other, others_calls) = server(|_, _| "stolen".into_response()).await;
    let (url, _) = server(move |_, request| {
        assert_eq!(request.headers()[header::AUTHORIZATION], "Bearer csk_test");
        (
            StatusCode::TEMPORARY_REDIRECT,
            [(header::LOCATION, other.clone())],
        )
            .into_response()
    })
    .await;
    let error = client(&[url])
        .expect(&GatewayCall::get("/"), &[200], soon())
        .await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains("307"), "{error}");
    assert_eq!(others_calls.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_cut_off() {
    let (url, calls) = server(|_, _| vec![b'x'; 33 << 20].into_response()).await;
    let error = client(&[url])
        .call(&GatewayCall::get("/"), soon())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("32 MiB"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 1, "it would be as long again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_writes_into_an_error_cannot_control_the_terminal() {
    let (url, _) = server(|_, _| {
        let body = r#"{"code": "PROTO_ERR_FORBIDDEN", "message": "no \u001b[2J\u202eway", "details": {"expected": "\u0007"}}"#;
        (StatusCode::FORBIDDEN, body).into_response()
    })
    .await;
    let error = client(&[url])
        .expect(&GatewayCall::get("/"), &[200], soon())
        .await;
    let shown = error.unwrap_err().to_string();
    let expected = r"no \u{1b}[2J\u{202e}way; expected \u{7} (403 FORBIDDEN)";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn a_credential_is_not_sent_in_plain_to_another_machine() {
    let make = |url: &str, allow_http| {
        let location = GatewayLocation {
            urls: &[url.to_owned()],
            ca: None,
            allow_http,
        };
        GatewayClient::new(&location, Some("csk_test"))
    };
    for url in [
        "http://gateway.example.org",
        "http://10.0.0.1:8080",
        "http://127.0.0.1.example.org",
    ] {
        let error = make(url, false).err().unwrap().to_string();
        assert!(error.contains("use https"), "{error}");
        make(url, true).map(drop).unwrap();
    }
    for url in [
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "http://localhost",
        "https://gateway.example.org/countersign",
    ] {
        make(url, false).map(drop).unwrap();
    }
    for url in [
        "",
        "gateway",
        "ftp://gateway",
        "https://user:pass@gateway",
        "https://gateway/?x=1",
    ] {
        let error = make(url, true).err().unwrap().to_string();
        assert!(error.contains("expected"), "{url}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_known_by_its_certificate() {
    let authority = Authority::new("gateways");
    let files = Files::with(&authority.server());
    let cluster = Cluster::with(1, |config| files.configure(config)).await;
    let ca = files.put("own.pem", &authority.pem());
    let wrong = files.put("other.pem", &Authority::new("others").pem());
    let urls = cluster.urls().into_iter();
    let urls: Vec<_> = urls.map(|url| url.replace("http:", "https:")).collect();
    let call = async |ca: Option<&std::path::Path>| {
        let location = GatewayLocation {
            urls: &urls,
            ca,
            allow_http: false,
        };
        let client = GatewayClient::new(&location, None)?;
        client
            .expect(&GatewayCall::get("/livez"), &[200], soon())
            .await
    };
    call(Some(&ca)).await.unwrap();
    for ca in [None, Some(wrong.as_path())] {
        let begun = Instant::now();
        let error = call(ca).await.unwrap_err().to_string();
        assert!(error.contains("certificate"), "{error}");
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "it is not tried again"
        );
    }
    let none = files.put("none.pem", "nothing");
    let error = call(Some(&none)).await.unwrap_err().to_string();
    assert!(error.contains("none.pem"), "{error}");
}
