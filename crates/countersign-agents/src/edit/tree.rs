//! Where the parts of a JSON document are in its text.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::EditError;

/// What is accepted: JSON, with comments and trailing commas, which several agents take.
const ACCEPTED: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// A value and its place in the text.
pub(super) struct Node {
    pub start: usize,
    pub end: usize,
    pub kind: Kind,
}

pub(super) enum Kind {
    Object(Vec<Member>),
    List(Vec<Node>),
    Other(Value),
}

pub(super) struct Member {
    pub start: usize,
    pub name: String,
    pub value: Node,
}

impl Node {
    /// The root of `text`; none if there is nothing but space and comments.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, EditError> {
        let parsed = parse_to_ast(text, &CollectOptions::default(), &ACCEPTED);
        let parsed = parsed.map_err(|error| EditError {
            line: line_of(text, error.range().start),
            problem: error.kind().to_string(),
        })?;
        parsed.value.map(|value| convert(text, value)).transpose()
    }

    /// The value, without its places.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => {
                let members = members
                    .iter()
                    .map(|member| (member.name.clone(), member.value.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Kind::List(elements) => Value::Array(elements.iter().map(Self::value).collect()),
            Kind::Other(value) => value.clone(),
        }
    }

    /// The value without the part at `path`.
    pub(super) fn without(&self, path: &[Step]) -> Value {
        let mut value = self.value();
        if let Some((last, outer)) = path.split_last() {
            let container = outer.iter().try_fold(&mut value, |value, step| match step {
                Step::Key(key) => value.get_mut(key),
                Step::Index(index) => value.get_mut(index),
            });
            match (container, last) {
                (Some(Value::Object(members)), Step::Key(key)) => drop(members.remove(key)),
                (Some(Value::Array(elements)), Step::Index(index)) if *index < elements.len() => {
                    drop(elements.remove(*index));
                }
                _ => {}
            }
        }
        value
    }

    pub(super) fn get(&self, step: &Step) -> Option<&Self> {
        match (&self.kind, step) {
            (Kind::Object(members), Step::Key(key)) => {
                let found = members.iter().find(|member| member.name == *key);
                found.map(|member| &member.value)
            }
            (Kind::List(elements), Step::Index(index)) => elements.get(*index),
            _ => None,
        }
    }

    /// Start and end of everything directly inside.
    pub(super) fn parts(&self) -> Vec<(usize, usize)> {
        match &self.kind {
            Kind::Object(members) => members
                .iter()
                .map(|member| (member.start, member.value.end))
                .collect(),
            Kind::List(elements) => elements.iter().map(|node| (node.start, node.end)).collect(),
            Kind::Other(_) => Vec::new(),
        }
    }

    pub(super) fn position(&self, step: &Step) -> Option<usize> {
        match (&self.kind, step) {
            (Kind::Object(members), Step::Key(key)) => {
                members.iter().position(|member| member.name == *key)
            }
            (Kind::List(elements), Step::Index(index)) => {
                (*index < elements.len()).then_some(*index)
            }
            _ => None,
        }
    }
}

fn convert(text: &str, value: ast::Value<'_>) -> Result<Node, EditError> {
    let (start, end) = (value.start(), value.end());
    let kind = match value {
        ast::Value::Object(object) => {
            let mut members: Vec<Member> = Vec::with_capacity(object.properties.len());
            for property in object.properties {
                let start = property.range.start;
                let name = property.name.into_string();
                // Programs do not agree on which one counts.
                if members.iter().any(|member| member.name == name) {
                    return Err(EditError {
                        line: line_of(text, start),
                        problem: format!("{name:?} is there twice"),
                    });
                }
                members.push(Member {
                    start,
                    name,
                    value: convert(text, property.value)?,
                });
            }
            Kind::Object(members)
        }
        ast::Value::Array(array) => {
            let elements = array.elements.into_iter();
            let elements = elements.map(|element| convert(text, element));
            Kind::List(elements.collect::<Result<_, _>>()?)
        }
        ast::Value::StringLit(literal) => Kind::Other(Value::String(literal.value.into_owned())),
        ast::Value::NumberLit(literal) => {
            Kind::Other(serde_json::from_str(literal.value).map_err(|_| EditError {
                line: line_of(text, start),
                problem: "a number is too large".to_owned(),
            })?)
        }
        ast::Value::BooleanLit(literal) => Kind::Other(Value::Bool(literal.value)),
        ast::Value::NullKeyword(_) => Kind::Other(Value::Null),
    };
    Ok(Node { start, end, kind })
}

pub(super) fn line_of(text: &str, position: usize) -> usize {
    let before = text.as_bytes().iter().take(position);
    before.filter(|byte| **byte == b'\n').count() + 1
}
