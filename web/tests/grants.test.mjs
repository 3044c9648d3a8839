// Which first words of a command can be permitted: as in the terminal, by the same vectors. `node --test web/tests/`.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { checkGrant, grantableWords } from '../core/grants.js';
import { hidesWhatRuns, plainWords } from '../core/words.js';

const { plain, other, hides, shows } = JSON.parse(await readFile(new URL('../../tests/vectors/words.json', import.meta.url), 'utf8'));

test('plain commands have their words', () => {
  for (const { command, words } of plain) {
    assert.deepEqual(plainWords(command), words, command);
    assert.deepEqual(grantableWords({ payload: { command } }), words, command);
  }
});

test('anything else has none', () => {
  for (const command of other) {
    assert.equal(plainWords(command), null, JSON.stringify(command));
    assert.throws(() => checkGrant({ match: 'prefix', argv: ['git'] }, { payload: { command } }), { code: 'grantNotPlain' }, JSON.stringify(command));
  }
});

test('some programs hide what runs', () => {
  for (const argv of hides) {
    assert.ok(hidesWhatRuns(argv), argv.join(' '));
    assert.equal(grantableWords({ payload: { argv } }), null);
    assert.throws(() => checkGrant({ match: 'prefix', argv: ['git'] }, { payload: { argv } }), { code: 'grantRunsAnother' }, argv.join(' '));
  }
  for (const argv of shows) assert.ok(!hidesWhatRuns(argv), argv.join(' '));
});
