import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parseSecretReference, secretReference } from '../../../src/core/host/secrets/secret-reference.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { folderStore } from '../../../src/plugins/secrets/index.ts';
import { tempDir } from '../../support/temp.ts';

const { signal } = new AbortController();

test('[G19] a secret is a file of mode 0600, read as it is at the moment', async (t) => {
  const folder = tempDir(t);
  const file = join(folder, 'mcp', 'library_docs', 'token');
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, 'first\n', { mode: 0o600 });
  const store = folderStore(folder);
  t.is(await store.read('mcp/library_docs', 'token', signal), 'first');
  writeFileSync(file, 'second\n');
  t.is(await store.read('mcp/library_docs', 'token', signal), 'second');
  chmodSync(file, 0o640);
  const open = await t.throwsAsync(store.read('mcp/library_docs', 'token', signal));
  t.true(isCoded(open, 'HF_CONFIG_SECRET_MODE'));
  const missing = await t.throwsAsync(store.read('mcp/library_docs', 'other', signal));
  t.true(isCoded(missing, 'HF_CONFIG_SECRET_MISSING'));
});

test('[G19] a reference names a path and a property, and never leaves the store', (t) => {
  t.deepEqual(parseSecretReference(secretReference.parse('mcp/library_docs#token')), {
    path: 'mcp/library_docs',
    property: 'token',
  });
  for (const wrong of [
    'token',
    '#token',
    'a#',
    'a#b#c',
    '../a#b',
    'a/../b#c',
    '/etc#shadow',
    'a//b#c',
    'a#../b',
    '.a#b',
    'a b#c',
  ]) {
    t.false(secretReference.safeParse(wrong).success, wrong);
  }
});
