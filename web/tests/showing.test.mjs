// What is shown is complete: `node --test web/tests/`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDiff } from '../core/diff.js';
import { qrCode } from '../ui/qr.js';
import { patchRows } from '../views/patchrows.js';

const PATCH = `From: somebody
diff --git a/a.txt b/a.txt
index 1111111..2222222 100644
--- a/a.txt
+++ b/a.txt
@@ -1,22 +1,23 @@ section
${Array.from({ length: 20 }, (_, line) => ` unchanged ${line}`).join('\n')}
-old one
-old two
+new one
+new two
+new ${'long '.repeat(1000)}end
\\ No newline at end of file
stray line
diff --git a/run.sh b/go.sh
old mode 100644
new mode 100755
similarity index 100%
rename from run.sh
rename to go.sh
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
`;

/** The texts of all rows, in order, with pieces of long lines put together. */
function shown(rows) {
  const texts = [];
  const add = (cell) => {
    if (cell && cell.from > 0) texts[texts.length - 1] += cell.text;
    else if (cell) texts.push(cell.text);
  };
  for (const row of rows) {
    if (row.type === 'line') add(row.cell);
    if (row.type === 'pair') {
      if (row.left?.kind !== 'context') add(row.left);
      add(row.right);
    }
    if (row.type === 'text') texts.push(row.text);
  }
  return texts;
}

/** Opens every fold, as a person would. */
function unfolded(diff, isSplit) {
  const arrangement = { isSplit, closed: new Set(), unfolded: new Set() };
  for (const row of patchRows(diff, arrangement)) if (row.type === 'fold') arrangement.unfolded.add(row.key);
  return patchRows(diff, arrangement);
}

test('every line of a patch is shown, in both layouts', () => {
  const lines = PATCH.split('\n').filter((line) => /unchanged|^[-+](old|new)|^\\|stray|mode|similarity|^From|^Binary/.test(line));
  const expected = lines.map((line) => (/^[-+ ](unchanged|old|new )/.test(line) ? line.slice(1) : line));
  for (const isSplit of [false, true]) {
    const found = shown(unfolded(parseDiff(PATCH), isSplit));
    assert.deepEqual([...found].sort(), [...expected].sort(), isSplit ? 'side by side' : 'unified');
  }
});

test('only unchanged lines are folded, and the fold says how many', () => {
  const rows = patchRows(parseDiff(PATCH), { isSplit: false, closed: new Set(), unfolded: new Set() });
  const folds = rows.filter((row) => row.type === 'fold');
  const visible = shown(rows).filter((text) => text.startsWith('unchanged')).length;
  assert.equal(folds.length, 1);
  assert.equal(folds[0].count + visible, 20);
  assert.ok(shown(rows).includes('old one') && shown(rows).includes('new two'));
});

test('a closed file keeps its heading', () => {
  const rows = patchRows(parseDiff(PATCH), { isSplit: false, closed: new Set([0, 1, 2]), unfolded: new Set() });
  assert.deepEqual(rows.filter((row) => row.type === 'file').map((row) => row.path), ['a.txt', 'go.sh', 'logo.png']);
});

test('a line that was changed in part says which part', () => {
  const rows = patchRows(parseDiff('--- a/x\n+++ b/x\n@@ -1 +1 @@\n-total(price, 0)\n+total(price * 2, 0)\n'), { isSplit: false, closed: new Set(), unfolded: new Set() });
  const cells = rows.filter((row) => row.type === 'line').map((row) => row.cell);
  assert.equal(cells[1].text.slice(...cells[1].changed), ' * 2');
});

test('a QR code that readers have read', () => {
  const known = [
    '1fc857f', '105bb41', '174e15d', '175ac5d', '174515d', '1054e41', '1fd557f', '1500', '1f7d8aa', '9988a2', '2cbf2b',
    '1f1e761', 'ccbad7', '169d12a', '13c1a7b', '15177f1', '12f89f4', '16b18', '1fd0d57', '1041518', '1757ff4', '17526df',
    '175820d', '10551b9', '1fd5cff',
  ];
  const code = qrCode('https://example.org/#/pair');
  const rows = Array.from({ length: code.size }, (_, row) =>
    BigInt(`0b${code.dark.subarray(row * code.size, (row + 1) * code.size).join('')}`).toString(16));
  assert.deepEqual(rows, known);
  assert.equal(qrCode('x'.repeat(2953)).size, 177);
  assert.equal(qrCode('x'.repeat(2954)), null);
});
