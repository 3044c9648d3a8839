//! Text from elsewhere, as it may be shown on a terminal: nothing in it moves the cursor, changes colours, hides or reorders
//! other text.

use crate::protocol::text::is_invisible;

/// Control characters and those that cannot be seen are shown as `\u{…}`, line feeds and tabs included.
pub fn visible(text: &str) -> String {
    escape(text, |_| false)
}

/// The same, with lines and tabs left as they are: for text that is shown as a block of its own.
pub fn visible_lines(text: &str) -> String {
    escape(text, |character| matches!(character, '\n' | '\t'))
}

/// Whether anything in it had to be made visible.
pub fn has_invisible(text: &str) -> bool {
    (text.chars()).any(|character| is_misleading(character) && !matches!(character, '\n' | '\t'))
}

fn is_misleading(character: char) -> bool {
    is_invisible(character) || (character.is_whitespace() && character != ' ')
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_misleading(character) && !keep(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}
