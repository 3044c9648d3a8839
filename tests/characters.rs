//! Characters that could deceive: the terminal marks those that the page marks, and ids have none
//! that change other text.

use countersign::client::{has_invisible, visible};
use countersign::protocol::id::{ApproverId, TextId as _};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    marked: Vec<(String, String)>,
}

#[test]
fn the_terminal_marks_what_the_page_marks() {
    let text = include_str!("vectors/characters.json");
    let Vectors { marked } = serde_json::from_str(text).unwrap();
    let code = |text: &String| u32::from_str_radix(text, 16).unwrap();
    let ranges: Vec<_> = (marked.iter())
        .map(|(from, to)| code(from)..=code(to))
        .collect();
    for character in '\0'..=char::MAX {
        let is_marked = ranges.iter().any(|it| it.contains(&u32::from(character)));
        let text = character.to_string();
        assert_eq!(has_invisible(&text), is_marked, "{character:?}");
        if is_marked {
            assert_ne!(visible(&text), text, "{character:?}");
        }
    }
}

#[test]
fn ids_have_no_characters_that_change_other_text() {
    for id in ["alice", "größe", "日本", "a b", "a\u{fe0f}"] {
        assert!(ApproverId::parse(id).is_some(), "{id:?}");
    }
    for id in [
        "",
        "a\n",
        "\u{7f}",
        "\u{85}",
        "a\u{202e}b",
        "\u{2066}",
        "\u{200f}",
        "a\u{2028}",
    ] {
        assert!(ApproverId::parse(id).is_none(), "{id:?}");
    }
}
