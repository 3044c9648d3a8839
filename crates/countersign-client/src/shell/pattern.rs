//! Commands of which a person has chosen the words that matter.

use super::chooses_something;
use super::wrappers::{needs_subcommand, runs_another};
use countersign_e2e::WordPattern;

/// Why no permission of this form is given or kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternProblem {
    /// The program runs what later words name.
    RunsAnother,
    /// The word that says what the program does is free.
    FreeSubcommand,
    /// A free word would be the value of an option that chooses something.
    FreeChoice,
}

pub fn pattern_problem(pattern: &WordPattern) -> Option<PatternProblem> {
    let words: Vec<_> = pattern.words().iter().map(Option::as_deref).collect();
    let program = words.first().copied().flatten().unwrap_or_default();
    if runs_another(program) {
        return Some(PatternProblem::RunsAnother);
    }
    let mut later = words.iter().skip(1);
    let subcommand = later.find(|word| word.is_none_or(|word| !word.starts_with('-')));
    let has_subcommand = match subcommand {
        Some(word) => word.is_some(),
        None => !pattern.more(),
    };
    if needs_subcommand(program) && !has_subcommand {
        return Some(PatternProblem::FreeSubcommand);
    }
    let is_free = |at: usize| match words.get(at) {
        Some(word) => word.is_none(),
        None => pattern.more(),
    };
    let chooses = |word: Option<&str>| word.is_some_and(|word| chooses_something(program, word));
    let mut places = words.iter().enumerate().skip(1);
    let is_choice = places.any(|(at, word)| chooses(*word) && is_free(at + 1));
    is_choice.then_some(PatternProblem::FreeChoice)
}

/// Whether a word may stand where any word may: it is no option, and chooses nothing.
pub fn may_be_free(program: &str, word: &str) -> bool {
    !word.starts_with('-') && !chooses_something(program, word)
}

/// Whether the words of a command fit. The command itself must be one of plain words.
pub fn fits(pattern: &WordPattern, words: &[String]) -> bool {
    let program = words.first().map_or("", String::as_str);
    let places = pattern.words();
    let Some((fixed, further)) = words.split_at_checked(places.len()) else {
        return false;
    };
    let fits = |(place, word): (&Option<String>, &String)| match place {
        Some(fixed) => fixed == word,
        None => may_be_free(program, word),
    };
    places.iter().zip(fixed).all(fits)
        && (pattern.more() || further.is_empty())
        && !further.iter().any(|word| chooses_something(program, word))
        && pattern_problem(pattern).is_none()
}
