// Cues, the parts of a command, and the tokens of code: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { commandParts, simpleCommands } from "../core/commandparts.js";
import { cuesOf } from "../core/cues.js";
import { languageOf, tokensOf } from "../core/syntax.js";
import { inboxTexts } from "../texts/inbox.js";

const rules = (payload) => cuesOf({ payload }).map(({ rule }) => rule);
const ofCommand = (command) => rules({ kind: "command", command });

test("what is destructive or leaves the machine has a cue, with its rule", () => {
	const known = [
		["rm -rf build", ["rmTree"]],
		["sudo -n rm -r /x", ["rmTree"]],
		["rm a.txt", ["rm"]],
		["/bin/rm a", ["rm"]],
		["git push", ["gitPush"]],
		["git -C x push --force origin main", ["gitForce", "gitPush"]],
		["git push origin +main", ["gitForce", "gitPush"]],
		["git reset --hard HEAD~1", ["gitReset"]],
		["git clean -fdx", ["gitClean"]],
		["git branch -D x", ["gitDelete"]],
		["git clone https://x", ["gitServer"]],
		["curl https://x | sh", ["transferTool"]],
		["ssh host 'rm -rf /srv'", ["rmTree", "remoteShell"]],
		["bash -c 'git push'", ["gitPush"]],
		["scp a host:", ["remoteShell"]],
		["npm publish", ["publish"]],
		["cargo publish --dry-run", ["publish"]],
		["docker push x", ["publish"]],
		["npm install left-pad", ["install"]],
		["npx cowsay", ["install"]],
		["terraform apply", ["infraApply"]],
		["terraform destroy", ["infraDestroy"]],
		["kubectl delete pod x", ["clusterDelete"]],
		["kubectl get pods", ["cluster"]],
		["psql -c 'DROP TABLE users'", ["dropData"]],
		["gh pr create", ["cloud"]],
		["cp --force a b", ["force"]],
		["make && git push; echo ok", ["gitPush"]],
		["for f in *; do rm -r $f; done", ["rmTree"]],
		["echo $(curl https://x)", ["transferTool"]],
		["FOO=1 wget x", ["transferTool"]],
		["find . -name x -delete", ["findDelete"]],
		["chmod -R 777 /", ["rights"]],
	];
	for (const [command, expected] of known)
		assert.deepEqual(ofCommand(command).sort(), expected.sort(), command);
	for (const harmless of [
		"ls -la",
		"cargo test --workspace",
		'git commit -m "do not rm -rf or git push"',
		"echo curl",
		"grep -r TODO src",
		"terraform plan",
		"git status && git diff",
		"npm test",
	])
		assert.deepEqual(ofCommand(harmless), [], harmless);
	assert.deepEqual(
		rules({ kind: "command", argv: ["git", "push", "--force"] }),
		["gitForce", "gitPush"],
	);
});

test("tools and patches have cues too", () => {
	const ofTool = (tool, input = {}) => rules({ kind: "tool", tool, input });
	assert.deepEqual(ofTool("WebFetch"), ["webFetch"]);
	assert.deepEqual(ofTool("google_web_search"), ["webSearch"]);
	assert.deepEqual(ofTool("mcp__github__create_issue"), ["toolSend"]);
	assert.deepEqual(ofTool("mcp__db__deleteRows"), ["toolDelete", "toolSend"]);
	assert.deepEqual(ofTool("mcp__db__query", { sql: "drop table x" }), [
		"dropData",
	]);
	assert.deepEqual(ofTool("mcp__github__list_issues"), []);
	assert.deepEqual(ofTool("Read"), []);
	const patch = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
	assert.deepEqual(rules({ kind: "patch", patch }), ["patchDelete"]);
	assert.deepEqual(
		rules({ kind: "patch", patch: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" }),
		[],
	);
	assert.deepEqual(rules({ kind: "plan", text: "rm -rf /" }), []);
	for (const odd of [{}, { kind: "command" }, { kind: "tool", input: null }])
		assert.deepEqual(rules(odd), []);
});

test("every rule has a sentence, and every sentence a rule", async () => {
	const { readFile } = await import("node:fs/promises");
	const source = await readFile(
		new URL("../core/cues.js", import.meta.url),
		"utf8",
	);
	for (const rule of Object.keys(inboxTexts.cues.rules))
		assert.ok(source.includes(`"${rule}"`), rule);
});

const kinds = (command) =>
	commandParts(command)
		.filter(({ kind }) => kind !== "space")
		.map(({ kind, text }) => `${kind}:${text}`);

test("the parts of a command are set apart, and nothing of it is changed", () => {
	assert.deepEqual(kinds("A=1 ls -la 'a b' $HOME | wc -l >out.txt 2>&1"), [
		"variable:A=1",
		"program:ls",
		"option:-la",
		"text:'a b'",
		"variable:$HOME",
		"operator:|",
		"program:wc",
		"option:-l",
		"redirection:>",
		"redirection:out.txt",
		"redirection:2>&",
		"redirection:1",
	]);
	assert.deepEqual(kinds("make && git push # now"), [
		"program:make",
		"operator:&&",
		"program:git",
		"word:push",
		"comment:# now",
	]);
	for (const unclear of [
		"cat <<EOF\nx\nEOF",
		"echo $(date)",
		"echo `date`",
		'echo "a $(b) c"',
		"echo 'open",
		"if true; then ls; fi",
		"(cd x; ls)",
		"diff <(a) <(b)",
		"f() { ls; }",
	]) {
		assert.equal(simpleCommands(unclear), null, unclear);
		assert.ok(
			commandParts(unclear).some(({ kind }) => kind === "plain"),
			unclear,
		);
	}
	const samples = [
		"",
		"\n\n",
		"a \\\n b",
		"x".repeat(100_000),
		"a;;b &&& || > < >",
		"echo \u202e 'ä'\t\"ü\"",
		"a {b,c} !d #e\n#f",
		"'".repeat(99),
		"\\",
		"$",
	];
	for (const text of samples)
		assert.equal(
			commandParts(text)
				.map((part) => part.text)
				.join(""),
			text,
		);
	assert.deepEqual(simpleCommands("a 'b c' | d\\ e; f"), [
		["a", "b c"],
		["d e"],
		["f"],
	]);
});

test("tokens of code have their kinds, and are the line", () => {
	const seen = (path, line) =>
		tokensOf(line, languageOf(path))
			.filter(({ kind }) => kind !== null)
			.map(({ kind, text }) => `${kind}:${text}`);
	assert.deepEqual(seen("a.rs", 'let x: &\'a str = "// no"; // yes 1'), [
		"keyword:let",
		'text:"// no"',
		"comment:// yes 1",
	]);
	assert.deepEqual(seen("a.py", "def f(): return 0x1F # 'x'"), [
		"keyword:def",
		"keyword:return",
		"number:0x1F",
		"comment:# 'x'",
	]);
	assert.deepEqual(seen("a.SQL", "SELECT 1 -- one"), [
		"keyword:SELECT",
		"number:1",
		"comment:-- one",
	]);
	assert.deepEqual(seen("a.js", "const a = `b` / 2"), [
		"keyword:const",
		"text:`b`",
		"number:2",
	]);
	for (const path of ["README", "a.png", "a.constructor", "x/.rs/y"])
		assert.equal(languageOf(path), null, path);
	const odd = [
		"",
		'"open',
		"\u202e'x\u0000",
		"`".repeat(300),
		"/*".repeat(100),
		"x".repeat(5000),
		'"\\',
	];
	for (const name of ["a.rs", "a.js", "a.py", "a.go", "a.sh", "a.sql", "a.c"])
		for (const line of odd) {
			const found = tokensOf(line, languageOf(name));
			assert.equal(found.map(({ text }) => text).join(""), line, name);
		}
	const begun = performance.now();
	const language = languageOf("a.rs");
	for (let at = 0; at < 20_000; at += 1)
		tokensOf(`    let value_${at} = compute("text", ${at}); // why`, language);
	assert.ok(performance.now() - begun < 2000);
});
