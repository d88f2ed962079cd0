import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { maskText } from '../../../../src/core/host/logging/mask-text.ts';
import { PAGE, redact } from '../../../../src/core/host/logging/redact.ts';
import { declareSecretFields } from '../../../../src/core/host/logging/secret-fields.ts';
import { RouterError } from '../../../../src/plugins/router/errors.ts';
import { secretFields } from '../../../../src/plugins/router/secret-fields.ts';
import { runs } from '../../../support/runs.ts';
import { watchWork } from '../../../support/turns.ts';

// As the plugins declare them that have such documents and headers.
declareSecretFields(secretFields);
declareSecretFields({ names: ['mcpsessionid'] });

const CANARY = 'C4naryC4naryC4nary';

/** Every way in which a secret is known to stand in a value; the parameter is the secret. */
const hidingPlaces: readonly ((secret: string) => unknown)[] = [
  ...[
    'password',
    'PASSWORD',
    'sae_password',
    'wpa_passphrase',
    'wpaPsk',
    'psk',
    'privateKey',
    'private-key',
    'presharedKey',
    'token',
    'push_token',
    'accessToken',
    'authorization',
    'Proxy-Authorization',
    'x-gateway-api-key',
    'apiKey',
    'client_secret',
    'secret',
    'Cookie',
    'set-cookie',
    'meshKey',
    'masterKey',
    'virtual_key',
    'mcp-session-id',
  ].map((name) => (secret: string) => ({ [name]: secret })),
  (secret) => ({ tokens: [secret] }),
  (secret) => ({ password: { nested: [secret] } }),
  (secret) => ({ pppoe: { ppp0: { username: secret, password: 'x' } } }),
  (secret) => ({ pppoe: { ppp0: { username: secret } } }),
  (secret) => ({ wlan0: { wpaSupplicant: { networks: [{ ssid: secret }] } } }),
  (secret) => ({ wpaSupplicant: secret }),
  (secret) => ({ hostapd: { wlan1: { params: { wep_key0: secret, wpa_pass: secret } } } }),
  (secret) => ({ apc: { assets_template: { ap: { wifiNetworks: { w: { key: secret } } } } } }),
  (secret) => ({ wifiNetworks: { w: { key: secret } } }),
  (secret) => ({ ssid: 'home', key: secret }),
  (secret) => ({ name: 'authorization', value: secret }),
  (secret) => ({ key: 'x-gateway-api-key', value: { stringValue: secret } }),
  (secret) => ['authorization', secret],
  (secret) => ['--push-token', secret],
  (secret) => new Map([['password', secret]]),
  (secret) => new Set([`Bearer ${secret}`]),
  (secret) => ({ toJSON: () => ({ psk: secret }) }),
  (secret) => new Error(`sent Bearer ${secret}`),
  (secret) => new Error('outer', { cause: new Error(`password=${secret}`) }),
  (secret) => new AggregateError([new Error(`token=${secret}`)], 'several'),
  (secret) => `Bearer ${secret}`,
  (secret) => `authorization: ${secret} and more`,
  (secret) => `authorization: a}${secret}`,
  (secret) => `{ token: a}}${secret}, b: {} }`,
  (secret) => `token: {a}b}${secret}}`,
  (secret) => `GET /api/push/${secret}?status=up`,
  (secret) => `http://host/api/push/${secret}`,
  (secret) => `https://user:${secret}@host/path`,
  (secret) => `/key/info?key=${secret}`,
  (secret) => `GET /mcp?a=1&k=sk%2D${secret}%2zz`,
  (secret) => `sent %62earer%20${secret} to %`,
  (secret) => `/login?next=${encodeURIComponent(encodeURIComponent(`/key/info?key=${secret}`))}`,
  (secret) => `--token=${secret}`,
  (secret) => `psk="${secret}"`,
  (secret) => `wpa_passphrase: ${secret}9`,
  (secret) => `sk-${secret}`,
  (secret) => `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----`,
  (secret) => `-----BEGIN PRIVATE KEY-----\n${secret}`,
  (secret) => `${secret}${'A'.repeat(43 - secret.length)}=`,
  (secret) => `AGE-SECRET-KEY-1${secret}`,
  (secret) => JSON.stringify({ psk: secret, apc: { key: secret } }),
  (secret) => JSON.stringify({ pppoe: { ppp0: { username: secret } } }),
  (secret) => ({ body: ` [${JSON.stringify({ wpaSupplicant: { ssid: secret } })}]` }),
  (secret) => JSON.stringify({ body: JSON.stringify({ password: `"${secret}` }) }),
  (secret) => `body was ${JSON.stringify({ privateKey: `"${secret}` })}`,
  (secret) => `twice ${JSON.stringify(JSON.stringify({ privateKey: `\\"${secret}` }))}`,
  (secret) => ({ [`token=${secret}`]: 1 }),
  (secret) => ({ plain: Buffer.from(secret) }),
];

const json = fc.jsonValue({ maxDepth: 3 });

/** A random value with a hidden secret somewhere inside. */
const haunted = fc
  .tuple(
    fc.constantFrom(...hidingPlaces),
    fc.array(fc.tuple(fc.boolean(), fc.string(), json), { maxLength: 6 }),
  )
  .map(([hide, layers]) => {
    let value: unknown = hide(CANARY);
    for (const [inArray, key, other] of layers) {
      value = inArray ? [other, value, other] : { before: other, [key]: value, after: other };
    }
    return value;
  });

test('[R32] what kind of key stood in a header is no secret, and its name alone stays readable', (t) => {
  for (const kind of ['bearer', 'virtual_key', 'master_key']) {
    t.deepEqual(redact({ authorization: kind }), { authorization: kind });
  }
  t.deepEqual(redact({ authorization: 'bearer x', token: 'bearer' }), {
    authorization: '[redacted]',
    token: '[redacted]',
  });
});

test('[R32] a secret in any known place of any object never comes out', (t) => {
  fc.assert(
    fc.property(haunted, (value) => !JSON.stringify(redact(value)).includes(CANARY)),
    { numRuns: runs(2_000) },
  );
  t.pass();
});

for (const [index, hide] of hidingPlaces.entries()) {
  const shown = JSON.stringify(hide('…')) ?? '';
  test(`[R32] hiding place ${index} is known: ${shown}`, (t) => {
    t.false(JSON.stringify(redact(hide(CANARY))).includes(CANARY));
    t.false(JSON.stringify(redact([{ deep: hide(CANARY) }])).includes(CANARY));
  });
}

test('[R32] what was redacted once stays as it is', (t) => {
  fc.assert(
    fc.property(haunted, (value) => {
      const once = redact(value);
      t.deepEqual(redact(once), once);
    }),
    { numRuns: runs(300) },
  );
});

test('[R32] a brace that ends a value, or closes what it is in, stays', (t) => {
  for (const [text, masked] of [
    ['{token: a1b2c3}', '{token: [redacted]}'],
    ['{ a: { token: a1b2c3}, b: 1 }', '{ a: { token: [redacted]}, b: 1 }'],
    ['{a: {token: a1}b2}}', '{a: {token: [redacted]}}'],
    ['{authorization: a1 b2}', '{authorization: [redacted]}'],
  ] as const) {
    t.is(redact(text), masked);
  }
});

test('[R32] what is no secret is left as it is', (t) => {
  const harmless = {
    ncid: '4be19c02d7a83f5516e1795200000123',
    actor: 'reconciler.leg/eth1.20',
    key: 'eth1.20',
    username: 'operator',
    token: null,
    psk: true,
    usage: { input_tokens: 5, maxTokens: 7 },
    tokenFile: '/run/secrets/push',
    token_endpoint: 'https://id.example/token',
    text: 'This surface needs a bearer token. ncid not match; option token: required',
    challenge: 'Bearer resource_metadata="https://gw.example/.well-known"',
    route: '/api/push/:token',
    at: '2026-11-20T23:48:36.304Z',
    url: 'http://127.0.0.1:8837/v1/config/active',
    list: [1, 2.5, 'three', false, null],
    fingerprint: 'fp_0123456789abcdef0123456789abcdef',
    '': 'empty name',
  };
  t.deepEqual(redact(harmless), { ...harmless, route: '/api/push/[redacted]' });
});

test('[R32] help texts come out as they are: a placeholder is no secret, and what only begins as one is', (t) => {
  const folder = new URL('../../../../docs/reference/', import.meta.url);
  const pages = readdirSync(folder)
    .filter((name) => name.endsWith('.md') && name !== 'public-interface.md') // declarations are no help
    .flatMap((name) => readFileSync(new URL(name, folder), 'utf8').split('\n'));
  t.true(pages.length > 500);
  for (const text of [
    ...pages,
    'Send the raw key without `Bearer`: OTEL_EXPORTER_OTLP_HEADERS="authorization=<key>".',
    'Put the token alone into it; the monitor shows it in its push URL, after /api/push/.',
    'this is not the URL of a Redis: redis://[user:password@]host[:port]',
    'GET <base>/api/push/<token>?status=up',
    'Send `Authorization: Bearer <key>`, not `Authorization: Bearer` alone.',
    '`/key/info?key=` puts the key into logs; ?key=<key> too',
    'HOLDFAST_VIRTUAL_KEY="$(cat desk.key)" claude',
    `--header 'x-gateway-api-key: Bearer \${HOLDFAST_VIRTUAL_KEY}'`,
    'The password: {reason}.',
  ]) {
    t.is(maskText(text), text);
    t.is(redact(text), text);
  }
  for (const secret of ['<key>CANARY', '$(A)CANARY', '$CANARY', '$(CANARY', '…CANARY', '.CANARY']) {
    for (const text of [
      `token=${secret}`,
      `psk="${secret} x"`,
      `token: ${secret}`,
      `authorization: Bearer ${secret}`,
      `/api/push/${secret}`,
      `?key=${secret}`,
    ]) {
      t.notRegex(maskText(text), /CANARY/, text);
    }
  }
  t.notRegex(maskText('psk="<a> CANARY"'), /CANARY/);
});

test('[R32] a secret under its percent-encoding is one, and other text keeps its own', (t) => {
  const every = (text: string) => text.replace(/./g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  const key = 'sk-CANARY-abcdefgh';
  for (const text of [
    every(key),
    every(every(key)),
    encodeURIComponent(`?k=${key}`),
    `%zz%C3%28${every(key)}%`,
    `?a=%0A${key}%0A`,
    `%E2%80%9C${every(key)}%E2%80%9D`,
    `?a=%250D%250A${every(every(key))}`,
    '?a=Bearer+CANARY-abcdefgh',
    '?a=Basic+Q0FOQVJZOmFiYw==CANARY',
  ]) {
    t.notRegex(String(redact(text)), /CANARY-|%43|Q0FO/, text);
  }
  t.is(redact(`a?k=${every(key)}&b=c`), 'a?k=[redacted]&b=c');
  for (const text of ['20 % of it', '/a%2Fb?c=%20d', '%', '%zz', '%C3%BC=%E0%A4%A', '%0A=%09', '100%25']) {
    t.is(redact(text), text);
  }
});

test('[R32] the example config comes out without its secrets and otherwise unchanged', (t) => {
  const file = new URL('../../../fixtures/network-config.json', import.meta.url);
  const config = JSON.parse(readFileSync(file, 'utf8'));
  const page = JSON.stringify(redact(config, PAGE));
  t.notRegex(page, /not-a-secret|PRIVAT|PRESHARED/);
  t.deepEqual((redact(config, PAGE) as any).interface.vlan, config.interface.vlan);
  t.deepEqual((redact(config, PAGE) as any).dhcp6, config.dhcp6);
});

test('errors show code, what, remedy and a stack, and their causes', (t) => {
  const error = new RouterError(
    'HF_ROUTER_UNREACHABLE',
    { reason: 'token=abc' },
    { cause: new Error('psk=abc') },
  );
  const shown = redact(error) as Record<string, any>;
  t.like(shown, {
    code: 'HF_ROUTER_UNREACHABLE',
    what: 'The router API gave no usable answer: token=[redacted]',
  });
  t.true(shown.remedy.includes('HOLDFAST_ROUTER_URL'));
  t.regex(shown.stack, /redact\.test\.ts/);
  t.is(shown.cause.message, 'psk=[redacted]');
});

test('cycles, getters that throw and proxies come out as notes', (t) => {
  const cycle: Record<string, unknown> = { a: 1 };
  cycle.self = cycle;
  t.deepEqual(redact(cycle), { a: 1, self: '[circular]' });
  const mined = Object.defineProperty({}, 'x', {
    enumerable: true,
    get() {
      throw new Error('no');
    },
  });
  t.is(redact(mined), '[unreadable]');
  const proxy = new Proxy(
    {},
    {
      ownKeys() {
        throw new Error('no');
      },
    },
  );
  t.deepEqual(redact({ proxy }), { proxy: '[unreadable]' });
  const shared = { b: 1 };
  t.deepEqual(redact([shared, shared]), [shared, shared]);
});

test('a key named __proto__ stays a key', (t) => {
  const value = JSON.parse('{"__proto__":{"password":"x"},"a":1}');
  const shown = redact(value);
  t.is(JSON.stringify(shown), '{"__proto__":{"password":"[redacted]"},"a":1}');
  t.is(Object.getPrototypeOf(shown), Object.prototype);
});

test('what is not JSON is told in JSON', (t) => {
  t.deepEqual(
    redact({
      n: Number.NaN,
      big: 2n,
      f: () => 1,
      u: undefined,
      d: new Date(0),
      bytes: new Uint8Array(3),
      s: Symbol('x'),
    }),
    { n: 'NaN', big: '2', d: '1970-01-01T00:00:00.000Z', bytes: '[3 bytes]' },
  );
  t.is(redact(undefined), null);
});

test('[R32] a cut never leaves part of a secret behind', (t) => {
  const key = `${'K'.repeat(43)}=`;
  for (let lead = 8_100; lead < 8_800; lead += 13) {
    const shown = redact(`${'x '.repeat(lead / 2)} ${key} tail`) as string;
    t.false(shown.includes('KKKK'), `lead ${lead}`);
    t.true(shown.length < 8_300);
  }
});

test('[R32] a cut behind many masked secrets leaves no part of one behind either', (t) => {
  const key = `${'K'.repeat(43)}=`;
  for (let lead = 4_100; lead < 4_260; lead += 2) {
    const shown = redact(`${`${key} `.repeat(100)}${'x '.repeat(lead / 2)}${key} tail`) as string;
    t.false(shown.includes('KKKK'), `lead ${lead}`);
  }
});

test('endless values are cut in bounded time', (t) => {
  let deep: unknown = 'x';
  for (let level = 0; level < 100_000; level += 1) deep = { deep };
  const wide = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`k${index}`, index]));
  const shared = Array.from({ length: 30 }).reduce<unknown>((inner) => [inner, inner, inner], 'x');
  const long = Array.from({ length: 1_000_000 }, () => 'text'.repeat(100));
  const work = watchWork();
  const lengths = [deep, wide, shared, long].map((value) => JSON.stringify(redact(value)).length);
  const ms = work.ms();
  t.log(`${ms} ms`);
  t.true(ms < 10_000, 'all of it would take minutes');
  t.true(Math.max(...lengths) < 1_000_000);
});

test('no text makes a pattern run away', (t) => {
  const hostile = [
    'token',
    'bearer ',
    '"token":"',
    'token\\"\\":',
    'a-',
    '://',
    'eyJ',
    '-----BEGIN A-----',
    'A',
    '\\',
    '=',
    ': ',
    '%41 ',
    '%2541',
    '%0A',
    'bearer+',
    'basic+',
    'token=<a',
    'token="$(a',
    'authorization: ',
  ];
  const work = watchWork();
  for (const piece of hostile) redact(piece.repeat(100_000 / piece.length));
  const ms = work.ms();
  t.log(`${ms} ms`);
  t.true(ms < 10_000);
});

test('[R32] a key is masked behind an underscore, too, and a word that ends in sk is none', (t) => {
  t.is(redact('note key_sk-0123456789abcdef'), 'note key_[redacted]');
  t.is(redact('the task-0123456789abcdef'), 'the task-0123456789abcdef');
});
