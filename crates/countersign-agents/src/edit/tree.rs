//! Places of the parts of a JSON document in its text.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::EditError;

/// JSON with comments and trailing commas, which several agents take.
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
pub enum PathStep {
    Key(String),
    Index(usize),
}

/// A value and its place in the text.
pub(super) struct TextNode {
    pub start: usize,
    pub end: usize,
    pub kind: NodeKind,
    pub parts: Vec<NodePart>,
}

pub(super) enum NodeKind {
    Object,
    List,
    Other(Value),
}

/// A member of an object, or an element of a list.
pub(super) struct NodePart {
    /// Where the name begins, or the element.
    pub start: usize,
    /// Empty in a list.
    name: String,
    pub value: TextNode,
}

impl TextNode {
    /// The root of `text`. `None` if there is nothing but space and comments.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, EditError> {
        let parsed = parse_to_ast(text, &CollectOptions::default(), &ACCEPTED);
        let parsed = parsed
            .map_err(|error| EditError::at(text, error.range().start, error.kind().to_string()))?;
        parsed.value.map(|value| convert(text, value)).transpose()
    }

    /// The value, without its places.
    pub(super) fn value(&self) -> Value {
        let parts = self.parts.iter();
        match &self.kind {
            NodeKind::Object => {
                (parts.map(|part| (part.name.clone(), part.value.value()))).collect()
            }
            NodeKind::List => parts.map(|part| part.value.value()).collect(),
            NodeKind::Other(value) => value.clone(),
        }
    }

    /// Takes out the part at `path`. The places of the others stay.
    pub(super) fn take_out(&mut self, path: &[PathStep]) -> Option<()> {
        let (first, rest) = path.split_first()?;
        let index = self.position(first)?;
        if rest.is_empty() {
            self.parts.remove(index);
            return Some(());
        }
        self.parts[index].value.take_out(rest)
    }

    pub(super) fn get(&self, step: &PathStep) -> Option<&Self> {
        self.position(step).map(|index| &self.parts[index].value)
    }

    pub(super) fn position(&self, step: &PathStep) -> Option<usize> {
        match (&self.kind, step) {
            (NodeKind::Object, PathStep::Key(key)) => {
                self.parts.iter().position(|part| part.name == *key)
            }
            (NodeKind::List, PathStep::Index(index)) => {
                Some(*index).filter(|index| *index < self.parts.len())
            }
            _ => None,
        }
    }
}

fn convert(text: &str, value: ast::Value<'_>) -> Result<TextNode, EditError> {
    let (start, end) = (value.start(), value.end());
    let mut parts: Vec<NodePart> = Vec::new();
    let kind = match value {
        ast::Value::Object(object) => {
            for property in object.properties {
                let start = property.range.start;
                let name = property.name.into_string();
                // Programs do not agree on which one counts.
                if parts.iter().any(|part| part.name == name) {
                    let problem = format!("{name:?} occurs twice");
                    return Err(EditError::at(text, start, problem));
                }
                let value = convert(text, property.value)?;
                parts.push(NodePart { start, name, value });
            }
            NodeKind::Object
        }
        ast::Value::Array(array) => {
            for element in array.elements {
                let value = convert(text, element)?;
                let (start, name) = (value.start, String::new());
                parts.push(NodePart { start, name, value });
            }
            NodeKind::List
        }
        ast::Value::StringLit(literal) => NodeKind::Other(literal.value.into_owned().into()),
        ast::Value::NumberLit(literal) => {
            let number = serde_json::from_str(literal.value);
            let problem = || EditError::at(text, start, "a number is too large".to_owned());
            NodeKind::Other(number.map_err(|_| problem())?)
        }
        ast::Value::BooleanLit(literal) => NodeKind::Other(literal.value.into()),
        ast::Value::NullKeyword(_) => NodeKind::Other(Value::Null),
    };
    Ok(TextNode {
        start,
        end,
        kind,
        parts,
    })
}
