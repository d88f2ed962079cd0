import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { keyId, sameKey } from '../../../src/plugins/gateway/keys/key-id.ts';

const GATEWAY = new URL('../../../src/plugins/gateway/', import.meta.url);

test('[G19] whatever is presented, what is compared are hashes of one length, and they tell values apart', (t) => {
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('', 'sk-a', 'sk-b', 'k_'.repeat(2_000)),
  );
  const property = fc.property(value, value, (one, two) => {
    t.is(keyId(one).length, keyId(two).length);
    t.is(sameKey(keyId(one), keyId(two)), one.toWellFormed() === two.toWellFormed());
  });
  fc.assert(property);
});

test('[G19] no file of the gateway compares a presented value or the master key in any other way', (t) => {
  const files = readdirSync(GATEWAY, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const shortcut =
    /(?:masterId(?:\(\))?|presented|masterKey)\s*[!=]==|[!=]==\s*(?:\w+\.)?(?:masterId|masterKey)|\.(?:includes|startsWith|indexOf)\((?:masterId|presented)/;
  const found = files.flatMap((file) => {
    const lines = readFileSync(new URL(file, GATEWAY), 'utf8').split('\n');
    return lines.flatMap((line) => (shortcut.test(line) ? [`${file}: ${line.trim()}`] : []));
  });
  // Both are ids that the registry has found already: no value, and none of the caller's choosing.
  const ids = [
    'if (presented !== id) this.#rotated.set(presented, id);',
    'if (stream?.presented !== caller.presented)',
  ];
  t.deepEqual(
    found.filter((line) => !ids.some((known) => line.includes(known))),
    [],
  );
  const comparing = files.filter((file) =>
    readFileSync(new URL(file, GATEWAY), 'utf8').includes('timingSafeEqual('),
  );
  t.deepEqual(comparing, ['keys/key-id.ts']);
});
