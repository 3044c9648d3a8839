//! Only commands that are nothing but words have words.

use countersign::client::shell::wrappers::hides_what_runs;
use countersign::client::shell::{
    PatternProblem, chooses_something, fits, pattern_problem, plain_words,
};
use countersign::e2e::WordPattern;
use proptest::prelude::*;
use serde::Deserialize;

/// Shared with the approvers' page, which must refuse what this refuses.
fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/words.json")).unwrap()
}

#[derive(Deserialize)]
struct Vectors {
    plain: Vec<Plain>,
    other: Vec<String>,
    hides: Vec<Vec<String>>,
    shows: Vec<Vec<String>>,
    chooses: Vec<String>,
    leaves: Vec<String>,
    #[serde(rename = "choosesFor")]
    chooses_for: Vec<(String, String)>,
    patterns: Vec<Pattern>,
    #[serde(rename = "noPatterns")]
    no_patterns: Vec<NoPattern>,
}

#[derive(Deserialize)]
struct Pattern {
    argv: Vec<Option<String>>,
    #[serde(default)]
    more: bool,
    fits: Vec<Vec<String>>,
    other: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct NoPattern {
    argv: Vec<Option<String>>,
    #[serde(default)]
    more: bool,
    problem: String,
}

#[derive(Deserialize)]
struct Plain {
    command: String,
    words: Vec<String>,
}

#[test]
fn plain_commands_have_their_words() {
    for Plain { command, words } in vectors().plain {
        assert_eq!(plain_words(&command), Some(words), "{command}");
    }
}

#[test]
fn anything_else_has_none() {
    for command in vectors().other {
        assert_eq!(plain_words(&command), None, "{command:?}");
    }
}

#[test]
fn some_programs_hide_what_runs() {
    for words in vectors().hides {
        assert!(hides_what_runs(&words), "{words:?}");
    }
    for words in vectors().shows {
        assert!(!hides_what_runs(&words), "{words:?}");
    }
}

#[test]
fn some_words_choose_what_runs_is_read_or_is_written() {
    for word in vectors().chooses {
        assert!(chooses_something("git", &word), "{word}");
    }
    for word in vectors().leaves {
        assert!(!chooses_something("git", &word), "{word}");
    }
    for (program, word) in vectors().chooses_for {
        assert!(chooses_something(&program, &word), "{program} {word}");
    }
}

#[test]
fn words_that_are_free_choose_nothing() {
    for Pattern {
        argv,
        more,
        fits: right,
        other,
    } in vectors().patterns
    {
        let pattern = WordPattern::new(argv, more).unwrap();
        assert_eq!(pattern_problem(&pattern), None, "{pattern:?}");
        for words in right {
            assert!(fits(&pattern, &words), "{pattern:?} {words:?}");
        }
        for words in other {
            assert!(!fits(&pattern, &words), "{pattern:?} {words:?}");
        }
    }
    for NoPattern {
        argv,
        more,
        problem,
    } in vectors().no_patterns
    {
        let pattern = WordPattern::new(argv.clone(), more).unwrap();
        let expected = match problem.as_str() {
            "runsAnother" => PatternProblem::RunsAnother,
            "freeSubcommand" => PatternProblem::FreeSubcommand,
            _ => PatternProblem::FreeChoice,
        };
        assert_eq!(pattern_problem(&pattern), Some(expected), "{argv:?}");
        let words: Vec<_> = argv
            .into_iter()
            .map(|it| it.unwrap_or("x".into()))
            .collect();
        assert!(!fits(&pattern, &words), "{words:?}");
    }
    for argv in [
        vec![],
        vec![None],
        vec![Some(String::new())],
        vec![Some("a\nb".into())],
    ] {
        assert_eq!(WordPattern::new(argv, true), None);
    }
}

/// A name in the lists must be in the vectors, so that the page's tests fail until the page knows
/// it.
#[test]
fn the_vectors_have_every_name_of_the_lists() {
    let vectors = vectors();
    let sources = [
        include_str!("../../crates/countersign-client/src/shell/wrappers.rs"),
        include_str!("../../crates/countersign-client/src/shell/words.rs"),
        include_str!("../../crates/countersign-client/src/shell/options.rs"),
    ];
    let tables = sources.into_iter().flat_map(|source| {
        let texts = source.split(": &str = \"\n").skip(1);
        texts.map(|text| text.split('"').next().unwrap())
    });
    // Letters of single programs are in the vectors with their programs.
    let words = tables.flat_map(str::split_ascii_whitespace);
    let words = words.filter(|word| !word.contains(':'));
    let lines = sources.into_iter().flat_map(str::lines);
    let quoted = lines.filter_map(|line| line.strip_prefix("    \"")?.strip_suffix("\","));
    let names = words.chain(quoted);
    let mut count = 0;
    for name in names {
        count += 1;
        let command = |text: &String| text.split(' ').any(|word| word == name);
        let known = vectors.other.iter().any(command)
            || vectors
                .hides
                .iter()
                .any(|words| words.first().is_some_and(|word| word == name))
            || (name.len() > 2 && vectors.chooses.iter().any(|word| word.contains(name)));
        assert!(known, "{name} is missing in tests/vectors/words.json");
    }
    assert!(count > 480, "{count} names were found");
}

proptest! {
    /// Joined again, words are the command but for spaces and quotes: nothing was dropped and
    /// nothing was made up.
    #[test]
    fn words_are_what_was_written(command in "[ -~]{0,60}") {
        if let Some(words) = plain_words(&command) {
            let bare = |text: &str| text.replace([' ', '\'', '"'], "");
            prop_assert_eq!(bare(&words.concat()), bare(&command));
        }
    }

    /// A shell agrees about every word.
    #[test]
    fn a_shell_reads_the_same_words(words in proptest::collection::vec("[a-zA-Z0-9_./:,@+=-]{1,12}|'[ -~&&[^'\\\\!]]{0,12}'|\"[ -~&&[^\"$`\\\\!]]{0,12}\"", 1..6)) {
        let command = format!("git {}", words.join(" "));
        if let Some(found) = plain_words(&command) {
            let script = format!("set -f; set -- {command}; printf '%s\\0' \"$@\"");
            let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            let read: Vec<_> = output.stdout.split(|byte| *byte == 0).collect();
            let read: Vec<_> = read[..read.len() - 1].iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
            prop_assert_eq!(read, found);
        }
    }

    /// One character of doubt anywhere outside of quotes, and there are no words.
    #[test]
    fn any_sign_of_the_shell_is_enough(
        before in "git( [a-z]{1,5}){0,3}",
        sign in "[;&|<>$`(){}*?\\[\\]~#^!\\\\\n\r\t]|[^\\x00-\\x7f]",
        after in "[a-z ]{0,8}",
    ) {
        let command = format!("{before}{sign}{after}");
        // Spaces at either end are no part of a command.
        prop_assume!(!sign.chars().all(|c| c == ' '));
        prop_assert_eq!(plain_words(&command), None, "{:?}", command);
    }
}
