//! Words that make a command run, read or write something that its first words do not show.

use super::wrappers::{has_name, has_word};

/// Letters that many programs take for such an option, alone or among others: `-C DIRECTORY`,
/// `-rf FILE`.
const LETTERS: &str = "cCDeEfFIKLoOPSTuWxXZ";

/// Programs, each with further such letters.
const PROGRAM_LETTERS: &str = "
    bun:r cmake:B composer:d gem:is git:t gradle:bgp gradlew:bgp jest:r mocha:r mvn:gst mvnw:gst
    npm:g pip:irt pytest:p rspec:r task:t tsc:p vitest:r
";

/// Whole names: an abbreviation of one has none of the parts below.
const ABBREVIATED: &str = "
    extra-index-url globalconfig http-proxy https-proxy makefile receive-pack separate-git-dir
    upload-archive upload-pack userconfig
";

/// Parts of the names of such options. Any of them counts, because programs have too many options
/// to list and accept abbreviations.
const STEMS: &str = "
    -pack action arg askpass base browser build cache call cert chdir cmd command compress conf
    constraint content context cookie cwd data dir dump editable editor engine entrypoint env
    escape eval exec ext-diff extension file filter fix flags format global gyp home hook host
    html import include index ini key link load location log module mount open option opts
    output overlay pager paginate parser paste path pdb pipe plugin prefix preset privileged
    program project prop proxy python registry remote repo require resolv root rsh rule runner
    save script sequencer server settings setup shell socket source stderr store target temp
    template textconv token tool trace transform tree upload url user viewer volume wrapper
    write xml
";

/// Names that are parts of too many harmless ones.
const NAMES: &str = "git ok okdir out pre set src ui";

/// Common and harmless, although a part of them is in the list above.
const HARMLESS: &str = "-- --cached --no-pager";

/// Whether this later word of a command of `program` chooses a program, a file, a directory or a
/// configuration by other means than a plain name: by an option, an assignment (`make SHELL=…`), or
/// a file with further words (`@FILE`). Returns `true` if unsure.
pub fn chooses_something(program: &str, word: &str) -> bool {
    if has_word(HARMLESS, word) {
        return false;
    }
    let Some(option) = word.strip_prefix('-') else {
        return word.starts_with(['@', '+']) || word.contains('=');
    };
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, value),
        None => (option, ""),
    };
    // An attached value, as in `-ofile`, hides behind letters; `-10` is a number.
    let is_short = !name.starts_with('-');
    let is_number = is_short && name.chars().all(|c| c.is_ascii_digit()) && !name.is_empty();
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    let own = PROGRAM_LETTERS.split_ascii_whitespace();
    let own = own.filter_map(|entry| entry.split_once(':'));
    let own: Vec<_> = own.filter(|(its, _)| has_name(program, its)).collect();
    let is_letter = |c| LETTERS.contains(c) || own.iter().any(|(_, them)| them.contains(c));
    let has_letter = is_short && option.contains(is_letter);
    let is_odd = !is_number && (name.is_empty() || (!is_short && name.len() < 3));
    let has_path = value.contains(['/', '~']) || option.contains('@');
    is_odd || has_letter || has_path || is_name_of_choice(&name)
}

/// `name` may be abbreviated: `outp` is `output`.
fn is_name_of_choice(name: &str) -> bool {
    let last = name.rsplit('-').next().unwrap_or(name);
    let is_abbreviation = |stem: &str| name.len() >= 3 && stem.starts_with(last);
    let has_stem = |stem| name.contains(stem) || is_abbreviation(stem);
    let mut abbreviated = ABBREVIATED.split_ascii_whitespace();
    STEMS.split_ascii_whitespace().any(has_stem)
        || name.split('-').any(|part| has_word(NAMES, part))
        || (name.len() >= 3 && abbreviated.any(|whole| whole.starts_with(name)))
}
