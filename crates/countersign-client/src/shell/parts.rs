//! Commands of several parts: pipes, `&&`, `||` and `;`, and redirections to and from files.
//! Returns `None` if unsure: then nobody can say part by part what runs.

use super::words::{next_word, shell_words};

/// With more parts nobody reads them one by one.
const MAX_PARTS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPart {
    /// Also of a program that runs another one.
    pub words: Vec<String>,
    /// Whether its input is the output of the part before it.
    pub reads_pipe: bool,
    /// Without those to and from `/dev/null`, and between its own streams.
    pub redirections: Vec<FileRedirection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRedirection {
    pub file: String,
    pub writes: bool,
}

impl CommandPart {
    pub fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub fn writes(&self) -> bool {
        self.redirections.iter().any(|it| it.writes)
    }
}

/// The parts of a command, if every shell that an agent could use reads it as these and nothing
/// else. What is refused in the words of a single command is refused here too.
pub fn command_parts(command: &str) -> Option<Vec<CommandPart>> {
    let mut parts = Vec::new();
    let mut left = command;
    let mut reads_pipe = false;
    loop {
        let (part, operator) = until_operator(left)?;
        parts.push(read_part(part, reads_pipe)?);
        let Some((operator, after)) = operator else {
            return (parts.len() <= MAX_PARTS).then_some(parts);
        };
        reads_pipe = operator == "|";
        left = after;
    }
}

/// The text before the first operator, the operator, and the text behind it.
fn until_operator(text: &str) -> Option<(&str, Option<(&'static str, &str)>)> {
    let mut from = 0;
    while let Some(at) = find_unquoted(text, from, &['|', '&', ';']) {
        // `2>&1`
        if text[at..].starts_with('&') && text[..at].ends_with('>') {
            from = at + 1;
            continue;
        }
        let (part, rest) = text.split_at(at);
        let mut operators = ["&&", "||", "|", ";"].into_iter();
        let found = operators.find_map(|it| Some((it, rest.strip_prefix(it)?)))?;
        return Some((part, Some(found)));
    }
    Some((text, None))
}

/// Where one of these signs stands outside of quotes. A quote that does not end has no words, which
/// the caller finds out.
fn find_unquoted(text: &str, from: usize, signs: &[char]) -> Option<usize> {
    let mut quote = None;
    for (at, sign) in text.char_indices() {
        if quote == Some(sign) {
            quote = None;
        } else if quote.is_none() && matches!(sign, '\'' | '"') {
            quote = Some(sign);
        } else if quote.is_none() && at >= from && signs.contains(&sign) {
            return Some(at);
        }
    }
    None
}

fn read_part(text: &str, reads_pipe: bool) -> Option<CommandPart> {
    let mut redirections = Vec::new();
    let mut words = String::new();
    let mut left = text;
    while let Some(at) = find_unquoted(left, 0, &['<', '>']) {
        let (before, redirection) = left.split_at(at);
        let writes = redirection.starts_with('>');
        // The number of a stream stands alone before the sign: `a2>b` is something else.
        let stream = before.strip_suffix(['1', '2']).filter(|_| writes);
        let before = stream.unwrap_or(before);
        if !before.ends_with(' ') {
            return None;
        }
        words.push_str(before);
        left = after_redirection(redirection, writes, &mut redirections)?;
    }
    words.push_str(left);
    Some(CommandPart {
        words: shell_words(&words)?,
        reads_pipe,
        redirections,
    })
}

/// `text` begins with the sign. Returns the text behind the file.
fn after_redirection<'t>(
    text: &'t str,
    writes: bool,
    redirections: &mut Vec<FileRedirection>,
) -> Option<&'t str> {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let streams = [">&1", ">&2"].into_iter();
    let mut behind = streams.filter_map(|it| text.strip_prefix(it));
    if let Some(rest) = behind.find(|rest| ends(rest)) {
        return Some(rest);
    }
    let sign = if text.starts_with(">>") { 2 } else { 1 };
    let (file, rest) = next_word(text[sign..].trim_start_matches(' '))?;
    if file.is_empty() || file.starts_with('-') || !ends(rest) {
        return None;
    }
    if file != "/dev/null" {
        let file = file.to_owned();
        redirections.push(FileRedirection { file, writes });
    }
    Some(rest)
}
