//! Text from elsewhere, as it may be shown on a terminal: nothing in it moves the cursor, changes
//! colours, hides or reorders other text.

use countersign_protocol::text::is_invisible;

/// Control characters and those that cannot be seen are shown as `\u{…}`, line feeds and tabs
/// included.
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

/// The page marks the same characters; `tests/vectors/characters.json` holds both to it.
fn is_misleading(character: char) -> bool {
    is_invisible(character)
        || (character.is_whitespace() && character != ' ')
        || is_blank(character)
}

/// Characters that fonts leave empty, that select a variant of the one before, that format text, or
/// that mean something else in each font. Names of devices may have them, so that [`is_invisible`]
/// leaves them out.
fn is_blank(character: char) -> bool {
    matches!(character,
        '\u{34f}' | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fffc}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0100}'..='\u{e01ef}'
        | '\u{f0000}'..='\u{10ffff}')
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
