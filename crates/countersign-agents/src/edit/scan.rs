//! Space, lines and comments in a JSON text.

/// If nothing but space is before `position` on its line: where the line break before it begins, and the space.
pub(super) fn own_line(text: &str, position: usize) -> Option<(usize, &str)> {
    let newline = text[..position].rfind('\n')?;
    let indent = &text[newline + 1..position];
    let blank = indent.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
    let begins = if text[..newline].ends_with('\r') {
        newline - 1
    } else {
        newline
    };
    blank.then_some((begins, indent))
}

/// The space at the beginning of the line of `position`.
pub(super) fn line_indent(text: &str, position: usize) -> &str {
    let line = text[..position]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let line = &text[line..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

pub(super) fn strip_newline(text: &str) -> Option<&str> {
    text.strip_prefix("\r\n")
        .or_else(|| text.strip_prefix('\n'))
}

/// The end of a comment that begins at `position`.
fn comment(text: &str, position: usize) -> Option<usize> {
    let rest = &text[position..];
    if rest.starts_with("//") {
        let length = rest.find('\n').unwrap_or(rest.len());
        let length = if rest[..length].ends_with('\r') {
            length - 1
        } else {
            length
        };
        return Some(position + length);
    }
    let length = rest.strip_prefix("/*").map(|rest| rest.find("*/"))?;
    Some(length.map_or(text.len(), |length| position + length + 4))
}

pub(super) fn skip_space_and_comments(text: &str, mut position: usize) -> usize {
    loop {
        let rest = &text[position..];
        position = text.len() - rest.trim_start().len();
        match comment(text, position) {
            Some(end) => position = end,
            None => return position,
        }
    }
}

/// Behind the comments that begin on this line, or where it was if there are none.
pub(super) fn skip_comments_of_line(text: &str, mut position: usize) -> usize {
    loop {
        let rest = &text[position..];
        let next = text.len() - rest.trim_start_matches([' ', '\t']).len();
        match comment(text, next) {
            Some(end) => position = end,
            None => return position,
        }
    }
}
