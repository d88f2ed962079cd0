import test from 'ava';
import fc from 'fast-check';
import { PAGE, redact } from '../../../src/core/host/logging/redact.ts';
import { declareSecretFields } from '../../../src/core/host/logging/secret-fields.ts';
import { leavesOf } from '../../../src/plugins/router/commands/leaves.ts';
import { NETWORK_CONFIG, secretFields } from '../../../src/plugins/router/secret-fields.ts';

declareSecretFields(secretFields);

/** Words of names that hold a secret, wherever the config has them. */
const SECRET = [
  'pass',
  'ppp pass',
  'pre shared',
  'pre shared key',
  'preshared',
  'pwd',
  'user pwd',
  'admin passwd',
  'passcode',
  'passphrase hex',
  'password 2',
  'password hash',
  'psk',
  'sae psk',
  'wpa key',
  'wpa 2 key',
  'wifi key',
  'radius key',
  'radius secret',
  'shared secret',
  'auth token',
  'token value',
  'snmp community',
  'ro community',
  'rw community',
  'private key',
  'priv key',
  'key material',
  'encryption key',
  'ike key',
  'pmk',
  'totp',
  'credential',
  'client secret',
];

/** Words of names that are ordinary facts. */
const ORDINARY = [
  'keyboard',
  'passive',
  'passthrough',
  'bypass',
  'compass',
  'pass count',
  'password policy',
  'pass through',
  'token bucket size',
  'tokens per second',
  'public key',
  'key id',
  'key mgmt',
  'primary key',
  'sort key',
  'secretary',
  'community',
  'community name',
  'pinned',
  'ping',
  'pin count',
  'mapping',
  'hotkey',
  'monkey',
  'wpa',
  'radius',
  'radius server',
  'snmp port',
  'ppp mtu',
  'psk rotation days',
  'credential source',
];

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
const spellings: readonly ((words: readonly string[]) => string)[] = [
  (words) => words.map((word, at) => (at === 0 ? word : capital(word))).join(''),
  (words) => words.map(capital).join(''),
  (words) => words.join('_'),
  (words) => words.join('-'),
  (words) => words.join('.'),
  (words) => words.join('_').toUpperCase(),
];
const spelled = (names: readonly string[]) =>
  fc
    .tuple(fc.constantFrom(...names), fc.constantFrom(...spellings))
    .map(([name, spell]) => spell(name.split(' ')));

/** A part that no schema knows, with a field of this name somewhere in it. */
const within = (path: readonly string[], name: string, value: unknown): object =>
  path.reduceRight<object>((inner, key) => ({ [key]: inner, beside: [inner] }), { [name]: value });

const path = fc.array(
  fc.constantFrom('extras', 'vendor', 'ppp', 'pppoe', 'apc', 'hostapd', 'list', 'radius'),
  {
    maxLength: 4,
  },
);
const value = fc.oneof(
  fc.stringMatching(/^canary[a-z0-9]{8}$/),
  fc.integer({ min: 10_000_000 }),
  fc.array(fc.stringMatching(/^canary[a-z0-9]{8}$/), { minLength: 1, maxLength: 3 }),
);

test('[R32] a secret in a part of the config that no schema knows is known by the words of its name, however they are spelled', (t) => {
  fc.assert(
    fc.property(path, spelled(SECRET), value, (where, name, secret) => {
      const config = within(where, name, secret);
      const shown = JSON.stringify(redact(config, PAGE, NETWORK_CONFIG));
      for (const one of [secret].flat()) if (shown.includes(String(one))) t.fail(`${name} in ${shown}`);
      const known = leavesOf(config).filter((leaf) => [secret].flat().includes(leaf.value as string));
      if (!known.every((leaf) => leaf.secret)) t.fail(`${name} is no secret of a difference`);
    }),
  );
  t.pass();
});

test('[R32] names that only begin, or look, like those of secrets are ordinary facts and stay', (t) => {
  fc.assert(
    fc.property(path, spelled(ORDINARY), fc.stringMatching(/^fact[a-z0-9]{8}$/), (where, name, fact) => {
      const shown = JSON.stringify(redact(within(where, name, fact), PAGE, NETWORK_CONFIG));
      if (!shown.includes(fact)) t.fail(`${name} in ${shown}`);
    }),
  );
  t.pass();
});

test('[R32] the communities of SNMP are secrets in its part, and keys in those of logins', (t) => {
  const config = {
    extras: { snmp: { community: 'canary1', v3: { communities: ['canary2'] }, port: 'fact1' } },
    vpn: { ipsec: { peers: [{ key: 'canary3', publicKey: 'fact2' }] } },
    bgp: { community: 'fact3' },
    auth: { tokens: 3, pass: 'canary4', passes: 4, credentials: 'canary5' },
  };
  const shown = JSON.stringify(redact(config, PAGE, NETWORK_CONFIG));
  t.false(shown.includes('canary'), shown);
  t.true(
    ['fact1', 'fact2', 'fact3', '"tokens":3'].every((fact) => shown.includes(fact)),
    shown,
  );
});

test('[R32] a name beside its value is a name, too, in the parts that no schema knows', (t) => {
  const config = {
    options: [
      { name: 'ppp_pass', value: 'canary1' },
      { key: 'mtu', value: 'fact1' },
    ],
  };
  const shown = JSON.stringify(redact(config, PAGE, NETWORK_CONFIG));
  t.false(shown.includes('canary1'));
  t.true(shown.includes('fact1'));
});

test('[R32] outside of a network config these names are no secrets: the words of other documents stay', (t) => {
  const shown = JSON.stringify(redact({ pass: 'stays', community: 'stays', pwd: 'stays' }));
  t.is(shown.split('stays').length, 4);
});
