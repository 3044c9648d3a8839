//! JSON that people edit by hand, changed by inserting and cutting text.
//!
//! Three forms tell later whether a container was there before: one that `append` creates closes on a line of its own, or
//! touches its only element on one line; one that was there and empty keeps the space that it had, behind the new element.

use serde::Serialize;
use serde_json::Value;

use super::EditError;
use super::scan::{
    line_indent, own_line, skip_comments_of_line, skip_space_and_comments, strip_newline,
};
pub use super::tree::Step;
use super::tree::{Kind, Node, line_of};

const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    newline: &'static str,
    /// One level of indentation.
    unit: String,
    byte_order_mark: bool,
}

/// A value to insert, as text: its members are in the order in which they are written.
pub struct Fresh {
    pretty: String,
    compact: String,
}

impl Fresh {
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self {
            pretty: serde_json::to_string_pretty(value)?,
            compact: serde_json::to_string(value)?,
        })
    }
}

/// What is left after a removal.
#[derive(Debug, PartialEq, Eq)]
pub enum Left {
    Something,
    /// The document had nothing else, and was created for it.
    Nothing,
}

/// What has to be created around a new value, from the outside.
#[derive(Clone, Copy)]
enum Shell<'a> {
    Member(&'a str),
    Object,
    List,
}

impl Document {
    /// An empty text is an empty object that is not there yet.
    pub fn parse(text: &str) -> Result<Self, EditError> {
        let (byte_order_mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let root = Node::parse(text)?;
        let problem = |problem: &str| EditError {
            line: 1,
            problem: problem.to_owned(),
        };
        match &root {
            Some(Node {
                kind: Kind::Object(_),
                ..
            }) => {}
            Some(_) => return Err(problem("expected an object")),
            None if text.trim().is_empty() => {}
            None => return Err(problem("expected an object, found only comments")),
        }
        let first = root.as_ref().and_then(|root| root.parts().first().copied());
        let unit = first.and_then(|(start, _)| own_line(text, start));
        let unit = unit.filter(|(_, indent)| !indent.is_empty());
        Ok(Self {
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            unit: unit.map_or("  ", |(_, indent)| indent).to_owned(),
            text: if root.is_some() {
                text.to_owned()
            } else {
                String::new()
            },
            byte_order_mark,
        })
    }

    /// An object if there is no text yet.
    pub fn value(&self) -> Result<Value, EditError> {
        let root = Node::parse(&self.text)?;
        Ok(root.map_or_else(
            || Value::Object(serde_json::Map::new()),
            |root| root.value(),
        ))
    }

    pub fn text(&self) -> String {
        let mark = if self.byte_order_mark {
            BYTE_ORDER_MARK
        } else {
            ""
        };
        format!("{mark}{}", self.text)
    }

    /// Adds a member to the object at `path`, which is created if it is missing. It must not have the member.
    pub fn insert(&mut self, path: &[&str], name: &str, value: &Fresh) -> Result<(), EditError> {
        self.add(path, &[Shell::Member(name)], value)
    }

    /// Adds an element to the list at `path`, at its end. The list and the objects around it are created if they are missing.
    pub fn append(&mut self, path: &[&str], value: &Fresh) -> Result<(), EditError> {
        self.add(path, &[Shell::List], value)
    }

    fn add(&mut self, path: &[&str], last: &[Shell<'_>], value: &Fresh) -> Result<(), EditError> {
        let Some(root) = Node::parse(&self.text)? else {
            let mut shells: Vec<_> = (path.iter())
                .flat_map(|key| [Shell::Object, Shell::Member(key)])
                .collect();
            if matches!(last, [Shell::Member(_)]) {
                shells.push(Shell::Object);
            }
            shells.extend(last);
            self.text = format!("{}{}", self.pretty(&shells, value, ""), self.newline);
            return Ok(());
        };
        let mut node = &root;
        let mut rest = path;
        while let Some((key, further)) = rest.split_first() {
            let Some(found) = node.get(&Step::Key((*key).to_owned())) else {
                break;
            };
            (node, rest) = (found, further);
        }
        let wants_list = rest.is_empty() && matches!(last, [Shell::List]);
        let fits = match &node.kind {
            Kind::Object(_) => !wants_list,
            Kind::List(_) => wants_list,
            Kind::Other(_) => false,
        };
        if !fits {
            let expected = if wants_list { "a list" } else { "an object" };
            let at = path[..path.len() - rest.len()].join(".");
            return Err(self.error(node.start, format!("{at}: expected {expected}")));
        }
        let mut shells = Vec::new();
        if let Some((first, further)) = rest.split_first() {
            shells.push(Shell::Member(first));
            shells.extend(
                further
                    .iter()
                    .flat_map(|key| [Shell::Object, Shell::Member(key)]),
            );
            match last {
                [Shell::Member(_)] => shells.extend([Shell::Object, last[0]]),
                _ => shells.push(Shell::List),
            }
        } else if !wants_list {
            shells.extend(last);
        }
        self.place(node, &shells, value);
        Ok(())
    }

    /// Inserts into a container that is there.
    fn place(&mut self, container: &Node, shells: &[Shell<'_>], value: &Fresh) {
        let text = &self.text;
        let Some(&(start, end)) = container.parts().last() else {
            let outer = line_indent(text, container.start).to_owned();
            let indent = format!("{outer}{}", self.unit);
            let new = self.pretty(shells, value, &indent);
            let inside = &text[container.start + 1..container.end - 1];
            let closing = self.closing(inside, &outer);
            let new = format!("{}{indent}{new}{closing}", self.newline);
            self.text.insert_str(container.start + 1, &new);
            return;
        };
        let comma = skip_space_and_comments(text, end);
        let has_comma = text[comma..].starts_with(',');
        let after = if has_comma { comma + 1 } else { end };
        let (at, new) = if let Some((_, indent)) = own_line(text, start) {
            let new = self.pretty(shells, value, indent);
            let at = skip_comments_of_line(text, after);
            (at, format!("{}{indent}{new}", self.newline))
        } else {
            (after, format!(" {}", compact(shells, value)))
        };
        if has_comma {
            self.text.insert_str(at, &format!("{new},"));
        } else {
            self.text.insert_str(at, &new);
            self.text.insert(end, ',');
        }
    }

    /// The space to write behind the only element of a container that has `inside`.
    fn closing(&self, inside: &str, indent: &str) -> String {
        let begins = strip_newline(inside).is_some_and(|rest| rest.starts_with(indent));
        if begins {
            format!("{}{indent}", self.newline)
        } else {
            String::new()
        }
    }

    /// Writes another value in the place of the one at `path`.
    pub fn replace(&mut self, path: &[Step], value: &Fresh) -> Result<(), EditError> {
        let root = self.root()?;
        let node = self.find(&root, path)?;
        let (start, end) = (node.start, node.end);
        let new = if self.text[start..end].contains('\n') {
            let indent = line_indent(&self.text, start).to_owned();
            self.pretty(&[], value, &indent)
        } else {
            compact(&[], value)
        };
        self.text.replace_range(start..end, &new);
        Ok(())
    }

    /// Takes out the value at `path`, and the containers that were created for it.
    pub fn remove(&mut self, path: &[Step]) -> Result<Left, EditError> {
        let Some((last, outer)) = path.split_last() else {
            return Ok(Left::Nothing);
        };
        let root = self.root()?;
        let container = self.find(&root, outer)?;
        let parts = container.parts();
        let missing = || self.error(container.start, "it is not there any more".to_owned());
        let index = container.position(last).ok_or_else(missing)?;
        let (start, end) = parts[index];
        let text = &self.text;
        let line = own_line(text, start).map(|(newline, _)| newline);
        let from = line.unwrap_or(start - usize::from(text[..start].ends_with(' ')));
        let comma = skip_space_and_comments(text, end);
        let end = if text[comma..].starts_with(',') {
            comma + 1
        } else {
            end
        };
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
        let before = index.checked_sub(1).filter(|_| end != comma + 1);
        let before = before.map(|index| skip_space_and_comments(text, parts[index].1));
        let cut = |from: usize, upto: usize| {
            let mut shorter = text.clone();
            shorter.replace_range(from..upto, "");
            if let Some(comma) = before {
                shorter.replace_range(comma..=comma, "");
            }
            shorter
        };
        let expected = Some(root.without(path));
        let whole = cut(from, upto);
        let is_right = Node::parse(&whole).ok().flatten().map(|root| root.value()) == expected;
        // A comment at the end of the line before would swallow what comes next.
        self.text = if is_right { whole } else { cut(start, end) };
        Ok(Left::Something)
    }

    fn root(&self) -> Result<Node, EditError> {
        Node::parse(&self.text)?.ok_or_else(|| self.error(0, "it is empty".to_owned()))
    }

    fn find<'n>(&self, root: &'n Node, path: &[Step]) -> Result<&'n Node, EditError> {
        let mut node = root;
        for step in path {
            let missing = || self.error(node.start, format!("{step:?} is not there any more"));
            node = node.get(step).ok_or_else(missing)?;
        }
        Ok(node)
    }

    fn error(&self, position: usize, problem: String) -> EditError {
        let line = line_of(&self.text, position);
        EditError { line, problem }
    }

    /// On several lines; the first one follows what is there already.
    fn pretty(&self, shells: &[Shell<'_>], value: &Fresh, indent: &str) -> String {
        let (newline, unit) = (self.newline, &self.unit);
        let inner = format!("{indent}{unit}");
        match shells.split_first() {
            None => {
                let lines = value.pretty.lines().map(|line| {
                    let rest = line.trim_start_matches(' ');
                    format!("{}{rest}", unit.repeat((line.len() - rest.len()) / 2))
                });
                let lines: Vec<_> = lines.collect();
                lines.join(&format!("{newline}{indent}"))
            }
            Some((Shell::Member(name), rest)) => {
                format!(
                    "{}: {}",
                    Value::from(*name),
                    self.pretty(rest, value, indent)
                )
            }
            Some((Shell::Object, rest)) => {
                let inside = self.pretty(rest, value, &inner);
                format!("{{{newline}{inner}{inside}{newline}{indent}}}")
            }
            Some((Shell::List, rest)) => {
                let inside = self.pretty(rest, value, &inner);
                format!("[{newline}{inner}{inside}{newline}{indent}]")
            }
        }
    }
}

fn compact(shells: &[Shell<'_>], value: &Fresh) -> String {
    match shells.split_first() {
        None => value.compact.clone(),
        Some((Shell::Member(name), rest)) => {
            format!("{}: {}", Value::from(*name), compact(rest, value))
        }
        Some((Shell::Object, rest)) => format!("{{{}}}", compact(rest, value)),
        Some((Shell::List, rest)) => format!("[{}]", compact(rest, value)),
    }
}
