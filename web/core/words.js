// The words of a command, if every shell takes it for these words and nothing else, and whether its first words say what it does. The
// same as in the terminal: `tests/vectors/words.json` holds both to it. In doubt there are no words, and a person is asked each time.

const list = (/** @type {string} */ names) => new Set(names.trim().split(/\s+/));

/**
 * Shells, what starts a program in another way, as another user, elsewhere, later, or once for each of many, and what has a language
 * of its own in its arguments.
 */
const WRAPPERS = list(`
  . ash at awk bash batch bsdtar builtin bunx busybox bwrap catchsegv cgexec chpst chroot chrt cmd command countersign csh
  daemonize dash dbus-run-session doas ed elvish emacs entr env eval ex exec expect fakeroot faketime fd fdfind find firejail
  fish flock gawk gdb gosu gsed gtimeout hyperfine ionice ksh ld-linux linux32 linux64 ltrace mawk mksh nawk nice nohup npx
  nsenter nu numactl nvim parallel pdksh perf pipx pkexec pnpx powershell prlimit proot proxychains pwsh rbash rlwrap rsh
  runcon runuser rush rust-gdb screen script sed setarch setpriv setsid sg sh socat source ssh stdbuf strace su sudo
  systemd-run tar taskset tcsh time timeout tmux toybox unshare uvx valgrind vi vim watch xargs zsh
`);

/** These run what a file says, or with options what their arguments say. */
const INTERPRETERS = list('bun deno julia lua luajit node nodejs osascript perl php pypy python rscript ruby tclsh');

/** Words that a shell acts on itself: they change what later words mean, or run other words. */
const SHELL_WORDS = list(`
  alias autoload bg bind case complete coproc declare disable disown do done elif else emulate enable esac export fc fg fi for
  foreach function functions hash history if let local mapfile noglob nocorrect popd pushd read readarray readonly repeat
  select set setopt shopt then trap typeset unalias unset unsetopt until while zmodload
`);

/** Words that make a program run another one, or write a file, wherever they stand. */
const RUNNING = list(`
  -exec -execdir -ok -okdir --checkpoint-action --exec --ext-diff --hostname-bin --output --pre --textconv --to-command
`);

const PROGRAM = /^[A-Za-z0-9_./][A-Za-z0-9_./+-]*$/;
/** Some shells take `=ls` for a path and `%1` for a job. */
const BARE = /^(?![=%])[A-Za-z0-9_\-./:,@%+=]+$/;
/** What each kind of quotes leaves alone. */
const QUOTABLE = { "'": /^(?:(?![\\!])[ -~])*$/, '"': /^(?:(?![\\!$`])[ -~])*$/ };

/** @param {string} program */
function nameOf(program) {
  const name = program.slice(program.lastIndexOf('/') + 1).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return name.replace(/\.exe$/, '');
}

/**
 * With or without a version, as in `bash-5.2` and `python3.11`.
 * @param {string} program
 * @param {Set<string>} names
 */
function hasName(program, names) {
  const name = nameOf(program);
  return names.has(name) || names.has(name.replace(/[0-9.\-_]+$/, ''));
}

/**
 * Whether this first word of a command runs a program that later words name. It may be a path. In doubt it does.
 * @param {string} program
 */
function runsAnother(program) {
  const name = nameOf(program);
  const isLoader = name.startsWith('ld-') || name.startsWith('ld.so');
  // Shells take a word with an equals sign for an assignment: the program comes later.
  const isUnclear = name === '' || program.includes('=') || program.startsWith('-');
  return isUnclear || isLoader || hasName(program, WRAPPERS);
}

/**
 * Whether the first words of this command say little of what it does. In doubt they do.
 * @param {string[]} words
 */
export function hidesWhatRuns([program, second]) {
  if (program === undefined) return true;
  const isOption = second === undefined || second.startsWith('-');
  return runsAnother(program) || (hasName(program, INTERPRETERS) && isOption);
}

/**
 * Null if it has anything but plain words: quotes only around a whole word, and no operators, substitutions, redirections, patterns,
 * variables, comments, assignments, line ends, or characters outside of printable ASCII.
 * @param {string} command
 * @returns {string[] | null}
 */
export function plainWords(command) {
  /** @type {string[]} */
  const words = [];
  let left = command.replace(/^ +| +$/g, '');
  while (left !== '') {
    const isQuoted = left[0] === "'" || left[0] === '"';
    const read = isQuoted ? readQuoted(left) : readBare(left);
    if (read === null || (words.length === 0 && (isQuoted || !isProgram(read.word)))) return null;
    const { word, length } = read;
    if (RUNNING.has(word) || (word.includes('=') && RUNNING.has(word.slice(0, word.indexOf('='))))) return null;
    words.push(word);
    left = left.slice(length).replace(/^ +/, '');
  }
  return hidesWhatRuns(words) ? null : words;
}

/** @param {string} word */
function isProgram(word) {
  return PROGRAM.test(word) && !SHELL_WORDS.has(word);
}

/** @param {string} text */
function readBare(text) {
  const end = text.indexOf(' ');
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
  if (end < 0 || (after !== undefined && after !== ' ')) return null;
  const word = text.slice(1, end);
  return QUOTABLE[quote].test(word) ? { word, length: end + 1 } : null;
}
