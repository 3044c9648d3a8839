//! The pages for people, made from the documents. Each is one file that fetches nothing from elsewhere; its script may call
//! this node and no other.

use axum::body::Bytes;
use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, HtmlEscape, UndefinedBehavior, Value, context};
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub struct Page {
    pub html: Bytes,
    /// What the page may do in a browser.
    pub policy: HeaderValue,
}

impl Page {
    pub fn landing() -> Self {
        Self::render("landing.html", &Value::UNDEFINED)
    }

    /// From the documents as they are served; the calls are in the order of `routes`.
    pub fn docs(openapi: &[u8], asyncapi: &[u8], routes: &[(&str, &str)]) -> Self {
        let read = |text| serde_json::from_slice::<serde_json::Value>(text).unwrap_or_default();
        let api = Value::from(Serde(read(openapi)));
        let messages = Value::from(Serde(read(asyncapi)));
        let values = context! { api, messages, routes => Serde(routes) };
        Self::render("docs.html", &values)
    }

    fn render(name: &str, values: &Value) -> Self {
        let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            hash(STYLE),
            hash(SCRIPT)
        );
        let html = text(name, values).unwrap_or_else(|error| {
            tracing::error!(%error, "a page cannot be rendered");
            String::new()
        });
        let nothing = HeaderValue::from_static("default-src 'none'");
        Self {
            html: html.into(),
            policy: HeaderValue::try_from(policy).unwrap_or(nothing),
        }
    }
}

fn text(name: &str, values: &Value) -> Result<String, minijinja::Error> {
    let mut pages = Environment::new();
    pages.set_auto_escape_callback(|_| AutoEscape::Html);
    pages.set_syntax(SyntaxConfig::builder().trim_blocks(true).build()?);
    // A member that is absent is printed as nothing.
    pages.set_undefined_behavior(UndefinedBehavior::Chainable);
    pages.add_filter("code", mark_code);
    pages.add_template("layout.html", include_str!("layout.html"))?;
    pages.add_template("landing.html", include_str!("landing.html"))?;
    pages.add_template("docs.html", include_str!("docs.html"))?;
    let values = context! { style => STYLE, script => SCRIPT, ..values.clone() };
    pages.get_template(name)?.render(values)
}

/// A text of the documents as HTML: what stands between backticks is code.
fn mark_code(text: &str) -> Value {
    let parts = text.split('`').enumerate();
    let html = parts.map(|(index, part)| match (index % 2, HtmlEscape(part)) {
        (0, part) => part.to_string(),
        (_, part) => format!("<code>{part}</code>"),
    });
    Value::from_safe_string(html.collect())
}
