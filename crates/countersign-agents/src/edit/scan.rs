//! Space, lines and comments in a JSON text.

/// If nothing but space is before `position` on its line: where the line break before it begins,
/// and the space.
pub(super) fn own_line(text: &str, position: usize) -> Option<(usize, &str)> {
    let newline = text[..position].rfind('\n')?;
    let indent = &text[newline + 1..position];
    let is_blank = indent.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
    is_blank.then_some((without_return(&text[..newline]), indent))
}

/// The length of a line without a carriage return at its end.
fn without_return(line: &str) -> usize {
    line.strip_suffix('\r').unwrap_or(line).len()
}

/// The space at the beginning of the line of `position`.
pub(super) fn line_indent(text: &str, position: usize) -> &str {
    let newline = text[..position].rfind('\n');
    let line = &text[newline.map_or(0, |newline| newline + 1)..];
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
        let line = rest.split('\n').next().unwrap_or_default();
        return Some(position + without_return(line));
    }
    let length = rest.strip_prefix("/*").map(|rest| rest.find("*/"))?;
    Some(length.map_or(text.len(), |length| position + length + 4))
}

pub(super) fn skip_space_and_comments(text: &str, mut position: usize) -> usize {
    loop {
        position = text.len() - text[position..].trim_start().len();
        match comment(text, position) {
            Some(end) => position = end,
            None => return position,
        }
    }
}

/// Behind the comments that begin on this line, or where it was if there are none.
pub(super) fn skip_comments_of_line(text: &str, mut position: usize) -> usize {
    loop {
        let rest = text[position..].trim_start_matches([' ', '\t']);
        match comment(text, text.len() - rest.len()) {
            Some(end) => position = end,
            None => return position,
        }
    }
}
