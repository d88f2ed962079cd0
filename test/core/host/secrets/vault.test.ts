import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { openVault } from '../../../../src/core/host/secrets/vault.ts';
import { canonicalJson } from '../../../../src/core/kernel/canonical-json.ts';
import { HoldfastError, isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { tempDir } from '../../../support/temp.ts';

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

test('[R32] the first start makes two keys that only their owner can read, later ones keep them', (t) => {
  const dir = tempDir(t);
  const first = openVault(dir);
  t.is(mode(join(dir, 'secrets')), '700');
  t.deepEqual(readdirSync(join(dir, 'secrets')).sort(), ['fingerprint-key', 'sealing-key']);
  for (const name of ['fingerprint-key', 'sealing-key']) {
    t.is(mode(join(dir, 'secrets', name)), '600');
    t.is(statSync(join(dir, 'secrets', name)).size, 32);
  }
  const second = openVault(dir);
  t.is(second.fingerprint('x'), first.fingerprint('x'));
  t.is(second.open(first.seal('body', 'p'), 'p'), 'body');
});

test('[R32] a fingerprint is fp_ and 32 digits, equal for equal values whatever the order of keys', (t) => {
  const vault = openVault(tempDir(t));
  const fingerprint = vault.fingerprint({ a: 1, b: [{ c: 'x', d: null }] });
  t.regex(fingerprint, /^fp_[0-9a-f]{32}$/);
  t.is(vault.fingerprint({ b: [{ d: null, c: 'x' }], a: 1, e: undefined }), fingerprint);
  t.not(vault.fingerprint({ a: 1, b: [{ c: 'x' }] }), fingerprint);
  t.not(vault.fingerprint('1'), vault.fingerprint(1));
});

test('[R32] another data folder gives other fingerprints, so that a guess cannot be tried elsewhere', (t) => {
  t.not(openVault(tempDir(t)).fingerprint('hunter2'), openVault(tempDir(t)).fingerprint('hunter2'));
});

test('[C13] hosts that share a key make the same fingerprints; what one sealed stays its own, before and after', (t) => {
  const shared = Buffer.alloc(32, 'shared');
  const [one, other] = [tempDir(t), tempDir(t)];
  const before = openVault(one).seal('body', 'p');
  const joined = openVault(one, shared);
  t.is(joined.fingerprint('x'), openVault(other, shared).fingerprint('x'));
  t.not(joined.fingerprint('x'), openVault(other, Buffer.alloc(32, 'another')).fingerprint('x'));
  t.is(joined.open(before, 'p'), 'body');
  t.throws(() => openVault(other, shared).open(joined.seal('body', 'p'), 'p'), { code: 'HF_SECRET_SEALED' });
  const left = openVault(one);
  t.not(left.fingerprint('x'), joined.fingerprint('x'));
  t.is(left.open(joined.seal('later', 'p'), 'p'), 'later');
});

test('one text stands for one JSON value', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      t.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
      t.is(canonicalJson(JSON.parse(text)), text);
    }),
  );
  t.is(canonicalJson(JSON.parse('{"b":1,"__proto__":{"z":1,"y":2}}')), '{"__proto__":{"y":2,"z":1},"b":1}');
});

test('what is not JSON has no fingerprint', (t) => {
  const vault = openVault(tempDir(t));
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (const value of [undefined, () => 1, Symbol('x'), 1n, cycle]) {
    t.throws(() => vault.fingerprint(value), { instanceOf: TypeError });
  }
});

test('[R32] whatever is sealed opens again, and shows nothing of itself', (t) => {
  const vault = openVault(tempDir(t));
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 0 }), fc.string(), (plain, purpose) => {
      // A lone surrogate has no UTF-8; what is sealed is JSON text, which has none.
      fc.pre(plain.isWellFormed());
      const sealed = vault.seal(plain, purpose);
      t.is(sealed.length, Buffer.byteLength(plain) + 29);
      t.is(vault.open(sealed, purpose), plain);
    }),
  );
  const sealed = vault.seal('hunter2'.repeat(9), 'p');
  t.false(Buffer.from(sealed).toString('latin1').includes('hunter2'));
  t.notDeepEqual(vault.seal('same', 'p'), vault.seal('same', 'p'));
});

test('[R32] a change of any bit, another purpose or another key does not open', (t) => {
  const vault = openVault(tempDir(t));
  const sealed = vault.seal('{"psk":"hunter2"}', 'router.config');
  const refused = (bytes: Uint8Array, purpose = 'router.config', by = vault) => {
    const error = t.throws(() => by.open(bytes, purpose), { instanceOf: HoldfastError });
    t.is(error?.code, 'HF_SECRET_SEALED');
    t.false(String(error?.stack).includes('hunter2'));
  };
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Uint8Array.from(sealed);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    refused(changed);
  }
  for (let length = 0; length < sealed.length; length += 1) refused(sealed.subarray(0, length));
  refused(Buffer.concat([sealed, Buffer.of(0)]));
  refused(sealed, 'router.other');
  refused(sealed, 'router.config', openVault(tempDir(t)));
  t.is(vault.open(sealed, 'router.config'), '{"psk":"hunter2"}');
});

test('a sealed body may lie anywhere in a larger buffer', (t) => {
  const vault = openVault(tempDir(t));
  const sealed = vault.seal('body', 'p');
  const around = new Uint8Array(sealed.length + 20);
  around.set(sealed, 7);
  t.is(vault.open(around.subarray(7, 7 + sealed.length), 'p'), 'body');
});

test('[R32] a key that others may read is refused with the command that fixes it', (t) => {
  for (const [bits, shown] of [
    [0o640, '0640'],
    [0o604, '0604'],
    [0o620, '0620'],
  ] as const) {
    const dir = tempDir(t);
    openVault(dir);
    const file = join(dir, 'secrets', 'sealing-key');
    chmodSync(file, bits);
    const error = t.throws(() => openVault(dir), { instanceOf: HoldfastError });
    t.is(error?.code, 'HF_CONFIG_SECRET_MODE');
    t.true(error?.what.includes(shown));
    t.true(error?.remedy.includes(`chmod 600 ${file}`));
  }
});

test('[R32] a folder in which others could swap the keys is refused', (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'secrets'));
  chmodSync(join(dir, 'secrets'), 0o770);
  t.true(
    isCoded(
      t.throws(() => openVault(dir)),
      'HF_CONFIG_SECRET_FOLDER',
    ),
  );
});

test('[R32] a damaged key is refused, never replaced', (t) => {
  for (const content of ['', 'short', 'x'.repeat(33)]) {
    const dir = tempDir(t);
    openVault(dir);
    const file = join(dir, 'secrets', 'fingerprint-key');
    writeFileSync(file, content);
    t.true(
      isCoded(
        t.throws(() => openVault(dir)),
        'HF_CONFIG_SECRET_INVALID',
      ),
    );
    t.is(readFileSync(file, 'utf8'), content);
  }
});

test('[R32] a key that is a link to nowhere is not made anew behind it', (t) => {
  const dir = tempDir(t);
  openVault(dir);
  const file = join(dir, 'secrets', 'sealing-key');
  unlinkSync(file);
  symlinkSync(join(dir, 'elsewhere'), file);
  t.true(
    isCoded(
      t.throws(() => openVault(dir)),
      'HF_CONFIG_SECRET_MISSING',
    ),
  );
});

test('[R32] keys do not show when a vault is printed', (t) => {
  const dir = tempDir(t);
  const vault = openVault(dir);
  const hex = readFileSync(join(dir, 'secrets', 'sealing-key')).toString('hex');
  const shown = inspect(vault, { depth: 9, showHidden: true }) + JSON.stringify(vault);
  t.false(shown.includes(hex.slice(0, 8)));
});

test('of many processes that start at once, all use the same keys', async (t) => {
  const dir = tempDir(t);
  const module = new URL('../../../../src/core/host/secrets/vault.ts', import.meta.url).href;
  const program = `
    import { openVault } from ${JSON.stringify(module)};
    const start = Number(process.argv[1]);
    while (Date.now() < start);
    process.stdout.write(openVault(process.argv[2]).fingerprint('x'));
  `;
  const start = Date.now() + 700;
  const fingerprints = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program, String(start), dir]);
      let out = '';
      child.stdout.on('data', (chunk) => {
        out += chunk;
      });
      await once(child, 'close');
      return out;
    }),
  );
  t.is(new Set(fingerprints).size, 1);
  t.is(fingerprints[0], openVault(dir).fingerprint('x'));
  t.deepEqual(readdirSync(join(dir, 'secrets')).sort(), ['fingerprint-key', 'sealing-key']);
});

test('[R32] keys are not made anew beside what only the lost ones open', (t) => {
  const dir = tempDir(t);
  openVault(dir);
  writeFileSync(join(dir, 'log.db'), '');
  rmSync(join(dir, 'secrets', 'sealing-key'));
  t.throws(() => openVault(dir), { code: 'HF_CONFIG_SECRET_INVALID', message: /sealing-key.*gone.*log\.db/ });
});
