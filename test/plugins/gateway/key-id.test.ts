import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { keyIn, removeMisplacedKey } from '../../../src/plugins/gateway/keys/misplaced-keys.ts';
import { keyId, sameKey } from '../../../src/plugins/gateway/keys/virtual-keys.ts';

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
    /(?:masterId(?:\(\))?|presented|valueId|masterKey)\s*[!=]==|[!=]==\s*(?:\w+\.)?(?:masterId|masterKey)|\.(?:includes|startsWith|indexOf)\((?:masterId|presented)/;
  const found = files.flatMap((file) => {
    const lines = readFileSync(new URL(file, GATEWAY), 'utf8').split('\n');
    return lines.flatMap((line) => (shortcut.test(line) ? [`${file}: ${line.trim()}`] : []));
  });
  // Both are ids that the registry has found already: no value, and none of the caller's choosing.
  const ids = [
    'if (valueId !== id) this.#rotated.set(valueId, id);',
    'if (stream?.presented !== key.presented)',
  ];
  t.deepEqual(
    found.filter((line) => !ids.some((known) => line.includes(known))),
    [],
  );
  const comparing = files.filter((file) =>
    readFileSync(new URL(file, GATEWAY), 'utf8').includes('timingSafeEqual('),
  );
  t.deepEqual(comparing, ['keys/virtual-keys.ts']);
});

/** Some signs of a text percent-encoded, once or twice. */
const encodedIn = (text: string): fc.Arbitrary<string> =>
  fc.array(fc.nat(2), { minLength: text.length, maxLength: text.length }).map((often) =>
    [...text]
      .map((sign, at) => {
        const code = sign.charCodeAt(0).toString(16);
        return [sign, `%${code}`, `%25${code.toUpperCase()}`][often[at] ?? 0] ?? sign;
      })
      .join(''),
  );

test('[G9,G25] a key is found wherever it stands in a text, plain or percent-encoded, and odd text is only read', (t) => {
  const key = 'sk-0123456789abcdef+/=';
  const keys = {
    find: (id: string) => (id === keyId(key) ? id : undefined),
    isMaster: (id: string) => id === keyId('the.master.key.of.this.test'),
    isSession: () => false,
  };
  const ask = (headers: Record<string, string>, url = '/wiki/mcp') =>
    removeMisplacedKey({ headers, rawHeaders: Object.entries(headers).flat(), url }, keys);
  const filler = fc.oneof(
    fc.constantFrom(
      '',
      'application/json',
      'text/event-stream',
      'a=b&c=d',
      '%',
      '%zz',
      '%C3',
      'x'.repeat(40),
    ),
    fc.stringMatching(/^[\x20-\x7e]{0,30}$/),
  );
  const place = fc.tuple(
    filler,
    fc.constantFrom(' ', ', ', ';', '"', ' Bearer ', ' k=', '?a=b&k=', '%20', '%3Fa=b%26k=', '%253D'),
    encodedIn(key),
    fc.constantFrom('', ' ', ',', '"', '&a=b', '%26a', '%2526'),
    filler.filter((text) => !/^[^\s,;"&]/.test(text)),
  );
  fc.assert(
    fc.property(place, (parts) => {
      const text = parts.join('');
      t.deepEqual(ask({ 'x-any': text }), { key: 'virtual_key', where: 'header x-any' }, text);
      t.is(keyIn(text, keys), 'virtual_key', text);
    }),
  );
  fc.assert(
    fc.property(fc.oneof(filler, fc.string(), encodedIn('x'.repeat(30))), (text) => {
      t.is(ask({ 'x-any': text, 'x-other': `${text}%` }, `/${text}?%${text}`), undefined);
    }),
  );
  const late = `${'n=1&'.repeat(60)}${'a=12345678901234567890&'.repeat(3)}k=${key}`;
  t.deepEqual(ask({ cookie: late.replaceAll('&', '; ') }), { key: 'virtual_key', where: 'header cookie' });
  t.deepEqual(ask({}, `/wiki/mcp?${late}`), { key: 'virtual_key', where: 'query' });
  t.deepEqual(ask({}, `/${encodeURIComponent(key)}/mcp`), { key: 'virtual_key', where: 'path' });
});

test('[G9,G25] a key is found as a form, a login, a copied line or a URL writes it, whatever signs it has itself', (t) => {
  const places = (key: string): string[] => [
    `Bearer ${key}`,
    `a=b&authorization=Bearer+${encodeURIComponent(key)}`,
    `key=${encodeURIComponent(key)}%0A`,
    `key=%09${encodeURIComponent(encodeURIComponent(key))}%0D%0A`,
    `key=%E2%80%9C${encodeURIComponent(key)}%E2%80%9D`,
    `https://ann:${encodeURIComponent(key)}@host.example/`,
    `https://host.example/#${encodeURIComponent(key)}`,
    `Basic ${Buffer.from(`ann:${key}\n`).toString('base64')}`,
    `Bearer some.token, Basic ${Buffer.from(`:${key}`).toString('base64')}`,
    `login=Basic+${encodeURIComponent(Buffer.from(`ann:${key}`).toString('base64'))}`,
  ];
  for (const key of [
    'virtual.value.of.ann.4711',
    'abc,def;ghi"jkl,mno,pqr,stu',
    'ab:cd%0aef+gh@ij#kl%41mn',
  ]) {
    const keys = {
      find: (id: string) => (id === keyId(key) ? id : undefined),
      isMaster: (id: string) => id === keyId('the.master.key.of.this.test'),
      isSession: () => false,
    };
    for (const text of places(key)) {
      t.is(keyIn(text, keys), 'virtual_key', text);
      const headers = { 'x-any': text };
      t.truthy(removeMisplacedKey({ headers, rawHeaders: ['x-any', text], url: '/' }, keys), text);
      t.deepEqual(headers, {} as typeof headers);
    }
  }
});
