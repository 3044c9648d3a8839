//! Programs that run another program, which stands somewhere in their arguments. A grant by the
//! first words of a command never covers them: the words that matter come later.

/// Shells; programs that start another one in another way, as another user, elsewhere, later, or
/// many times; and programs with a language of their own in their arguments.
const WRAPPERS: &str = "
    . abduco alacritty ansible apt apt-get aptitude arch ash at autossh awk bash batch bconsole
    bsdtar builtin bunx busybox bwrap byobu caffeinate capsh catchsegv cgexec chokidar choom
    chpst chroot chrt cmd cobc command concurrently conda corepack countersign cowsay cowthink
    cpan cpulimit cpupower crash cross-env cscope cset csh curl daemonize dash dbus-launch
    dbus-run-session devbox dialog direnv distcc dmsetup dnf doas dotenv dotenvx dpkg dtach
    dvips easy_install eatmydata ed elvish emacs entr env envdir envuidgid erl eval ex exec
    expect fakechroot fakeroot faketime fd fdfind find firejail fish flatpak flock fnm foreman
    gawk gcore gdb genie ghc ghci gimp ginsh git-shell gnome-terminal gosu groff groovy gsed
    gtester gtimeout guile gvim hping3 hyperfine i386 iex incus ionice irb ispell java jjs
    jrunscript jshell kitty konsole ksh ksshell latex latexmk ld-linux less lftp linux32 linux64
    logsave ltrace lualatex lxc m4 machinectl mail mailx man mawk mise mksh more mosh msfconsole
    multitime mysql nano nawk nc ncat netcat newgrp nice nix-shell nmap nodemon nohup
    npm-run-all npx nroff nsenter nu numactl nvim ocaml octave openvpn pandoc parallel pdb
    pdflatex pdftex pdksh perf pic pico pidstat pipx pkexec pnpx posh powershell pre-commit
    prlimit proot proxychains pry psql puppet pwsh pyenv r racket rbash rbenv rc rlwrap rpm
    rpmquery rsh rsync run-mailcap run-parts run0 runcon runghc runit runuser rush rust-gdb
    rview rvim s6-setuidgid sash sbcl scala scanmem screen script sed service setarch setpriv
    setsid setuidgid sftp sg sh slsh snap socat softlimit source split sqlite sqlmap ssh
    ssh-agent sshpass sshuttle start-stop-daemon stdbuf strace su sudo sudoedit swift
    systemd-cat systemd-inhibit systemd-nspawn systemd-run tar taskset tasksh tcsh tdbtool
    telnet terminator tex time timeout tmate tmux top torify torsocks toybox troff tsocks
    uname26 unshare unsquashfs uvx vagrant valgrind vi view vim vimdiff w3m wasmtime watch
    watchexec watchman wget wine wish x-terminal-emulator x86_64 xargs xdotool xelatex xinit
    xterm xvfb-run yash zathura zellij zip zsh zypper
";

/// These run what a file says, or with options what their arguments say.
const INTERPRETERS: &str = "
    bun deno julia lua luajit node nodejs osascript perl php pypy python rscript ruby tclsh
";

/// Subcommands that run a program which later words or a file name, or that set up such a program.
const RUNNERS: &[(&str, &str)] = &[
    ("asdf", "exec"),
    ("bun", "create x"),
    ("bundle", "exec"),
    ("cargo", "watch"),
    ("composer", "exec run run-script"),
    ("deno", "eval run task"),
    ("docker", "compose container exec run"),
    ("docker-compose", "exec run"),
    ("dotnet", "exec run"),
    ("gem", "exec"),
    ("gh", "alias codespace ext extension"),
    (
        "git",
        "bisect config difftool filter-branch for-each-repo foreach hook mergetool",
    ),
    ("go", "generate run tool"),
    ("guix", "environment shell"),
    ("hatch", "run"),
    ("heroku", "run run:detached"),
    ("kubectl", "cp debug exec run"),
    ("mamba", "run"),
    ("micromamba", "run"),
    ("nerdctl", "container exec run"),
    ("nix", "develop run shell"),
    (
        "npm",
        "config create exe exec expl explo explor explore init innit set x",
    ),
    ("nvm", "exec run"),
    ("oc", "debug exec rsh run"),
    ("pdm", "run"),
    ("pip", "config"),
    ("pipenv", "run shell"),
    ("pixi", "exec run shell"),
    ("pnpm", "config create dlx exec x"),
    ("podman", "container exec run ssh"),
    ("poetry", "run shell"),
    ("rustup", "run"),
    ("rye", "run"),
    ("uv", "run tool x"),
    ("volta", "run"),
    ("yarn", "config create dlx exec node"),
    ("zig", "c++ cc run"),
];

/// Subcommands behind which another one follows.
const CONTAINERS: &str = "m machine multi recursive submodule workspace workspaces";

/// Whether the first words of this command say little of what it does. Returns `true` if unsure.
pub fn hides_what_runs<W: AsRef<str>>(words: &[W]) -> bool {
    let Some(program) = words.first() else {
        return true;
    };
    let is_option = |word: &W| word.as_ref().starts_with('-');
    let interprets = has_name(program.as_ref(), INTERPRETERS);
    runs_another(program.as_ref())
        || (interprets && words.get(1).is_none_or(is_option))
        || has_runner(program.as_ref(), &words[1..])
}

/// Options may stand before the subcommand and have values of their own; then any word counts.
fn has_runner<W: AsRef<str>>(program: &str, words: &[W]) -> bool {
    let is_plain = |word: &W| !word.as_ref().starts_with('-');
    let looked_at = match words {
        [first, ..] if has_word(CONTAINERS, first.as_ref()) => words,
        [first, second, ..] if is_plain(first) && second.as_ref() == "foreach" => &words[..2],
        [first, ..] if is_plain(first) => &words[..1],
        words => words,
    };
    let is_runner = |(name, subcommands): &(&str, &str)| {
        let is_subcommand = |word: &W| has_word(subcommands, word.as_ref());
        has_name(program, name) && looked_at.iter().any(is_subcommand)
    };
    RUNNERS.iter().any(is_runner)
}

/// Whether the word behind the program says what runs: a script, or a subcommand of which some run
/// something else.
pub(super) fn needs_subcommand(program: &str) -> bool {
    let is_listed = |(name, _): &(&str, &str)| has_name(program, name);
    has_name(program, INTERPRETERS) || RUNNERS.iter().any(is_listed)
}

/// Whether this first word of a command, or path, runs a program that later words name. Returns
/// `true` if unsure.
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

/// Whether `program` is one of `names`, with or without a version: `bash-5.2`, `python3.11`.
pub(super) fn has_name(program: &str, names: &str) -> bool {
    let name = name_of(program);
    let version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    has_word(names, &name) || has_word(names, name.trim_end_matches(version))
}

/// Whether a table of words, separated by white space, has this word.
pub(super) fn has_word(table: &str, word: &str) -> bool {
    table.split_ascii_whitespace().any(|listed| listed == word)
}
