//! The words of a command, if every shell that an agent could use reads it as these words and
//! nothing else. Returns `None` if unsure: then no prefix covers the command, and a person is
//! asked.

use super::wrappers::{has_word, hides_what_runs};

/// Words that a shell acts on itself: they change what later words mean, or run other words.
const SHELL_WORDS: &str = "
    alias autoload bg bind case complete coproc declare disable disown do done elif else emulate
    enable esac export fc fg fi for foreach function functions hash history if let local mapfile
    noglob nocorrect popd pushd read readarray readonly repeat select set setopt shopt then trap
    typeset unalias unset unsetopt until while zmodload
";

/// `None` if it has anything but plain words: quotes only around a whole word, and no operators,
/// substitutions, redirections, patterns, variables, comments, assignments, line ends, or characters
/// outside of printable ASCII.
pub fn plain_words(command: &str) -> Option<Vec<String>> {
    shell_words(command).filter(|words| !hides_what_runs(words))
}

/// The same, also of a command that runs another one.
pub fn shell_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut left = command.trim_matches(' ');
    while !left.is_empty() {
        let (word, after) = next_word(left)?;
        // A quote that ends within a word leaves what the shell makes of the whole to the shell.
        if !after.is_empty() && !after.starts_with(' ') {
            return None;
        }
        let is_first = words.is_empty();
        if is_first && (left.starts_with(['\'', '"']) || !is_program(word)) {
            return None;
        }
        words.push(word.to_owned());
        left = after.trim_start_matches(' ');
    }
    (!words.is_empty()).then_some(words)
}

/// The word at the beginning, without its quotes, and the text behind it.
pub(super) fn next_word(text: &str) -> Option<(&str, &str)> {
    if let quote @ ('\'' | '"') = text.chars().next()? {
        let (word, after) = text[1..].split_once(quote)?;
        (word.chars().all(|c| is_quotable(c, quote))).then_some((word, after))
    } else {
        let end = text.find(' ').unwrap_or(text.len());
        let (word, after) = text.split_at(end);
        (is_bare(word)).then_some((word, after))
    }
}

fn is_program(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '+' | '-');
    let begins =
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/'));
    begins && word.chars().all(plain) && !has_word(SHELL_WORDS, word)
}

fn is_bare(word: &str) -> bool {
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '%' | '+' | '=')
    };
    // Some shells take `=ls` for a path and `%1` for a job.
    word.chars().all(plain) && !word.starts_with(['=', '%'])
}

fn is_quotable(character: char, quote: char) -> bool {
    let is_printable = matches!(character, ' '..='~');
    let is_special = match quote {
        '\'' => matches!(character, '\\' | '!'),
        _ => matches!(character, '\\' | '!' | '$' | '`'),
    };
    is_printable && !is_special
}
