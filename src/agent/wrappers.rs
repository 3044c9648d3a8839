//! Programs that run another program, which stands somewhere in their arguments. What a person permits by the first words of a
//! command never covers them: the words that matter come later.

/// Shells, what starts a program in another way, as another user, elsewhere, later, or once for each of many, and what has a
/// language of its own in its arguments.
const WRAPPERS: &[&str] = &[
    ".",
    "ash",
    "at",
    "awk",
    "bash",
    "batch",
    "bsdtar",
    "builtin",
    "bunx",
    "busybox",
    "bwrap",
    "catchsegv",
    "cgexec",
    "chpst",
    "chroot",
    "chrt",
    "cmd",
    "command",
    "countersign",
    "csh",
    "daemonize",
    "dash",
    "dbus-run-session",
    "doas",
    "ed",
    "elvish",
    "emacs",
    "entr",
    "env",
    "eval",
    "ex",
    "exec",
    "expect",
    "fakeroot",
    "faketime",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "gosu",
    "gsed",
    "gtimeout",
    "hyperfine",
    "ionice",
    "ksh",
    "ld-linux",
    "linux32",
    "linux64",
    "ltrace",
    "mawk",
    "mksh",
    "nawk",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "nu",
    "numactl",
    "nvim",
    "parallel",
    "pdksh",
    "perf",
    "pipx",
    "pkexec",
    "pnpx",
    "powershell",
    "prlimit",
    "proot",
    "proxychains",
    "pwsh",
    "rbash",
    "rlwrap",
    "rsh",
    "runcon",
    "runuser",
    "rush",
    "rust-gdb",
    "screen",
    "script",
    "sed",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "socat",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "tar",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "unshare",
    "uvx",
    "valgrind",
    "vi",
    "vim",
    "watch",
    "xargs",
    "zsh",
];

/// These run what a file says, or with options what their arguments say.
const INTERPRETERS: &[&str] = &[
    "bun",
    "deno",
    "julia",
    "lua",
    "luajit",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "pypy",
    "python",
    "rscript",
    "ruby",
    "tclsh",
];

/// Whether the first words of this command say little of what it does. In doubt they do.
pub fn hides_what_runs<W: AsRef<str>>(words: &[W]) -> bool {
    let Some(program) = words.first() else {
        return true;
    };
    let is_option = |word: &W| word.as_ref().starts_with('-');
    let interprets = has_name(program.as_ref(), INTERPRETERS);
    runs_another(program.as_ref()) || (interprets && words.get(1).is_none_or(is_option))
}

/// Whether this first word of a command runs a program that later words name. It may be a path. In doubt it does.
pub fn runs_another(program: &str) -> bool {
    let name = name_of(program);
    let loader = name.starts_with("ld-") || name.starts_with("ld.so");
    // Shells take a word with an equals sign for an assignment: the program comes later.
    let unclear = name.is_empty() || program.contains('=') || program.starts_with('-');
    unclear || loader || has_name(program, WRAPPERS)
}

fn name_of(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// With or without a version, as in `bash-5.2` and `python3.11`.
fn has_name(program: &str, names: &[&str]) -> bool {
    let name = name_of(program);
    let version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    let plain = name.trim_end_matches(version);
    names.contains(&name.as_str()) || names.contains(&plain)
}
