//! An OpenID provider in the test's own process: every visitor is signed in at once, as the person
//! the test names. It checks what the page sends, and its refresh tokens work once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::tokens::issuer::{IssuerKey, unix};

pub const CLIENT: &str = "page";
pub const AUDIENCE: &str = "gateway";

type Parameters = HashMap<String, String>;

/// How an authorization request is answered.
#[derive(Clone, Default)]
pub enum Answer {
    #[default]
    Code,
    /// With a code, and this in place of a parameter.
    Altered(&'static str, &'static str),
    Denied,
}

/// The provider's behaviour, and the requests that it got.
#[derive(Default)]
pub struct Desk {
    pub tenant: String,
    pub person: String,
    pub answer: Answer,
    /// How long access tokens last.
    pub seconds: i64,
    pub refuses_refresh: bool,
    /// The parameters of the page's last request.
    pub asked: Parameters,
    codes: HashMap<String, Parameters>,
    refresh_tokens: HashSet<String>,
    issued: usize,
    pub exchanged: usize,
    pub refreshed: usize,
    /// Refresh tokens that came a second time.
    pub reused: usize,
    pub revoked: Vec<String>,
    pub signed_out: usize,
}

struct Shared {
    key: IssuerKey,
    url: String,
    desk: Mutex<Desk>,
}

pub struct OpenId {
    /// Its issuer.
    pub url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Drop for OpenId {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl OpenId {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            key: IssuerKey::new("k1", "ES256"),
            url: url.clone(),
            desk: Mutex::new(Desk {
                person: "alice".into(),
                seconds: 600,
                ..Desk::default()
            }),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/jwks", get(jwks))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .route("/logout", get(logout))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self {
            url,
            shared,
            serving,
        }
    }

    pub fn desk(&self) -> MutexGuard<'_, Desk> {
        self.shared.desk.lock().unwrap()
    }

    /// The part of its address that people see.
    pub fn host(&self) -> &str {
        self.url.trim_start_matches("http://")
    }
}

/// An answer that pages of every origin may read.
fn open(status: StatusCode, value: &Value) -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, value.to_string()).into_response()
}

async fn discovery(State(shared): State<Arc<Shared>>) -> Response {
    let at = |path: &str| format!("{}{path}", shared.url);
    let document = json!({
        "issuer": shared.url, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "jwks_uri": at("/jwks"), "revocation_endpoint": at("/revoke"), "end_session_endpoint": at("/logout"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    open(StatusCode::OK, &document)
}

async fn jwks(State(shared): State<Arc<Shared>>) -> Response {
    open(StatusCode::OK, &json!({ "keys": [shared.key.jwk()] }))
}

async fn authorize(State(shared): State<Arc<Shared>>, Query(asked): Query<Parameters>) -> Response {
    let mut desk = shared.desk.lock().unwrap();
    assert_eq!(asked["response_type"], "code");
    assert_eq!(asked["client_id"], CLIENT);
    assert_eq!(asked["code_challenge_method"], "S256");
    let mut answer = Parameters::from([
        ("state".to_owned(), asked["state"].clone()),
        ("iss".to_owned(), shared.url.clone()),
    ]);
    if matches!(desk.answer, Answer::Denied) {
        answer.insert("error".into(), "access_denied".into());
        answer.insert("error_description".into(), "Not on a Friday".into());
    } else {
        desk.issued += 1;
        let code = format!("code-{}", desk.issued);
        desk.codes.insert(code.clone(), asked.clone());
        answer.insert("code".into(), code);
    }
    if let Answer::Altered(name, value) = desk.answer {
        answer.insert(name.to_owned(), value.to_owned());
    }
    let to = Url::parse_with_params(&asked["redirect_uri"], &answer).unwrap();
    desk.asked = asked;
    Redirect::to(to.as_str()).into_response()
}

fn form(body: &str) -> Parameters {
    let url = Url::parse(&format!("http://form/?{body}")).unwrap();
    url.query_pairs().into_owned().collect()
}

async fn token(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let asked = form(&body);
    let mut desk = shared.desk.lock().unwrap();
    let refused = || {
        open(
            StatusCode::BAD_REQUEST,
            &json!({ "error": "invalid_grant" }),
        )
    };
    assert_eq!(asked["client_id"], CLIENT);
    let nonce = if asked["grant_type"] == "authorization_code" {
        let Some(begun) = desk.codes.remove(&asked["code"]) else {
            return refused();
        };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&asked["code_verifier"]));
        if challenge != begun["code_challenge"] || asked["redirect_uri"] != begun["redirect_uri"] {
            return refused();
        }
        desk.exchanged += 1;
        begun.get("nonce").cloned()
    } else {
        assert_eq!(asked["grant_type"], "refresh_token");
        if desk.refuses_refresh {
            return refused();
        }
        if !desk.refresh_tokens.remove(&asked["refresh_token"]) {
            desk.reused += 1;
            return refused();
        }
        desk.refreshed += 1;
        None
    };
    desk.issued += 1;
    let refresh_token = format!("refresh-{}", desk.issued);
    desk.refresh_tokens.insert(refresh_token.clone());
    let end = unix(desk.seconds);
    let access = json!({
        "iss": shared.url, "aud": AUDIENCE, "sub": format!("user-{}", desk.person), "iat": unix(0), "exp": end,
        "jti": format!("token-{}", desk.issued), "tenant": desk.tenant, "role": "approver", "countersign_id": desk.person,
    });
    let header = json!({ "alg": shared.key.algorithm, "typ": "at+jwt", "kid": shared.key.id });
    let mut answer = json!({
        "access_token": shared.key.sign_text(&header.to_string(), &access.to_string()),
        "token_type": "Bearer", "expires_in": desk.seconds, "refresh_token": refresh_token,
    });
    if let Some(nonce) = nonce {
        answer["id_token"] = shared
            .key
            .sign(&json!({
                "iss": shared.url, "aud": CLIENT, "sub": format!("user-{}", desk.person), "exp": end, "nonce": nonce,
                "email": format!("{}@example.com", desk.person),
            }))
            .into();
    }
    open(StatusCode::OK, &answer)
}

async fn revoke(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let asked = form(&body);
    let mut desk = shared.desk.lock().unwrap();
    desk.refresh_tokens.remove(&asked["token"]);
    desk.revoked.push(asked["token"].clone());
    open(StatusCode::OK, &json!({}))
}

async fn logout(State(shared): State<Arc<Shared>>, Query(asked): Query<Parameters>) -> Redirect {
    assert_eq!(asked["client_id"], CLIENT);
    assert!(asked.contains_key("id_token_hint"));
    shared.desk.lock().unwrap().signed_out += 1;
    Redirect::to(&asked["post_logout_redirect_uri"])
}
