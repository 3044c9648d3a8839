//! One call, described: who may make it, what it takes, every way it is answered. Refusals are the errors themselves, so
//! that status, code and wording are those of the catalogue.

use std::time::Duration;

use serde_json::{Value, json};

use super::Context;
use super::content::{Answer, Body};
use super::tag::Tag;
use crate::gateway::caller::Role;
use crate::gateway::error::Error;
use crate::gateway::limit::{Kind, Rate};
use crate::http::error::TransportError;
use crate::protocol::error::Description;
use crate::protocol::json;
use crate::protocol::reader::Invalid;

/// A call.
pub struct Operation {
    pub id: &'static str,
    pub tag: Tag,
    pub summary: &'static str,
    pub description: String,
    /// Who may call; anyone if nobody is named.
    pub role: Option<&'static str>,
    pub parameters: Vec<Value>,
    pub body: Option<Body>,
    pub answers: Vec<Answer>,
    pub refusals: Vec<Description>,
}

impl Operation {
    /// A call that nothing is said of yet.
    pub fn new(id: &'static str, tag: Tag, summary: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            description: String::new(),
            role: None,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// What there is to say of it.
    pub fn text(mut self, text: &str) -> Self {
        text.clone_into(&mut self.description);
        self
    }

    /// For callers of this role, counted as this kind of call.
    pub fn by<R: Role>(mut self, context: &Context<'_>, kind: Kind) -> Self {
        self.role = Some(R::EXPECTED);
        let rate = rate_of(context, kind);
        self.refuses([
            Error::Unauthenticated,
            Error::Forbidden {
                pointer: None,
                expected: R::EXPECTED,
            },
            throttled(kind, rate),
            Error::Unavailable,
            Error::Internal,
        ])
    }

    /// For anyone, counted by address.
    pub fn by_anyone(self, context: &Context<'_>) -> Self {
        let rate = rate_of(context, Kind::Address);
        self.refuses([throttled(Kind::Address, rate), Error::Internal])
    }

    /// With a name in its path.
    pub fn path(mut self, name: &str, schema: Value, example: &str) -> Self {
        let mut parameter =
            json!({ "name": name, "in": "path", "required": true, "example": example });
        parameter["schema"] = schema;
        self.parameters.push(parameter);
        self.refuses_in_transport(TransportError::NoSuchRoute)
    }

    /// With an id in its path, which must be one.
    pub fn path_id(self, name: &'static str, example: &str) -> Self {
        self.path(name, super::schema::id(), example)
            .refuses([Error::Parameter {
                name,
                expected: crate::protocol::id::ID_EXPECTED,
            }])
    }

    /// With a query parameter.
    pub fn query(mut self, name: &'static str, schema: Value, description: &str) -> Self {
        let mut parameter = json!({ "name": name, "in": "query", "description": description });
        parameter["schema"] = schema;
        self.parameters.push(parameter);
        self.refuses([Error::Parameter {
            name: "query",
            expected: "each parameter once, percent-encoded",
        }])
    }

    /// In pages.
    pub fn paged(self, context: &Context<'_>) -> Self {
        let limits = &context.config.limits;
        let limit = json!({ "type": "integer", "minimum": 1, "default": limits.page_default });
        let most = format!(
            "how many items at most; more than {} is as good as that",
            limits.page_max
        );
        self.query(
            "cursor",
            super::schema::text(),
            "`nextCursor` of the page before",
        )
        .query("limit", limit, &most)
    }

    /// With a header.
    pub fn header(mut self, name: &str, required: bool, schema: Value, description: &str) -> Self {
        let mut parameter = json!({
            "name": name, "in": "header", "required": required, "description": description,
        });
        parameter["schema"] = schema;
        self.parameters.push(parameter);
        self
    }

    /// With a body, and the ways that one is refused before it means anything.
    pub fn takes(mut self, body: Body, limit: usize) -> Self {
        self.body = Some(body);
        self.refuses([
            Error::invalid("/member", "what this member should be"),
            unreadable(b"{]"),
            unreadable(br#"{"a":1,"a":2}"#),
            Error::BodyTooLarge { limit },
        ])
        .refuses_in_transport(TransportError::UnsupportedMediaType)
    }

    /// With times in its body.
    pub fn timed(self) -> Self {
        self.refuses([Error::Invalid(Invalid::timestamp(
            "/createdAt",
            "an RFC 3339 date-time",
        ))])
    }

    /// With choices in its body of which this version offers one.
    pub fn versioned(self, pointer: &str, offered: &'static str) -> Self {
        self.refuses([Error::Invalid(Invalid::unsupported(pointer, offered))])
    }

    /// Answered like this.
    pub fn answers(
        mut self,
        status: u16,
        description: &'static str,
        schema: Value,
        example: Value,
    ) -> Self {
        self.answers.push(Answer {
            status,
            description,
            content: Some((None, schema)),
            example: Some(example),
            headers: Vec::new(),
        });
        self
    }

    /// Answered in another media type.
    pub fn answers_as(mut self, media: &'static str, description: &'static str) -> Self {
        self.answers.push(Answer {
            status: 200,
            description,
            content: Some((Some(media), super::schema::text())),
            example: None,
            headers: Vec::new(),
        });
        self
    }

    /// Answered without a body.
    pub fn answers_empty(mut self, status: u16, description: &'static str) -> Self {
        self.answers.push(Answer {
            status,
            description,
            content: None,
            example: None,
            headers: Vec::new(),
        });
        self
    }

    /// The last answer, with a header.
    pub fn with(mut self, name: &'static str, header: Value) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.headers.push((name, header));
        }
        self
    }

    /// Refused like this.
    pub fn refuses<const N: usize>(mut self, errors: [Error; N]) -> Self {
        let described = errors.into_iter().map(|error| error.describe());
        self.refusals.extend(described);
        self
    }

    /// Refused by the transport like this.
    pub fn refuses_in_transport(mut self, error: TransportError) -> Self {
        self.refusals.push(error.describe());
        self
    }
}

/// The refusal of a body that is no strict JSON.
fn unreadable(body: &[u8]) -> Error {
    json::parse(body).map_or_else(Error::Json, |_| Error::Internal)
}

fn throttled(kind: Kind, rate: Rate) -> Error {
    kind.throttled(rate, Duration::from_secs(1))
}

fn rate_of(context: &Context<'_>, kind: Kind) -> Rate {
    let rates = &context.config.rates;
    let (per_second, burst) = match kind {
        Kind::Submission => (rates.submissions, rates.submissions_burst),
        Kind::Decision => (rates.decisions, rates.decisions_burst),
        Kind::Ack => (rates.acks, rates.acks_burst),
        Kind::Read => (rates.reads, rates.reads_burst),
        Kind::Connect => (rates.connects, rates.connects_burst),
        Kind::Address => (rates.address, rates.address_burst),
    };
    Rate { per_second, burst }
}
