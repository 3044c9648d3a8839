//! Commands that do nothing but read, and a few that only make files which they name. They are
//! known by their programs and by every option that they may have: anything else is unknown.

/// Options of a program: letters without a value, letters with one, and long names. A long name
/// with a value ends in `=`.
struct ReadOptions {
    letters: &'static str,
    valued: &'static str,
    long: &'static str,
}

const fn options(letters: &'static str, valued: &'static str, long: &'static str) -> ReadOptions {
    ReadOptions {
        letters,
        valued,
        long,
    }
}

const GREP: ReadOptions = options(
    "abcEFGHhiIlLnoPqrsvwxyzZ",
    "ABCem",
    "after-context= before-context= color= colour= context= count exclude-dir= exclude= \
     extended-regexp files-with-matches files-without-match fixed-strings ignore-case include= \
     invert-match line-number line-regexp max-count= no-filename only-matching perl-regexp quiet \
     recursive regexp= text with-filename word-regexp",
);
const RIPGREP: ReadOptions = options(
    "acFHhiIlnNopPqsSuUvwx",
    "ABCegmrtT",
    "after-context= before-context= color= context= count files files-with-matches \
     files-without-match fixed-strings glob= heading hidden iglob= ignore-case invert-match \
     line-number max-count= max-depth= multiline no-filename no-heading no-ignore no-line-number \
     only-matching pcre2 quiet smart-case sort= stats type-not= type= word-regexp",
);
const SUMS: ReadOptions = options("bt", "", "");

/// Options that can make a program write, run another one, follow links or read what no word names
/// are left out.
const PROGRAMS: &[(&str, ReadOptions)] = &[
    ("basename", options("az", "s", "")),
    (
        "cat",
        options("AbeEnstTuv", "", "number show-all show-ends squeeze-blank"),
    ),
    ("cksum", SUMS),
    ("cmp", options("bls", "", "")),
    ("column", options("tx", "cs", "")),
    ("comm", options("123", "", "")),
    (
        "cut",
        options(
            "nsz",
            "bcdf",
            "bytes= characters= complement delimiter= fields= only-delimited",
        ),
    ),
    ("df", options("ahHiklPT", "", "")),
    ("dirname", options("z", "", "")),
    (
        "du",
        options(
            "abchkmsxS",
            "d",
            "all apparent-size bytes human-readable max-depth= summarize total",
        ),
    ),
    ("egrep", GREP),
    ("false", options("", "", "")),
    ("fgrep", GREP),
    (
        "file",
        options("bi", "", "brief mime mime-encoding mime-type"),
    ),
    ("fold", options("bs", "w", "width=")),
    ("grep", GREP),
    ("head", options("qvz", "cn", "bytes= lines= quiet verbose")),
    (
        "ls",
        options(
            "1aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ",
            "",
            "all almost-all classify color color= directory full-time group-directories-first human-readable inode long recursive reverse size sort= time-style= time=",
        ),
    ),
    ("md5sum", SUMS),
    ("nl", options("p", "bdfhilnsvw", "")),
    ("nproc", options("", "", "all")),
    ("od", options("abcdfilosvx", "AjNtw", "")),
    ("pwd", options("LP", "", "")),
    ("readlink", options("efmnqsvz", "", "canonicalize")),
    ("realpath", options("eLmPqsz", "", "")),
    ("rev", options("", "", "")),
    ("rg", RIPGREP),
    ("seq", options("w", "s", "")),
    ("sha1sum", SUMS),
    ("sha256sum", SUMS),
    ("sha512sum", SUMS),
    ("sleep", options("", "", "")),
    (
        "sort",
        options(
            "bcCdfghiMnrRsuVz",
            "kt",
            "check field-separator= human-numeric-sort ignore-case key= numeric-sort reverse stable unique version-sort",
        ),
    ),
    (
        "stat",
        options("Lt", "c", "dereference format= printf= terse"),
    ),
    ("tac", options("b", "", "")),
    ("tail", options("qvz", "cn", "bytes= lines= quiet verbose")),
    (
        "tr",
        options(
            "cCdst",
            "",
            "complement delete squeeze-repeats truncate-set1",
        ),
    ),
    (
        "tree",
        options("adCDfFhinpQsu", "ILP", "dirsfirst noreport prune"),
    ),
    ("true", options("", "", "")),
    ("uname", options("aimnoprsv", "", "all")),
    (
        "wc",
        options("clLmw", "", "bytes chars lines max-line-length words"),
    ),
    ("which", options("as", "", "")),
    ("whoami", options("", "", "")),
];

/// Of these, any further word would do something else.
const WITHOUT_OPERANDS: &[(&str, ReadOptions)] = &[
    ("date", options("uR", "", "iso-8601 iso-8601= utc")),
    ("uniq", options("cdDiuz", "fsw", "count repeated unique")),
];

const LOG: ReadOptions = options(
    "bcEFgimpPrstuwz",
    "GLnSU",
    "abbrev-commit after= all author= before= branches check color color= committer= cumulative \
     date= decorate decorate= diff-filter= first-parent follow format= full-diff graph grep= \
     histogram ignore-all-space ignore-blank-lines ignore-space-change invert-grep max-count= \
     merges minimal name-only name-status no-abbrev no-color no-decorate no-ext-diff no-merges \
     no-patch no-renames no-textconv numstat oneline patch patience pretty= remotes reverse \
     shortstat since= skip= stat stat= summary tags topo-order unified= until= word-diff \
     word-diff=",
);
const DIFF: ReadOptions = options(
    "abpRuwz",
    "GSU",
    "cached check color color-words color= diff-filter= exit-code find-renames histogram \
     ignore-all-space ignore-blank-lines ignore-space-at-eol ignore-space-change merge-base minimal \
     name-only name-status no-color no-ext-diff no-patch no-prefix no-renames no-textconv numstat \
     patch patch-with-stat patience quiet raw shortstat staged stat stat= summary unified= word-diff \
     word-diff=",
);

/// Subcommands of git.
const GIT: &[(&str, ReadOptions)] = &[
    (
        "blame",
        options(
            "celnpstw",
            "L",
            "line-porcelain porcelain show-email show-name",
        ),
    ),
    ("cat-file", options("epst", "", "")),
    (
        "describe",
        options(
            "",
            "",
            "abbrev= all always dirty exact-match long match= tags",
        ),
    ),
    ("diff", DIFF),
    ("log", LOG),
    (
        "ls-files",
        options(
            "cdkmostuz",
            "",
            "cached deleted error-unmatch exclude-standard full-name modified others stage unmerged",
        ),
    ),
    ("ls-tree", options("dlrtz", "", "full-name long name-only")),
    ("merge-base", options("a", "", "all is-ancestor octopus")),
    ("rev-list", LOG),
    (
        "rev-parse",
        options(
            "q",
            "",
            "abbrev-ref absolute-git-dir git-dir is-inside-work-tree short short= show-prefix show-toplevel symbolic-full-name verify",
        ),
    ),
    ("shortlog", options("cens", "", "email numbered summary")),
    ("show", LOG),
    (
        "status",
        options(
            "bsvz",
            "u",
            "ahead-behind branch ignored long no-renames porcelain porcelain= short show-stash untracked-files= verbose",
        ),
    ),
];

/// Of these, any further word would do something else.
const GIT_WITHOUT_OPERANDS: &[(&str, ReadOptions)] = &[
    (
        "branch",
        options("alrv", "", "all list remotes show-current sort= verbose"),
    ),
    ("reflog", options("n", "", "")),
    ("remote", options("v", "", "verbose")),
    ("tag", options("ln", "", "list sort=")),
];

const GIT_LISTS: [[&str; 2]; 2] = [["stash", "list"], ["worktree", "list"]];

/// Tests of `find` that run, write and delete nothing.
const FIND_TESTS: &str = "
    -a -and -empty -iname -ipath -maxdepth -mindepth -mmin -mtime -name -newer -not -o -or -path
    -print -print0 -prune -size -type
";

/// Programs that say which version they are, and are the same in every project: others are found
/// by a file of the project.
const VERSIONS: &str = "clang cmake docker gcc git make";

/// They take the output of another part as text, and nothing in it as a name or a command.
const FILTERS: &str = "
    cat cksum column cut egrep fgrep fold grep head md5sum nl od rev rg sed sha1sum sha256sum
    sha512sum sort tac tail tee tr uniq wc
";

/// They make the files that they name, and nothing else.
const MAKERS: &[(&str, ReadOptions)] = &[
    ("mkdir", options("pv", "", "parents verbose")),
    ("tee", options("a", "", "append")),
    ("touch", options("acm", "", "no-create")),
];

/// Whether it only reads the files that its words name, or below the directories that they name.
pub(super) fn only_reads(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (program.as_str(), words.as_slice()) {
        ("printf", words) => words.first().is_some_and(|format| is_plain_format(format)),
        ("find", words) => words.iter().all(|word| is_find_word(word)),
        ("sed", ["-n", lines, files @ ..]) => {
            is_line_range(lines) && files.iter().all(|file| !file.starts_with('-'))
        }
        (name, ["--version" | "-V"]) if has(VERSIONS, name) => true,
        ("git", ["--no-pager", words @ ..] | words) => git_only_reads(words),
        ("echo", _) => true,
        ("date", [format]) if format.starts_with('+') => true,
        (name, words) => {
            is_listed(PROGRAMS, name, words)
                || (is_listed(WITHOUT_OPERANDS, name, words) && have_no_operands(words))
        }
    }
}

/// Whether it only makes the files that its words name.
pub(super) fn only_makes_files(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    words
        .split_first()
        .is_some_and(|(name, words)| is_listed(MAKERS, name, words))
}

/// Whether it removes files and directories that its words name. Returns these.
pub(super) fn removed(words: &[String]) -> Option<Vec<&str>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ("rm", rest) = words.split_first().map(|(name, rest)| (*name, rest))? else {
        return None;
    };
    let accepted = options("frRv", "", "force recursive");
    let is_option = |word: &&&str| word.starts_with('-');
    let is_known = rest.iter().filter(is_option).all(|word| accepted.has(word));
    let files: Vec<_> = rest
        .iter()
        .filter(|word| !is_option(word))
        .copied()
        .collect();
    (is_known && !files.is_empty() && !rest.contains(&"--")).then_some(files)
}

pub(super) fn is_filter(program: &str) -> bool {
    has(FILTERS, program)
}

fn git_only_reads(words: &[&str]) -> bool {
    let Some((subcommand, rest)) = words.split_first() else {
        return false;
    };
    // `%G` has git verify a signature, with another program.
    let verifies = rest
        .iter()
        .any(|word| word.starts_with('-') && word.contains("%G"));
    GIT_LISTS.iter().any(|list| words == list)
        || (is_listed(GIT, subcommand, rest) && !verifies)
        || (is_listed(GIT_WITHOUT_OPERANDS, subcommand, rest) && have_no_operands(rest))
}

fn is_listed(table: &[(&str, ReadOptions)], name: &str, words: &[&str]) -> bool {
    let entry = table.iter().find(|(listed, _)| *listed == name);
    entry.is_some_and(|(_, options)| {
        let mut given = words.iter().filter(|word| word.starts_with('-'));
        given.all(|word| options.has(word))
    })
}

/// Behind `--` every word is an operand.
fn have_no_operands(words: &[&str]) -> bool {
    words
        .iter()
        .all(|word| word.starts_with('-') && *word != "--")
}

/// Shells compute the words of numbers, and set the variables of `%n`.
fn is_plain_format(format: &str) -> bool {
    let left = format.replace("%%", "").replace("%s", "");
    !format.starts_with('-') && !left.contains('%')
}

fn is_find_word(word: &str) -> bool {
    let number = word.strip_prefix('-').is_some_and(is_number);
    !word.starts_with('-') || number || has(FIND_TESTS, word)
}

/// `5p`, `1,20p`, `1,$p`
fn is_line_range(text: &str) -> bool {
    let Some(lines) = text.strip_suffix('p') else {
        return false;
    };
    match lines.split_once(',') {
        Some((first, last)) => is_number(first) && (is_number(last) || last == "$"),
        None => is_number(lines),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn has(table: &str, word: &str) -> bool {
    table.split_ascii_whitespace().any(|listed| listed == word)
}

impl ReadOptions {
    /// `word` begins with a hyphen.
    fn has(&self, word: &str) -> bool {
        if matches!(word, "-" | "--") {
            return true;
        }
        if let Some(long) = word.strip_prefix("--") {
            let name = match long.split_once('=') {
                Some((name, _)) => &long[..=name.len()],
                None => long,
            };
            return has(self.long, name);
        }
        let letters = &word[1..];
        match letters.find(|letter| !self.letters.contains(letter)) {
            // `-20` is a number of lines where there is such a letter. A letter with a value takes
            // everything behind it.
            Some(at) => {
                (is_number(letters) && self.valued.contains('n'))
                    || letters[at..].starts_with(|letter| self.valued.contains(letter))
            }
            None => true,
        }
    }
}
