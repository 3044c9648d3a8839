//! The page for people: every call in a line, every message over event streams and WebSockets in full. One file, no script,
//! nothing fetched from elsewhere; made of the same descriptions as the document.

use std::fmt::Write as _;

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Context;
use super::bodies::artifact;
use super::document;
use super::messages::{Message, messages};
use super::routes::Listed;
use super::rules;
use super::tag::Tag;
use crate::http::sse::RETRY;

const STYLE: &str = include_str!("page.css");

/// Text that means nothing to a browser.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The page, and what it may do in a browser: show itself.
pub fn page(context: &Context<'_>, table: &[Listed]) -> (String, HeaderValue) {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy)
        .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
    let schemas = document::schemas(context);
    let mut main = String::new();
    calls(&mut main, context, table);
    main.push_str("<h2 id=\"channels\">Channels</h2>\n");
    for (title, paragraphs) in rules::rules(context) {
        let _ = writeln!(main, "<h3>{}</h3>", escape(title));
        for paragraph in paragraphs {
            let _ = writeln!(main, "<p>{}</p>", escape(&paragraph));
        }
    }
    stream(&mut main, context);
    closing(&mut main);
    all_messages(&mut main, context, &schemas);
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Countersign API</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>Countersign API</h1>\n\
         <p>An enforcer submits an artifact, an approver decides, the signed decision is delivered. This page lists the calls \
         and describes the messages over event streams and WebSockets; <a href=\"/openapi.json\">openapi.json</a> describes \
         every call in full, with the limits of this node.</p>\n\
         <nav aria-label=\"Contents\"><ul><li><a href=\"#calls\">Calls</a></li><li><a href=\"#channels\">Channels</a></li>\
         <li><a href=\"#closing\">Close codes</a></li><li><a href=\"#messages\">Messages</a></li></ul></nav>\n</header>\n\
         <main>\n{main}</main>\n</body>\n</html>\n"
    );
    (text, policy)
}

fn calls(main: &mut String, context: &Context<'_>, table: &[Listed]) {
    main.push_str("<h2 id=\"calls\">Calls</h2>\n");
    for tag in Tag::ALL {
        let (name, about) = tag.words();
        let _ = write!(
            main,
            "<h3>{name}</h3>\n<p class=\"quiet\">{}</p>\n<div class=\"scroll\"><table>\n\
             <thead><tr><th>call</th><th>by</th><th>what it does</th></tr></thead>\n<tbody>\n",
            escape(about)
        );
        for listed in table {
            let operation = document::describe(context, listed);
            if operation.tag == tag {
                let _ = writeln!(
                    main,
                    "<tr><td><code>{} {}</code></td><td>{}</td><td>{}</td></tr>",
                    listed.method.to_uppercase(),
                    escape(listed.path),
                    operation.role.unwrap_or("anyone"),
                    escape(operation.summary)
                );
            }
        }
        main.push_str("</tbody>\n</table></div>\n");
    }
}

/// An event stream as it looks: its beginning, one message, a ping.
fn stream(main: &mut String, context: &Context<'_>) {
    let message = artifact::request_example(context);
    let _ = writeln!(
        main,
        "<h3>An event stream</h3>\n<pre><code>{}{}event: ping\ndata:</code></pre>",
        escape(RETRY),
        escape(&format!(
            "id: {}\nevent: {}\ndata: {message}\n\n",
            message["msgId"].as_str().unwrap_or_default(),
            message["msgType"].as_str().unwrap_or_default(),
        ))
    );
}

fn closing(main: &mut String) {
    main.push_str(
        "<h2 id=\"closing\">Close codes</h2>\n<div class=\"scroll\"><table>\n\
         <thead><tr><th>code</th><th>why</th><th>then</th></tr></thead>\n<tbody>\n",
    );
    for (code, why, then) in rules::CLOSE_CODES {
        let _ = writeln!(
            main,
            "<tr><td><code>{code}</code></td><td>{}</td><td>{}</td></tr>",
            escape(why),
            escape(then)
        );
    }
    main.push_str("</tbody>\n</table></div>\n");
}

fn all_messages(main: &mut String, context: &Context<'_>, schemas: &Map<String, Value>) {
    main.push_str("<h2 id=\"messages\">Messages</h2>\n");
    main.push_str(
        "<p>All but <code>hello</code> are Envelopes: <code>msgType</code>, <code>requestId</code>, <code>createdAt</code>, \
         <code>sender</code> and <code>body</code>, and from the gateway always <code>msgId</code>. The tables list the \
         members of the body.</p>\n",
    );
    for message in messages(context) {
        one_message(main, &message, schemas);
    }
}

fn one_message(main: &mut String, message: &Message, schemas: &Map<String, Value>) {
    let id = message.schema_name();
    let example = serde_json::to_string_pretty(&message.example).unwrap_or_default();
    let _ = write!(
        main,
        "<section id=\"{id}\">\n<h3><code>{}</code></h3>\n<p class=\"quiet\">{} · {}</p>\n<p>{}</p>\n<p>{}</p>\n",
        message.kind,
        message.direction.words(),
        message.over,
        escape(message.text),
        escape(message.ack)
    );
    let schema = resolve(schemas, &message.schema);
    let body = schema["properties"].get("body").unwrap_or(schema);
    for form in forms(schemas, body) {
        members(main, form);
    }
    let _ = writeln!(
        main,
        "<pre data-message=\"{id}\"><code>{}</code></pre>\n</section>",
        escape(&example)
    );
}

/// A schema, looked up where it only names another.
fn resolve<'s>(schemas: &'s Map<String, Value>, schema: &'s Value) -> &'s Value {
    let name = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next());
    name.and_then(|name| schemas.get(name)).unwrap_or(schema)
}

/// The forms that a body may have.
fn forms<'s>(schemas: &'s Map<String, Value>, body: &'s Value) -> Vec<&'s Value> {
    let body = resolve(schemas, body);
    match body["oneOf"].as_array() {
        Some(forms) => forms.iter().map(|form| resolve(schemas, form)).collect(),
        None => vec![body],
    }
}

fn members(main: &mut String, form: &Value) {
    let Some(properties) = form["properties"].as_object() else {
        return;
    };
    if let Some(title) = form["description"].as_str() {
        let _ = writeln!(main, "<h4>{}</h4>", escape(title));
    }
    main.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th>member</th><th></th><th>is</th></tr></thead>\n<tbody>\n",
    );
    let required = form["required"].as_array();
    for (name, schema) in properties {
        let is_required =
            required.is_some_and(|names| names.iter().any(|one| one == name.as_str()));
        let _ = writeln!(
            main,
            "<tr><td><code>{}</code></td><td class=\"quiet\">{}</td><td>{}</td></tr>",
            escape(name),
            if is_required { "" } else { "optional" },
            escape(&words(schema))
        );
    }
    main.push_str("</tbody>\n</table></div>\n");
}

/// What a member is, in a few words.
fn words(schema: &Value) -> String {
    let kind = if let Some(path) = schema["$ref"].as_str() {
        match path.rsplit('/').next().unwrap_or_default() {
            "Id" => "an id".to_owned(),
            "Uuid" => "a UUID".to_owned(),
            "UuidOrUlid" => "a UUID or ULID".to_owned(),
            "Timestamp" => "a time".to_owned(),
            "Hash" => "a SHA-256".to_owned(),
            other => other.to_owned(),
        }
    } else if let Some(value) = schema.get("const") {
        value.as_str().map_or(value.to_string(), str::to_owned)
    } else if let Some(values) = schema["enum"].as_array() {
        let words: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        format!("one of {}", words.join(", "))
    } else {
        match (schema["type"].as_str(), schema["maxLength"].as_u64()) {
            (Some("string"), Some(most)) => format!("a string of at most {most} characters"),
            (Some("string"), None) => "a string".to_owned(),
            (Some("boolean"), _) => "true or false".to_owned(),
            (Some("object"), _) => "an object".to_owned(),
            (Some(other), _) => other.to_owned(),
            (None, _) => "a decision, in either form".to_owned(),
        }
    };
    match schema["description"].as_str() {
        Some(more) => format!("{kind}; {more}"),
        None => kind,
    }
}
