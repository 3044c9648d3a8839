// What an approval may permit beyond its request. Enforcers judge again; this keeps a person from signing what they would not keep.

import { isWithin } from './canonical.js';
import { Problem } from './problem.js';

/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').Grant} Grant */

const MAX_WORDS = 64;
const MAX_WORD_CHARS = 1_024;
const CONTROL = /\p{Cc}/u;
/** A command in which a shell finds nothing but words. */
const PLAIN = /^[A-Za-z0-9_\-./:,@%+= ]*$/;

/** Shells, and what starts a program in another way, as another user, elsewhere, later, or once for each of many. */
const WRAPPERS = new Set(`
  . ash at bash batch builtin busybox bwrap catchsegv cgexec chpst chroot chrt cmd command countersign csh daemonize
  dash dbus-run-session doas elvish entr env eval exec expect fakeroot faketime fd fdfind find firejail fish flock gdb
  gosu gtimeout hyperfine ionice ksh ld-linux linux32 linux64 ltrace mksh nice nohup nsenter nu numactl parallel pdksh
  perf pkexec powershell prlimit proot proxychains pwsh rbash rlwrap rsh runcon runuser rush rust-gdb screen script
  setarch setpriv setsid sg sh socat source ssh stdbuf strace su sudo systemd-run taskset tcsh time timeout tmux toybox
  unshare valgrind watch xargs zsh
`.trim().split(/\s+/));

/**
 * Whether this first word of a command runs a program that later words name. It may be a path. In doubt it does.
 * @param {string} program
 */
function runsAnother(program) {
  const name = program.slice(program.lastIndexOf('/') + 1).toLowerCase().replace(/\.exe$/, '');
  // Versions, as in `bash-5.2`.
  const plain = name.replace(/[0-9.\-_]+$/, '');
  const isLoader = name.startsWith('ld-') || name.startsWith('ld.so');
  // Shells take a word with an equals sign for an assignment: the program comes later.
  const isUnclear = name === '' || program.includes('=') || program.startsWith('-');
  return isUnclear || isLoader || WRAPPERS.has(name) || WRAPPERS.has(plain);
}

/**
 * The words of a command; null if it is none, or if a shell could make something else of it.
 * @param {Artifact} artifact
 * @returns {string[] | null}
 */
function wordsOf({ payload: { argv, command } }) {
  if (argv !== undefined) {
    return Array.isArray(argv) && argv.every((word) => typeof word === 'string') ? argv : null;
  }
  return typeof command === 'string' && PLAIN.test(command) ? command.split(' ').filter((word) => word !== '') : null;
}

/**
 * The words by which a permission can be given: whatever begins with some of them. Null if no permission by words covers this.
 * @param {Artifact} artifact
 * @returns {string[] | null}
 */
export function grantableWords(artifact) {
  const words = wordsOf(artifact);
  return words === null || words[0] === undefined || runsAnother(words[0]) ? null : words;
}

/**
 * Refuses a grant that makes no sense, or does not fit the request that it is given with.
 * @param {Grant} grant
 * @param {Artifact} artifact
 */
export function checkGrant(grant, artifact) {
  if (grant.match === 'same') return;
  const { argv } = grant;
  const isPlain = (/** @type {string} */ word) => word !== '' && isWithin(word, MAX_WORD_CHARS) && !CONTROL.test(word);
  if (argv.length < 1 || argv.length > MAX_WORDS || !argv.every(isPlain)) throw Problem.of('grantWords', {});
  const words = wordsOf(artifact);
  if (words === null) throw Problem.of('grantNotPlain', {});
  if (words[0] === undefined || runsAnother(words[0])) throw Problem.of('grantRunsAnother', {});
  if (!argv.every((word, place) => word === words[place])) throw Problem.of('grantOther', {});
}
