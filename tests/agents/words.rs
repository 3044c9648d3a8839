//! Only commands that are nothing but words have words.

use countersign::agent::plain_words;
use proptest::prelude::*;

#[test]
fn plain_commands_have_their_words() {
    for (command, words) in [
        ("git status", &["git", "status"][..]),
        ("  git   commit  ", &["git", "commit"]),
        (
            "git commit -m 'a message; with | signs'",
            &["git", "commit", "-m", "a message; with | signs"],
        ),
        (
            "git commit -m \"it's done\"",
            &["git", "commit", "-m", "it's done"],
        ),
        (
            "./configure --prefix=/usr/local",
            &["./configure", "--prefix=/usr/local"],
        ),
        ("/usr/bin/make -j4 all", &["/usr/bin/make", "-j4", "all"]),
        ("npm run test:unit", &["npm", "run", "test:unit"]),
        ("grep -rn '$HOME' src", &["grep", "-rn", "$HOME", "src"]),
        ("echo ''", &["echo", ""]),
        ("g++ -o a a.cc", &["g++", "-o", "a", "a.cc"]),
        ("date +%s", &["date", "+%s"]),
        ("cargo test", &["cargo", "test"]),
        ("ls", &["ls"]),
        ("scp a host:b,c@d", &["scp", "a", "host:b,c@d"]),
        ("cd src", &["cd", "src"]),
        (
            "python3 manage.py migrate",
            &["python3", "manage.py", "migrate"],
        ),
    ] {
        assert_eq!(
            plain_words(command).as_deref(),
            Some(&owned(words)[..]),
            "{command}"
        );
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn anything_else_has_none() {
    for command in [
        "",
        "   ",
        // interpreters, and languages in arguments
        "python3 -c 'import os'",
        "python3.11 -m http.server",
        "/usr/bin/python3",
        "node -e x",
        "perl -pi -e x a",
        "sed -n '1e sh payload' README",
        "awk 1 a",
        "tar xf a.tar",
        "npx prettier",
        "git diff --no-index --output=x /dev/null payload",
        "git diff --output x",
        "git log --ext-diff",
        // operators
        "git status; rm -rf .",
        "git status;rm",
        "git status && rm x",
        "git status || rm x",
        "git status | sh",
        "git status & rm x",
        "git status &",
        "git status |& sh",
        "! git status",
        "(git status)",
        "{ git status; }",
        "git status )",
        // substitutions and variables
        "git status $(rm x)",
        "git status `rm x`",
        "git $CMD",
        "git ${CMD}",
        "git \"$CMD\"",
        "git \"$(rm x)\"",
        "git \"`rm x`\"",
        "git <(rm x)",
        "git >(rm x)",
        "git $'a'",
        "git $\"a\"",
        "git $((1+1))",
        "git $[1+1]",
        // redirections
        "git status > x",
        "git status >x",
        "git status 2>&1",
        "git status < x",
        "git status >> x",
        "git status <<EOF\nrm\nEOF",
        "git status <<< x",
        "git status &> x",
        // patterns and expansions
        "git add *",
        "git add ?",
        "git add [ab]",
        "git add {a,b}",
        "git add ~/x",
        "git add ~",
        "git add a~",
        "git add ^a",
        "git add a#b",
        "git status # rm",
        "git status !!",
        "git commit -m 'wow!'",
        "git commit -m \"wow!\"",
        "kill %1",
        "echo =ls",
        // lines and spaces
        "git status\nrm x",
        "git status\r\nrm x",
        "git status\trm",
        "git\u{a0}status",
        "git\u{2003}status",
        "git\u{b}status",
        "git status\0",
        "git commit -m 'a\nb'",
        "git commit -m \"a\nb\"",
        "git status \\\nrm",
        // quotes that leave room for doubt
        "git 'status",
        "git \"status",
        "git st'at'us",
        "git 'st'\"atus\"",
        "git 'a''b'",
        "git 'a'b",
        "git a\"b\"",
        "git a\\ b",
        "git 'a\\'",
        "git \"a\\\"b\"",
        "'git' status",
        "\"git\" status",
        "'git status'",
        // assignments
        "A=1 git status",
        "PATH=/tmp git status",
        "A=1",
        "git=1",
        // letters that look like others, and what cannot be seen
        "g\u{456}t status",
        "git st\u{430}tus",
        "git \u{202e}sutats",
        "git st\u{200b}atus",
        "\u{feff}git status",
        "git status \u{2026}",
        "git commit -m 'caf\u{e9}'",
        "git\u{1b}[2K status",
        "g\u{131}t status",
        "git \u{ff0d}\u{ff0d}force",
        // what runs another command
        "bash -c 'git status'",
        "sh -c git",
        "/bin/sh -c git",
        "zsh x",
        "env git status",
        "/usr/bin/env git",
        "env -S 'git status'",
        "sudo git status",
        "doas git",
        "su -c git",
        "xargs git",
        "nohup git status",
        "nice git",
        "timeout 5 git",
        "time git",
        "command git",
        "builtin echo",
        "exec git",
        "eval git",
        "source x",
        ". x",
        "find . -exec rm x",
        "find .",
        "fd x --exec rm",
        "rg --pre sh x",
        "rg --pre=sh x",
        "ssh host git",
        "parallel git",
        "watch git",
        "strace git",
        "busybox sh",
        "setsid git",
        "countersign approve x",
        "unshare git",
        // words of the shell itself
        "if git",
        "for x",
        "while x",
        "until x",
        "case x",
        "function x",
        "then git",
        "do git",
        "coproc git",
        "alias git=rm",
        "export A=1",
        "declare x",
        "set -x",
        "trap x EXIT",
        "readonly x",
        "shopt -s x",
        "hash -p /tmp/x git",
        "enable -f x",
        "-c git",
        "--version",
        "[ a ]",
        "[[ a ]]",
        "@git",
        ":",
        ",",
        "%1",
        "+x",
    ] {
        assert_eq!(plain_words(command), None, "{command:?}");
    }
}

proptest! {
    /// Joined again, words are the command but for spaces and quotes: nothing was dropped and nothing was made up.
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
