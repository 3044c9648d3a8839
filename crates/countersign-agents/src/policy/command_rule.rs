//! Commands that a policy lets pass: `git status`, `cargo test …`, `git diff [--stat] …`.

use std::fmt;

use countersign_client::shell::{chooses_something, plain_words};

/// Stands for further words at the end of a rule.
const MORE: [&str; 2] = ["…", "..."];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandRule {
    /// The command begins with these words, as they are.
    words: Vec<String>,
    /// Options that may follow, at any place: `--stat`, or `--unified=` with any value.
    options: Vec<String>,
    /// Whether further words that are not options may follow.
    has_more: bool,
}

/// How much of a command its rule states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleCoverage {
    Whole,
    Beginning,
}

impl fmt::Display for CommandRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))?;
        for option in &self.options {
            write!(f, " [{option}]")?;
        }
        if self.has_more {
            f.write_str(" …")
        } else {
            Ok(())
        }
    }
}

impl CommandRule {
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |problem: &str| format!("commands: {text:?} {problem}");
        let mut rest = text.trim();
        let end = MORE.iter().find_map(|more| rest.strip_suffix(more));
        let has_more = end.is_some();
        rest = end.unwrap_or(rest);
        if has_more && !rest.ends_with(' ') {
            return Err(wrong("needs a space before …"));
        }
        let (words, listed) = rest.split_at(rest.find(" [").unwrap_or(rest.len()));
        let words = plain_words(words)
            .ok_or_else(|| wrong("is more than plain words, or runs another command"))?;
        let program = words.first().map_or("", String::as_str);
        let options = listed.split_whitespace().map(|item| {
            let option = item.strip_prefix('[').and_then(|item| item.strip_suffix(']'));
            let option = option.filter(|option| option.starts_with('-'));
            let option = option.ok_or_else(|| wrong("may end only with [--options] and …"))?;
            if chooses_something(program, option) {
                let problem = "lists an option that can choose a program, a file, a directory or a configuration";
                return Err(format!("{}: {option}", wrong(problem)));
            }
            Ok(option.to_owned())
        });
        let options = options.collect::<Result<_, _>>()?;
        Ok(Self {
            words,
            options,
            has_more,
        })
    }

    /// The entry that is this command, word for word. `None` if no entry can be.
    pub fn entry_for(words: &[String]) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@+=".contains(c);
        let written = |word: &String| {
            if word.chars().all(is_plain) && !word.is_empty() && !word.starts_with('=') {
                word.clone()
            } else {
                format!("'{word}'")
            }
        };
        let entry = words.iter().map(written).collect::<Vec<_>>().join(" ");
        let rule = Self::parse(&entry).ok()?;
        (rule.coverage(words) == Some(RuleCoverage::Whole)).then_some(entry)
    }

    pub fn coverage(&self, words: &[String]) -> Option<RuleCoverage> {
        let further = words.strip_prefix(self.words.as_slice())?;
        if further.is_empty() {
            return Some(RuleCoverage::Whole);
        }
        let program = self.words.first().map_or("", String::as_str);
        let chooses = |word: &String| chooses_something(program, word);
        let matches = |word: &str, option: &String| match option.strip_suffix('=') {
            Some(_) => word.starts_with(option.as_str()),
            None => word == option,
        };
        let is_listed =
            |word: &String| self.options.iter().any(|it| matches(word, it)) && !chooses(word);
        let is_word = |word: &String| word == "--" || !word.starts_with('-');
        let is_free = |word: &String| self.has_more && is_word(word) && !chooses(word);
        let covered = further.iter().all(|word| is_listed(word) || is_free(word));
        covered.then_some(RuleCoverage::Beginning)
    }
}
