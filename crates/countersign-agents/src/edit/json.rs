//! JSON that people edit by hand, changed by inserting and cutting text. The concrete syntax tree
//! of `jsonc-parser` cannot restore the original: an insertion trims blank lines of the container,
//! and a removal takes the space and the comments before the node with it.
//!
//! Three forms tell later whether a container was there before: one that `append` creates closes on
//! a line of its own, or touches its only element on one line; one that was there and empty keeps
//! the space that it had, behind the new element.

use serde::Serialize;
use serde_json::{Map, Value};

use super::EditError;
use super::scan::{
    line_indent, own_line, skip_comments_of_line, skip_space_and_comments, strip_newline,
};
pub use super::tree::PathStep;
use super::tree::{NodeKind, TextNode};

const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug, Clone)]
pub struct JsonDocument {
    text: String,
    newline: &'static str,
    /// One level of indentation.
    unit: String,
    byte_order_mark: &'static str,
}

/// A value to insert, as text: its members are in the order in which they are written.
#[derive(Clone)]
pub struct NewValue {
    /// On several lines, each level indented by two spaces.
    pretty: String,
    compact: String,
}

impl NewValue {
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self {
            pretty: serde_json::to_string_pretty(value)?,
            compact: serde_json::to_string(value)?,
        })
    }

    /// As the only element of a list.
    fn in_list(&self) -> Self {
        self.between('[', ']')
    }

    /// As the only member of objects within each other, from the outside.
    fn in_objects(&self, names: &[&str]) -> Self {
        let names = names.iter().rev();
        names.fold(self.clone(), |it, name| it.member(name).between('{', '}'))
    }

    fn member(&self, name: &str) -> Self {
        let name = Value::from(name);
        Self {
            pretty: format!("{name}: {}", self.pretty),
            compact: format!("{name}: {}", self.compact),
        }
    }

    fn between(&self, open: char, close: char) -> Self {
        let inside = self.pretty.replace('\n', "\n  ");
        Self {
            pretty: format!("{open}\n  {inside}\n{close}"),
            compact: format!("{open}{}{close}", self.compact),
        }
    }
}

/// The rest after a removal.
#[derive(Debug, PartialEq, Eq)]
pub enum RemovalRest {
    Something,
    /// The document had nothing else, and was created for it.
    Nothing,
}

impl JsonDocument {
    /// An empty text is an empty object that is not there yet.
    pub fn parse(text: &str) -> Result<Self, EditError> {
        let (byte_order_mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (BYTE_ORDER_MARK, rest),
            None => ("", text),
        };
        let root = TextNode::parse(text)?;
        let problem = match &root {
            Some(root) if matches!(root.kind, NodeKind::Object) => None,
            Some(_) => Some("expected an object"),
            None if text.trim().is_empty() => None,
            None => Some("expected an object, found only comments"),
        };
        if let Some(problem) = problem {
            return Err(EditError::at(text, 0, problem.to_owned()));
        }
        let first = root.as_ref().and_then(|root| root.parts.first());
        let unit = first.and_then(|part| own_line(text, part.start));
        let unit = unit.filter(|(_, indent)| !indent.is_empty());
        Ok(Self {
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            unit: unit.map_or("  ", |(_, indent)| indent).to_owned(),
            text: root.map(|_| text.to_owned()).unwrap_or_default(),
            byte_order_mark,
        })
    }

    /// An object if there is no text yet.
    pub fn value(&self) -> Result<Value, EditError> {
        let root = TextNode::parse(&self.text)?;
        Ok(root.map_or_else(|| Value::Object(Map::new()), |root| root.value()))
    }

    pub fn text(&self) -> String {
        format!("{}{}", self.byte_order_mark, self.text)
    }

    /// Adds a member to the object at `path`, which is created if it is missing. It must not have
    /// the member.
    pub fn insert(&mut self, path: &[&str], name: &str, value: &NewValue) -> Result<(), EditError> {
        self.add(path, Some(name), value)
    }

    /// Adds an element to the list at `path`, at its end. The list and the objects around it are
    /// created if they are missing.
    pub fn append(&mut self, path: &[&str], value: &NewValue) -> Result<(), EditError> {
        self.add(path, None, value)
    }

    /// Adds a member, or an element if it has no name.
    fn add(
        &mut self,
        path: &[&str],
        name: Option<&str>,
        value: &NewValue,
    ) -> Result<(), EditError> {
        let names: Vec<_> = path.iter().copied().chain(name).collect();
        let whole = if name.is_some() {
            value.clone()
        } else {
            value.in_list()
        };
        let Some(root) = TextNode::parse(&self.text)? else {
            let whole = whole.in_objects(&names);
            self.text = format!("{}{}", self.pretty(&whole, ""), self.newline);
            return Ok(());
        };
        let (mut node, mut found) = (&root, 0);
        while let Some(key) = path.get(found)
            && let Some(next) = node.get(&PathStep::Key((*key).to_owned()))
        {
            (node, found) = (next, found + 1);
        }
        let (fits, expected) = if found == names.len() {
            (matches!(node.kind, NodeKind::List), "a list")
        } else {
            (matches!(node.kind, NodeKind::Object), "an object")
        };
        if !fits {
            let problem = format!("{}: expected {expected}", path[..found].join("."));
            return Err(EditError::at(&self.text, node.start, problem));
        }
        let fresh = match names[found..].split_first() {
            Some((outermost, inner)) => whole.in_objects(inner).member(outermost),
            None => value.clone(),
        };
        self.place(node, &fresh);
        Ok(())
    }

    /// Inserts into a container that is there.
    fn place(&mut self, container: &TextNode, fresh: &NewValue) {
        let text = &self.text;
        let Some(last) = container.parts.last() else {
            let outer = line_indent(text, container.start);
            let indent = format!("{outer}{}", self.unit);
            let inside = &text[container.start + 1..container.end - 1];
            let is_on_lines = strip_newline(inside).is_some_and(|rest| rest.starts_with(outer));
            let closing = if is_on_lines {
                format!("{}{outer}", self.newline)
            } else {
                String::new()
            };
            let new = self.pretty(fresh, &indent);
            let new = format!("{}{indent}{new}{closing}", self.newline);
            self.text.insert_str(container.start + 1, &new);
            return;
        };
        let end = last.value.end;
        let comma = skip_space_and_comments(text, end);
        let has_comma = text[comma..].starts_with(',');
        let after = if has_comma { comma + 1 } else { end };
        let (at, new) = if let Some((_, indent)) = own_line(text, last.start) {
            let new = self.pretty(fresh, indent);
            let at = skip_comments_of_line(text, after);
            (at, format!("{}{indent}{new}", self.newline))
        } else {
            (after, format!(" {}", fresh.compact))
        };
        if has_comma {
            self.text.insert_str(at, &format!("{new},"));
        } else {
            self.text.insert_str(at, &new);
            self.text.insert(end, ',');
        }
    }

    /// Writes another value in the place of the one at `path`.
    pub fn replace(&mut self, path: &[PathStep], value: &NewValue) -> Result<(), EditError> {
        let root = self.root()?;
        let node = self.find(&root, path)?;
        let (start, end) = (node.start, node.end);
        let new = if self.text[start..end].contains('\n') {
            self.pretty(value, line_indent(&self.text, start))
        } else {
            value.compact.clone()
        };
        self.text.replace_range(start..end, &new);
        Ok(())
    }

    /// Takes out the value at `path`, and the containers that were created for it.
    pub fn remove(&mut self, path: &[PathStep]) -> Result<RemovalRest, EditError> {
        let Some((last, outer)) = path.split_last() else {
            return Ok(RemovalRest::Nothing);
        };
        let mut root = self.root()?;
        let container = self.find(&root, outer)?;
        let parts = &container.parts;
        let text = &self.text;
        let index = container.position(last).ok_or_else(|| {
            let problem = "it is no longer there".to_owned();
            EditError::at(text, container.start, problem)
        })?;
        let (start, end) = (parts[index].start, parts[index].value.end);
        let line = own_line(text, start).map(|(newline, _)| newline);
        let from = line.unwrap_or(start - usize::from(text[..start].ends_with(' ')));
        let comma = skip_space_and_comments(text, end);
        let has_comma = text[comma..].starts_with(',');
        let end = if has_comma { comma + 1 } else { end };
        // The space that separates is taken once, before or behind.
        let behind = from == start && text[end..].starts_with(' ');
        let mut upto = end + usize::from(behind);
        if parts.len() == 1 {
            let (open, close) = (container.start + 1, container.end - 1);
            let indent = line_indent(text, container.start);
            let behind = strip_newline(&text[end..close]).filter(|_| from == open);
            let behind = behind.and_then(|rest| rest.strip_prefix(indent));
            let on_one_line = (start, end) == (open, close) && !outer.is_empty();
            if behind == Some("") || on_one_line {
                return self.remove(outer);
            }
            upto = behind.map_or(end, |rest| close - rest.len());
        }
        // The comma behind the one before was put there for this one.
        let before = index.checked_sub(1).filter(|_| !has_comma);
        let before = before.map(|index| skip_space_and_comments(text, parts[index].value.end));
        let cut = |from: usize, upto: usize| {
            let mut shorter = text.clone();
            shorter.replace_range(from..upto, "");
            if let Some(comma) = before {
                shorter.replace_range(comma..=comma, "");
            }
            shorter
        };
        let whole = cut(from, upto);
        let part = cut(start, end);
        root.take_out(path);
        let left = TextNode::parse(&whole).ok().flatten();
        let is_right = left.is_some_and(|left| left.value() == root.value());
        // A comment at the end of the line before would swallow the next part.
        self.text = if is_right { whole } else { part };
        Ok(RemovalRest::Something)
    }

    fn root(&self) -> Result<TextNode, EditError> {
        let root = TextNode::parse(&self.text)?;
        root.ok_or_else(|| EditError::at(&self.text, 0, "it is empty".to_owned()))
    }

    fn find<'n>(&self, root: &'n TextNode, path: &[PathStep]) -> Result<&'n TextNode, EditError> {
        path.iter().try_fold(root, |node, step| {
            node.get(step).ok_or_else(|| {
                let problem = format!("{step:?} is no longer there");
                EditError::at(&self.text, node.start, problem)
            })
        })
    }

    /// On several lines in the style of the document; the first one follows the text that is there
    /// already.
    fn pretty(&self, fresh: &NewValue, indent: &str) -> String {
        let lines = fresh.pretty.lines().map(|line| {
            let rest = line.trim_start_matches(' ');
            format!("{}{rest}", self.unit.repeat((line.len() - rest.len()) / 2))
        });
        let lines: Vec<_> = lines.collect();
        lines.join(&format!("{}{indent}", self.newline))
    }
}
