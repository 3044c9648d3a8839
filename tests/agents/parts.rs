//! Commands of several parts: each part is known, or none is.

use countersign::client::shell::{CommandPart, FileRedirection, command_parts};
use proptest::prelude::*;

fn part(text: &str, reads_pipe: bool, files: &[(&str, bool)]) -> CommandPart {
    let redirections = files.iter().map(|(file, writes)| FileRedirection {
        file: (*file).to_owned(),
        writes: *writes,
    });
    CommandPart {
        words: text.split(' ').map(str::to_owned).collect(),
        reads_pipe,
        redirections: redirections.collect(),
    }
}

#[test]
fn parts_have_their_words_and_their_files() {
    let none: &[(&str, bool)] = &[];
    for (command, expected) in [
        ("ls", vec![part("ls", false, none)]),
        (
            "ls|head -5",
            vec![part("ls", false, none), part("head -5", true, none)],
        ),
        (
            "cd a && make || echo no; ls",
            vec![
                part("cd a", false, none),
                part("make", false, none),
                part("echo no", false, none),
                part("ls", false, none),
            ],
        ),
        (
            "make > out.txt 2>&1",
            vec![part("make", false, &[("out.txt", true)])],
        ),
        (
            "make >>out.txt 2>/dev/null | cat",
            vec![
                part("make", false, &[("out.txt", true)]),
                part("cat", true, none),
            ],
        ),
        (
            "make 2> 'err.txt' -k",
            vec![part("make -k", false, &[("err.txt", true)])],
        ),
        ("make >&2", vec![part("make", false, none)]),
        (
            "sort < a 1> b",
            vec![part("sort", false, &[("a", false), ("b", true)])],
        ),
        ("grep 'a|b' c", vec![part("grep a|b c", false, none)]),
        (
            "echo \"a && b; c > d\"",
            vec![CommandPart {
                words: vec!["echo".to_owned(), "a && b; c > d".to_owned()],
                reads_pipe: false,
                redirections: Vec::new(),
            }],
        ),
    ] {
        assert_eq!(command_parts(command), Some(expected), "{command}");
    }
}

#[test]
fn anything_that_is_not_certain_has_no_parts() {
    for command in [
        "",
        " ",
        "ls |",
        "| ls",
        "ls &&",
        "&& ls",
        "ls ;; ls",
        "ls;",
        "ls &",
        "ls & ls",
        "ls |& cat",
        "ls ||| ls",
        "ls &&& ls",
        "ls > ",
        "ls >",
        "ls > -",
        "ls >| a",
        "ls >& a",
        "ls &> a",
        "ls &>> a",
        "ls >&3",
        "ls >&-",
        "ls >&12",
        "ls 3> a",
        "ls 12> a",
        "ls a2>b",
        "ls a>b",
        "ls> a",
        "> a",
        "> a ls",
        "2>&1",
        "ls << EOF",
        "ls <<< a",
        "ls <& 0",
        "ls <> a",
        "ls 2< a",
        "ls <(a)",
        "ls >(a)",
        "(ls)",
        "{ ls; }",
        "ls; { a; }",
        "! ls",
        "if true; then ls; fi",
        "for a in b; do ls; done",
        "while true; do ls; done",
        "ls $(a)",
        "ls `a`",
        "ls $a",
        "ls \\; a",
        "ls 'a",
        "ls \"a",
        "ls 'a'b | c",
        "ls\nrm a",
        "ls\rrm a",
        "ls \t| a",
        "ls # a | b",
        "ls *",
        "ls ?",
        "ls ~",
        "ls > ~/a",
        "ls > $a",
        "ls > *",
        "A=b ls",
        "ls | A=b cat",
        "ls && A=b make",
        "function a",
        "a() ls",
        "ls; function a",
        "alias ls=rm; ls",
        "export A=b; ls",
        "set -e; ls",
        "trap a EXIT; ls",
        "'ls' | cat",
        "ls | 'cat'",
        "ls \u{7c}\u{200b} cat",
        "ls ｜ cat",
        "ls > a>b",
        "ls 2>&1>a",
        "ls >a>b",
        "ls ^ cat",
        "time; ls | else",
        "ls 1>&2x",
    ] {
        assert_eq!(command_parts(command), None, "{command:?}");
    }
    let many = vec!["ls"; 33].join(" | ");
    assert_eq!(command_parts(&many), None);
}

proptest! {
    /// What was put together is taken apart again.
    #[test]
    fn parts_are_those_that_were_joined(
        parts in proptest::collection::vec(("[a-z]{3,6}x", "[a-z0-9/.-]{1,8}|'[ -~&&[^'\\\\!]]{0,12}'"), 1..6),
        operators in proptest::collection::vec(prop_oneof![Just("|"), Just("&&"), Just("||"), Just(";"), Just(" | "), Just(" && ")], 6),
    ) {
        let mut command = String::new();
        for (at, (program, word)) in parts.iter().enumerate() {
            if at > 0 {
                command.push_str(operators[at]);
            }
            command.extend([program.as_str(), " ", word]);
        }
        let found = command_parts(&command).expect(&command);
        let words: Vec<_> = found.iter().map(|part| part.words.clone()).collect();
        let expected: Vec<_> = parts.iter().map(|(program, word)| vec![program.clone(), word.trim_matches('\'').to_owned()]).collect();
        prop_assert_eq!(words, expected);
        for (at, part) in found.iter().enumerate() {
            prop_assert_eq!(part.reads_pipe, at > 0 && operators[at].trim() == "|");
        }
    }

    /// A shell runs the same parts: each prints its own words.
    #[test]
    fn a_shell_runs_the_same_parts(
        words in proptest::collection::vec("[a-z]{1,4}|'[ -~&&[^'\\\\!]]{0,8}'|\"[ -~&&[^\"$`\\\\!]]{0,8}\"", 1..5),
        operator in prop_oneof![Just(";"), Just("&&"), Just(" ; ")],
    ) {
        let command = words.iter().map(|word| format!("show {word}")).collect::<Vec<_>>().join(operator);
        if let Some(parts) = command_parts(&command) {
            let script = format!("show() {{ printf '%s\\0' \"$@\"; printf '\\1'; }}; {command}");
            let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let shown = |part: &CommandPart| format!("{}\0\u{1}", part.words[1..].join("\0"));
            let expected = parts.iter().map(shown).collect::<Vec<_>>().concat();
            prop_assert_eq!(text, expected, "{}", command);
        }
    }

    /// One character of doubt outside of quotes, and there are no parts.
    #[test]
    fn any_other_sign_of_the_shell_is_enough(
        before in "ls( [a-z]{1,5}){0,2}( \\| cat)?",
        sign in "[$`(){}*?\\[\\]~#^!\\\\\n\r\t]|[^\\x00-\\x7f]",
        after in "[a-z ]{1,8}",
    ) {
        prop_assume!(!after.trim().is_empty());
        let command = format!("{before} {sign}{after}");
        prop_assert_eq!(command_parts(&command), None, "{:?}", command);
    }
}
