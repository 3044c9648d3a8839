//! Characters that could make a text look like another one.

/// Control characters, separators of lines, and the controls of bidirectional text.
pub fn is_control_or_bidi(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Those, and other characters that take no place on the screen. Joiners and variation selectors,
/// of which emoji consist, are among them.
pub fn is_invisible(character: char) -> bool {
    is_control_or_bidi(character)
        || matches!(character,
            '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a text has more than `max` characters. It counts no further than that.
pub fn is_longer(text: &str, max: usize) -> bool {
    text.chars().nth(max).is_some()
}

/// The text with such characters as `\u{…}`.
pub fn escape_invisible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}
