// The words of a command, if every shell takes it for these words and nothing else, and whether its
// first words say what it does. The same as in the terminal: `tests/vectors/words.json` holds both
// to it. If unsure there are no words, and a person is asked each time.

const list = (/** @type {string} */ names) =>
	new Set(names.trim().split(/\s+/));

/**
 * Shells, what starts a program in another way, as another user, elsewhere, later, or once for each
 * of many, and what has a language of its own in its arguments.
 */
const WRAPPERS = list(`
  . abduco alacritty ansible apt apt-get aptitude arch ash at autossh awk bash batch bconsole bsdtar builtin bunx busybox bwrap
  byobu caffeinate capsh catchsegv cgexec chokidar choom chpst chroot chrt cmd cobc command concurrently conda corepack
  countersign cowsay cowthink cpan cpulimit cpupower crash cross-env cscope cset csh curl daemonize dash dbus-launch
  dbus-run-session devbox dialog direnv distcc dmsetup dnf doas dotenv dotenvx dpkg dtach dvips easy_install eatmydata ed
  elvish emacs entr env envdir envuidgid erl eval ex exec expect fakechroot fakeroot faketime fd fdfind find firejail fish
  flatpak flock fnm foreman gawk gcore gdb genie ghc ghci gimp ginsh git-shell gnome-terminal gosu groff groovy gsed gtester
  gtimeout guile gvim hping3 hyperfine i386 iex incus ionice irb ispell java jjs jrunscript jshell kitty konsole ksh ksshell
  latex latexmk ld-linux less lftp linux32 linux64 logsave ltrace lualatex lxc m4 machinectl mail mailx man mawk mise mksh more
  mosh msfconsole multitime mysql nano nawk nc ncat netcat newgrp nice nix-shell nmap nodemon nohup npm-run-all npx nroff
  nsenter nu numactl nvim ocaml octave openvpn pandoc parallel pdb pdflatex pdftex pdksh perf pic pico pidstat pipx pkexec pnpx
  posh powershell pre-commit prlimit proot proxychains pry psql puppet pwsh pyenv r racket rbash rbenv rc rlwrap rpm rpmquery
  rsh rsync run-mailcap run-parts run0 runcon runghc runit runuser rush rust-gdb rview rvim s6-setuidgid sash sbcl scala
  scanmem screen script sed service setarch setpriv setsid setuidgid sftp sg sh slsh snap socat softlimit source split sqlite
  sqlmap ssh ssh-agent sshpass sshuttle start-stop-daemon stdbuf strace su sudo sudoedit swift systemd-cat systemd-inhibit
  systemd-nspawn systemd-run tar taskset tasksh tcsh tdbtool telnet terminator tex time timeout tmate tmux top torify torsocks
  toybox troff tsocks uname26 unshare unsquashfs uvx vagrant valgrind vi view vim vimdiff w3m wasmtime watch watchexec watchman
  wget wine wish x-terminal-emulator x86_64 xargs xdotool xelatex xinit xterm xvfb-run yash zathura zellij zip zsh zypper
`);

/** These run what a file says, or with options what their arguments say. */
const INTERPRETERS = list(
	"bun deno julia lua luajit node nodejs osascript perl php pypy python rscript ruby tclsh",
);

/** Words that a shell acts on itself: they change what later words mean, or run other words. */
const SHELL_WORDS = list(`
  alias autoload bg bind case complete coproc declare disable disown do done elif else emulate enable esac export fc fg fi for
  foreach function functions hash history if let local mapfile noglob nocorrect popd pushd read readarray readonly repeat
  select set setopt shopt then trap typeset unalias unset unsetopt until while zmodload
`);

/**
 * Subcommands that run a program which later words or a file name, or that set up such a program.
 */
const RUNNERS = new Map(
	Object.entries({
		asdf: list("exec"),
		bun: list("create x"),
		bundle: list("exec"),
		cargo: list("watch"),
		composer: list("exec run run-script"),
		deno: list("eval run task"),
		docker: list("compose container exec run"),
		"docker-compose": list("exec run"),
		dotnet: list("exec run"),
		gem: list("exec"),
		gh: list("alias codespace ext extension"),
		git: list(
			"bisect config difftool filter-branch for-each-repo foreach hook mergetool",
		),
		go: list("generate run tool"),
		guix: list("environment shell"),
		hatch: list("run"),
		heroku: list("run run:detached"),
		kubectl: list("cp debug exec run"),
		mamba: list("run"),
		micromamba: list("run"),
		nerdctl: list("container exec run"),
		nix: list("develop run shell"),
		npm: list(
			"config create exe exec expl explo explor explore init innit set x",
		),
		nvm: list("exec run"),
		oc: list("debug exec rsh run"),
		pdm: list("run"),
		pip: list("config"),
		pipenv: list("run shell"),
		pixi: list("exec run shell"),
		pnpm: list("config create dlx exec x"),
		podman: list("container exec run ssh"),
		poetry: list("run shell"),
		rustup: list("run"),
		rye: list("run"),
		uv: list("run tool x"),
		volta: list("run"),
		yarn: list("config create dlx exec node"),
		zig: list("c++ cc run"),
	}),
);

/**
 * Single letters that many programs take for an option that chooses a program, a file, a directory
 * or a configuration.
 */
const LETTERS = /[cCDeEfFIKLoOPSTuWxXZ]/;

/** Letters that mean the same in single programs. */
const PROGRAM_LETTERS = Object.entries({
	bun: "r",
	cmake: "B",
	composer: "d",
	gem: "is",
	git: "t",
	gradle: "bgp",
	gradlew: "bgp",
	jest: "r",
	mocha: "r",
	mvn: "gst",
	mvnw: "gst",
	npm: "g",
	pip: "irt",
	pytest: "p",
	rspec: "r",
	task: "t",
	tsc: "p",
	vitest: "r",
});

/** Whole names: an abbreviation of one has none of the parts below. */
const ABBREVIATED = [
	...list(`
  extra-index-url globalconfig http-proxy https-proxy makefile receive-pack separate-git-dir upload-archive upload-pack
  userconfig
`),
];

/** Parts of the names of such options. */
const STEMS = [
	...list(`
  -pack action arg askpass base browser build cache call cert chdir cmd command compress conf constraint content context cookie
  cwd data dir dump editable editor engine entrypoint env escape eval exec ext-diff extension file filter fix flags format
  global gyp home hook host html import include index ini key link load location log module mount open option opts output
  overlay pager paginate parser paste path pdb pipe plugin prefix preset privileged program project prop proxy python registry
  remote repo require resolv root rsh rule runner save script sequencer server settings setup shell socket source stderr store
  target temp template textconv token tool trace transform tree upload url user viewer volume wrapper write xml
`),
];

/** Names that are parts of too many harmless ones. */
const NAMES = list("git ok okdir out pre set src ui");

/** Common and harmless, although a part of them is in the list above. */
const HARMLESS = list("-- --cached --no-pager");

const PROGRAM = /^[A-Za-z0-9_./][A-Za-z0-9_./+-]*$/;
/** Some shells take `=ls` for a path and `%1` for a job. */
const BARE = /^(?![=%])[A-Za-z0-9_\-./:,@%+=]+$/;
/** The characters that each kind of quotes leaves alone. */
const QUOTABLE = {
	"'": /^(?:(?![\\!])[ -~])*$/,
	'"': /^(?:(?![\\!$`])[ -~])*$/,
};

/** @param {string} program */
function nameOf(program) {
	const name = program
		.slice(program.lastIndexOf("/") + 1)
		.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
	return name.replace(/\.exe$/, "");
}

/**
 * With or without a version, as in `bash-5.2` and `python3.11`.
 * @param {string} program
 * @param {Set<string>} names
 */
function hasName(program, names) {
	const name = nameOf(program);
	return names.has(name) || names.has(name.replace(/[0-9.\-_]+$/, ""));
}

/**
 * Whether this first word of a command runs a program that later words name. It may be a path. True
 * if unsure.
 * @param {string} program
 */
function runsAnother(program) {
	const name = nameOf(program);
	const isLoader = name.startsWith("ld-") || name.startsWith("ld.so");
	// Shells take a word with an equals sign for an assignment: the program comes later.
	const isUnclear =
		name === "" || program.includes("=") || program.startsWith("-");
	return isUnclear || isLoader || hasName(program, WRAPPERS);
}

/**
 * Whether the first words of this command say little of what it does. True if unsure.
 * @param {string[]} words
 */
export function hidesWhatRuns([program, ...rest]) {
	if (program === undefined) return true;
	const isOption = rest[0] === undefined || rest[0].startsWith("-");
	return (
		runsAnother(program) ||
		(hasName(program, INTERPRETERS) && isOption) ||
		hasRunner(program, rest)
	);
}

/** Subcommands behind which another one follows. */
const CONTAINERS = list(
	"m machine multi recursive submodule workspace workspaces",
);

/**
 * Options may stand before the subcommand and have values of their own; then any word counts.
 * @param {string} program
 * @param {string[]} words
 */
function hasRunner(program, words) {
	const [first, second] = words;
	const isPlain =
		first !== undefined && !first.startsWith("-") && !CONTAINERS.has(first);
	const lookedAt = !isPlain
		? words
		: second === "foreach"
			? [first, second]
			: [first];
	return [...RUNNERS].some(
		([name, subcommands]) =>
			hasName(program, new Set([name])) &&
			lookedAt.some((word) => subcommands.has(word)),
	);
}

/**
 * Whether this later word of a command of `program` chooses a program, a file, a directory or a
 * configuration by other means than a plain name: by an option, an assignment, or a file with
 * further words. True if unsure.
 * @param {string} program
 * @param {string} word
 */
export function choosesSomething(program, word) {
	if (HARMLESS.has(word)) return false;
	if (!word.startsWith("-")) return /^[@+]|=/.test(word);
	const option = word.slice(1);
	const equals = option.indexOf("=");
	const name = equals < 0 ? option : option.slice(0, equals);
	const value = equals < 0 ? "" : option.slice(equals + 1);
	const isShort = !name.startsWith("-");
	const isNumber = /^[0-9]+$/.test(name);
	const bare = name
		.replace(/^-+/, "")
		.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
	const own = PROGRAM_LETTERS.filter(([its]) =>
		hasName(program, new Set([its])),
	)
		.map(([, letters]) => letters)
		.join("");
	const hasLetter =
		isShort &&
		(LETTERS.test(option) ||
			[...option].some((letter) => own.includes(letter)));
	const isOdd = !isNumber && (bare === "" || (!isShort && bare.length < 3));
	return (
		isOdd ||
		hasLetter ||
		/[/~]/.test(value) ||
		option.includes("@") ||
		isNameOfChoice(bare)
	);
}

/**
 * The name may be abbreviated: `outp` is `output`.
 * @param {string} name
 */
function isNameOfChoice(name) {
	const parts = name.split("-");
	const last = parts[parts.length - 1] ?? "";
	const isStem = (/** @type {string} */ stem) =>
		name.includes(stem) || (name.length >= 3 && stem.startsWith(last));
	const isAbbreviated =
		name.length >= 3 && ABBREVIATED.some((whole) => whole.startsWith(name));
	return (
		isAbbreviated || STEMS.some(isStem) || parts.some((part) => NAMES.has(part))
	);
}

/**
 * Whether a word may stand where any word may: it is no option, and chooses nothing.
 * @param {string} program
 * @param {string} word
 */
export function mayBeFree(program, word) {
	return !word.startsWith("-") && !choosesSomething(program, word);
}

/**
 * Whether the word behind the program says what runs: a script, or a subcommand of which some run
 * something else.
 * @param {string} program
 */
function needsSubcommand(program) {
	return (
		hasName(program, INTERPRETERS) ||
		[...RUNNERS.keys()].some((name) => hasName(program, new Set([name])))
	);
}

/**
 * Why no permission of this form is given or kept; null if it can be.
 * @param {(string | null)[]} words null: any word that is no option
 * @param {boolean} more further words may follow
 * @returns {'runsAnother' | 'freeSubcommand' | 'freeChoice' | null}
 */
export function patternProblem(words, more) {
	const program = words[0] ?? "";
	if (runsAnother(program)) return "runsAnother";
	const subcommand = words
		.slice(1)
		.find((word) => word === null || !word.startsWith("-"));
	const isFree = subcommand === undefined ? more : subcommand === null;
	if (needsSubcommand(program) && isFree) return "freeSubcommand";
	const isFreeAt = (/** @type {number} */ at) =>
		at < words.length ? words[at] === null : more;
	const isChoice = words.some(
		(word, at) =>
			at > 0 &&
			word !== null &&
			choosesSomething(program, word) &&
			isFreeAt(at + 1),
	);
	return isChoice ? "freeChoice" : null;
}

/**
 * Whether the words of a command fit.
 * @param {(string | null)[]} pattern
 * @param {boolean} more
 * @param {string[]} words
 */
export function fitsPattern(pattern, more, words) {
	const program = words[0] ?? "";
	const further = words.slice(pattern.length);
	return (
		words.length >= pattern.length &&
		pattern.every((place, at) =>
			place === null ? mayBeFree(program, words[at]) : place === words[at],
		) &&
		(more || further.length === 0) &&
		!further.some((word) => choosesSomething(program, word)) &&
		patternProblem(pattern, more) === null
	);
}

/**
 * Null if it has anything but plain words: quotes only around a whole word, and no operators,
 * substitutions, redirections, patterns, variables, comments, assignments, line ends, or characters
 * outside of printable ASCII.
 * @param {string} command
 * @returns {string[] | null}
 */
export function plainWords(command) {
	/** @type {string[]} */
	const words = [];
	let left = command.replace(/^ +| +$/g, "");
	while (left !== "") {
		const isQuoted = left[0] === "'" || left[0] === '"';
		const read = isQuoted ? readQuoted(left) : readBare(left);
		if (
			read === null ||
			(words.length === 0 && (isQuoted || !isProgram(read.word)))
		)
			return null;
		const { word, length } = read;
		words.push(word);
		left = left.slice(length).replace(/^ +/, "");
	}
	return hidesWhatRuns(words) ? null : words;
}

/** @param {string} word */
function isProgram(word) {
	return PROGRAM.test(word) && !SHELL_WORDS.has(word);
}

/** @param {string} text */
function readBare(text) {
	const end = text.indexOf(" ");
	const word = end < 0 ? text : text.slice(0, end);
	return BARE.test(word) ? { word, length: word.length } : null;
}

/**
 * A quote that ends within a word leaves what the shell makes of the whole to the shell.
 * @param {string} text
 */
function readQuoted(text) {
	const quote = text[0] === "'" ? "'" : '"';
	const end = text.indexOf(quote, 1);
	const after = text[end + 1];
	if (end < 0 || (after !== undefined && after !== " ")) return null;
	const word = text.slice(1, end);
	return QUOTABLE[quote].test(word) ? { word, length: end + 1 } : null;
}
