import test from 'ava';
import fc from 'fast-check';
import { holdsSecret, withoutSecrets } from '../../../../src/core/host/logging/mask-secrets.ts';
import { runs } from '../../../support/runs.ts';

const TOKEN = 'Zk4vQ9tXw2LmB7pRc8Yd';
/** Without a digit or a capital. */
const LETTERS = 'qwzkejrhtlvaksdjfhgbmx';
const WORDS = 'holdfast-alertmanager-main';

const masked: readonly [text: string, secret: string, shown: string][] = [
  [`no key ${TOKEN} fits`, TOKEN, 'no key [redacted] fits'],
  ['no key Zk4vQ9tXw2\n  LmB7pRc8Yd fits', TOKEN, 'no key [redacted] fits'],
  ['{"error":"no key Zk4\\nvQ9tXw2LmB7p\\r\\n\\tRc8Yd"}', TOKEN, '{"error":"no key [redacted]"}'],
  ['begins with Zk4vQ9tX\u2026', TOKEN, 'begins with [redacted]\u2026'],
  ['Zk4vQ9tXw2...LmB7pRc8Yd', TOKEN, '[redacted]...[redacted]'],
  ['the middle 9tXw2LmB7pR of it', TOKEN, 'the middle [redacted] of it'],
  ['begins with qwzkejrh, ends with sdjfhgbmx', LETTERS, 'begins with [redacted], ends with [redacted]'],
  ['it is alertmanager-main', WORDS, 'it is [redacted]'],
];
for (const [text, secret, shown] of masked) {
  test(`[R32] no piece of a secret is shown: ${JSON.stringify(text)}`, (t) => {
    t.is(withoutSecrets(text, [secret]), shown);
    t.true(holdsSecret(text, [secret]));
  });
}

for (const [text, secret] of [
  ['Zk4vQ9t is too short to be of use', TOKEN],
  ['the alertmanager of holdfast refuses it', WORDS],
  ['alertmanagers', WORDS],
  ['nothing of it', TOKEN],
  ['short', 'abc'],
] as const) {
  test(`[R32] ordinary words stay as they are: ${text}`, (t) => {
    t.is(withoutSecrets(text, [secret]), text);
    t.false(holdsSecret(text, [secret]));
  });
}

test('[R32] a random secret that is cut anywhere shows no eight characters of itself', (t) => {
  const secret = fc.stringMatching(/^[A-Za-z0-9_]{20,64}$/).filter((text) => /\d/.test(text));
  fc.assert(
    fc.property(secret, fc.nat(64), fc.constantFrom(' ', '\n', '...', '\u2026', '**'), (value, at, cut) => {
      const shown = withoutSecrets(`said ${value.slice(0, at)}${cut}${value.slice(at)}!`, [value], '#');
      for (let start = 0; start + 8 <= value.length; start += 1) {
        const piece = value.slice(start, start + 8);
        if (/\d|[a-z][A-Z]/.test(piece) && shown.includes(piece)) return false;
      }
      return true;
    }),
    { numRuns: runs(500) },
  );
  t.pass();
});

test('[R32] a secret is not shown by escapes of JSON, URLs or HTML either', (t) => {
  const secret = 'Zq9/canary+of"the/Upstream=77';
  const json = (text: string) => JSON.stringify(text).slice(1, -1);
  const each = (write: (code: string) => string) =>
    [...secret].map((one) => write(one.charCodeAt(0).toString(16))).join('');
  const forms = [
    json(secret).replaceAll('/', '\\/'),
    json(json(secret).replaceAll('/', '\\/')),
    each((hex) => `\\u00${hex}`),
    each((hex) => `\\u00${hex.toUpperCase()}`),
    json(each((hex) => `\\u00${hex}`)),
    encodeURIComponent(secret),
    encodeURIComponent(encodeURIComponent(secret)),
    each((hex) => `%${hex}`),
    each((hex) => `&#x${hex};`),
    [...secret].map((one) => `&#${one.charCodeAt(0)};`).join(''),
    secret.replaceAll('/', '&#x2F;'),
  ];
  for (const form of forms) t.is(withoutSecrets(`before ${form} after`, [secret]), 'before [redacted] after');
  const hostile = `${'\\'.repeat(50_000)}${'\\n'.repeat(50_000)}${'%25'.repeat(50_000)}${'&#0'.repeat(50_000)}`;
  t.is(withoutSecrets(hostile, ['n"/nt%&r7']), hostile, 'and looking for them takes no time that grows');
});
