import test from 'ava';
import fc from 'fast-check';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { jsonEqual } from '../../../../src/core/kernel/json.ts';
import {
  differenceOf,
  hideSecrets,
  leavesOf,
  putSecretsBack,
} from '../../../../src/plugins/router/commands/leaves.ts';
import { setPath, unsetPath } from '../../../../src/plugins/router/commands/set-path.ts';
import { runs } from '../../../support/runs.ts';
import { type Config, exampleConfig } from '../rig.ts';

const SECRETS = /EXAMPLEx(PRIVATE|PRESHARED|OTHER)|example-not-a-secret/;
const plain = (value: unknown) => `fp_${JSON.stringify(value)}`;
const hidden = (value: unknown) => `fp_${Buffer.from(JSON.stringify(value)).toString('hex').slice(-24)}`;

/** Configs with names that matter, and with any others. */
const key = fc.oneof(
  fc.constantFrom(
    'psk',
    'privateKey',
    'apc',
    'key',
    'ssid',
    'hostapd',
    'wpaSupplicant',
    'eth1.10',
    'meta',
    'name',
  ),
  fc.string({ maxLength: 6 }),
  fc.constantFrom('a/b', 'a~b', '__proto__x', '{{secret /a}}'),
);
const leaf = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom('{{secret /psk}}', 'EXAMPLExPRIVATExKEYxNOTxAxREALxONExAAAAAAA=', 'sk-abcdefgh'),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('value'), { maxLength: 4 }), tie('object')),
  object: fc.dictionary(key, tie('value'), { maxKeys: 5 }),
}));
const config = json.object as fc.Arbitrary<Record<string, unknown>>;

test('[R35] an editor copy with its placeholders put back is the config, and holds no secret of it', (t) => {
  fc.assert(
    fc.property(config, (whole) => {
      const copy = hideSecrets(whole);
      t.deepEqual(putSecretsBack(copy, whole), whole);
      t.false(leavesOf(copy).some(({ value, secret }) => secret && !/^\{\{secret /.test(String(value))));
    }),
    { numRuns: runs(500) },
  );
});

test('[R35] the example config keeps its shape in an editor copy, without its secrets', (t) => {
  const copy = hideSecrets(exampleConfig()) as Config;
  t.notRegex(JSON.stringify(copy), SECRETS);
  t.is(copy.interface.wireguard.wg0.privateKey, '{{secret /interface/wireguard/wg0/privateKey}}');
  t.deepEqual(copy.interface.vlan, exampleConfig().interface.vlan);
  t.deepEqual(putSecretsBack(copy, exampleConfig()), exampleConfig());
});

test('[R35] a placeholder can be moved with its part, and one that names nothing is refused by its path', (t) => {
  const copy = hideSecrets(exampleConfig()) as Config;
  copy.apc.assets_template.ap_default.wifiNetworks['w-new'] =
    copy.apc.assets_template.ap_default.wifiNetworks['w-main'];
  const back = putSecretsBack(copy, exampleConfig()) as Config;
  t.is(back.apc.assets_template.ap_default.wifiNetworks['w-new'].key, 'example-not-a-secret');
  copy.apc.globalSysConfig.meshKey = '{{secret /apc/nothing}}';
  const error = t.throws(() => putSecretsBack(copy, exampleConfig()), { instanceOf: HoldfastError });
  t.regex(error?.what ?? '', /apc\.globalSysConfig\.meshKey/);
  copy.apc.globalSysConfig.meshKey = '[redacted]';
  t.throws(() => putSecretsBack(copy, exampleConfig()), { instanceOf: HoldfastError, message: /meshKey/ });
});

test('[R31] two configs have a difference exactly when they are not equal, the ncid apart', (t) => {
  fc.assert(
    fc.property(config, config, (a, b) => {
      const { ncid: _, ...before } = a;
      const { ncid: __, ...after } = b;
      t.is(differenceOf(before, after, plain).length === 0, jsonEqual(before, after));
      t.deepEqual(differenceOf({ ...before, ncid: 'x' }, before, plain), []);
    }),
    { numRuns: runs(300) },
  );
});

test('[R31,R32] a difference names each path, and a secret by its fingerprint, also where it was moved to', (t) => {
  const before = exampleConfig();
  const after = exampleConfig();
  after.interface.vlan['eth1.10'].ipv6 = ['fd00::1/64'];
  after.interface.vlan['eth1.10'].meta.name = 'example-not-a-secret';
  after.interface.wireguard.wg0.privateKey = 'EXAMPLExOTHERxxxKEYxNOTxAxREALxONExAAAAAAA=';
  delete after.dns.wg0;
  after.dns.wg1 = { useNameserversFromWAN: false };
  const changes = differenceOf(before, after, hidden);
  t.notRegex(JSON.stringify(changes), SECRETS);
  t.like(
    changes.map(({ op, path }) => `${op} ${path}`),
    [
      'changed interface.vlan.eth1.10.meta.name',
      'changed interface.vlan.eth1.10.ipv6.0',
      'changed interface.wireguard.wg0.privateKey',
      'removed dns.wg0.useNameserversFromWAN',
      'added dns.wg1.useNameserversFromWAN',
    ],
  );
  t.regex(changes[2]?.before ?? '', /^secret fp_/);
});

test('[R31] --set finds keys that hold dots, names of interfaces, places in lists, and JSON pointers', (t) => {
  const set = (assignment: string) => setPath(exampleConfig(), assignment, 'router apply') as Config;
  t.is(set('interface.vlan.eth1.40.ipv4=10.77.41.1/24').interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
  t.is(set('interface.vlan.eth1.40.vid=41').interface.vlan['eth1.40'].vid, 41);
  t.deepEqual(set('dhcp6.eth1.40={"type":"stateless"}').dhcp6['eth1.40'], { type: 'stateless' });
  t.is(set('dhcp6.eth1.40.type=stateless').dhcp6['eth1.40'].type, 'stateless');
  t.is(set('/dhcp6/eth9.9/type=stateless').dhcp6['eth9.9'].type, 'stateless');
  t.deepEqual(set('interface.vlan.eth1.40.ipv6.1=fd00::1/64').interface.vlan['eth1.40'].ipv6, [
    'fd5e:21aa:90c4:40::1/64',
    'fd00::1/64',
  ]);
  const unset = unsetPath(exampleConfig(), 'interface.vlan.eth1.40.ipv6', 'router apply') as Config;
  t.false('ipv6' in unset.interface.vlan['eth1.40']);
  for (const wrong of ['interface.vlan.eth1.40.ipv6.7=x', 'ncid.a=1', '=1', 'a..b=1', 'nothing']) {
    t.throws(() => set(wrong), { code: 'HF_CLI_USAGE' }, wrong);
  }
  t.throws(() => unsetPath(exampleConfig(), 'interface.vlan.eth1.40.ipv5', 'router apply'), {
    code: 'HF_CLI_USAGE',
    message: /nothing at interface\.vlan\.eth1\.40\.ipv5\. Did you mean "ipv4"\?/,
  });
});

test('[R31] setting a path changes that leaf alone, wherever it is', (t) => {
  const whole = exampleConfig();
  const open = leavesOf(whole).filter(({ secret, value }) => !secret && typeof value !== 'object');
  fc.assert(
    fc.property(fc.constantFrom(...open), fc.integer({ min: 10_000, max: 19_999 }), ({ path }, value) => {
      const pointer = path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
      const [dots, slashes] = [path.join('.'), pointer].map((text) =>
        setPath(whole, `${text}=${value}`, 'x'),
      );
      t.deepEqual(dots, slashes);
      const changed = differenceOf(whole, dots as Config, plain).map(({ path }) => path);
      t.deepEqual(changed, path[0] === 'ncid' ? [] : [path.join('.')]);
    }),
  );
});

test('[R31,R32] a secret is not taken from an argument list', (t) => {
  const set = (assignment: string) => setPath(exampleConfig(), assignment, 'router apply');
  for (const path of [
    'apc.globalSysConfig.meshKey',
    'interface.wireguard.wg0.privateKey',
    'hostapd.wlan1.params.wpa_passphrase',
  ])
    t.throws(() => set(`${path}=hunter2hunter2`), { code: 'HF_CLI_USAGE', message: /--edit/ }, path);
});

test('[R31] nothing in a config can act on the terminal that shows a difference', (t) => {
  const before = exampleConfig();
  const after = exampleConfig();
  after.interface.vlan['eth1.10'].meta.name = '\u001b[2J\u009b2J\u202e';
  after['\u001b[2Jkey'] = 1;
  const text = differenceOf(before, after, plain).map(({ path, after: shown }) => `${path}${shown}`);
  t.is(text.length, 2);
  t.notRegex(text.join(''), /[\p{Cc}\p{Cf}]/u);
});

for (const [assignment, place] of [
  ['interface.vlan.eth1.44.ipv4=10.77.41.1/24', /interface\.vlan has no eth1; it has eth1\.10, /],
  ['interfaces.vlan.eth1.40.ipv4=10.77.41.1/24', /has no interfaces; it has .*interface/],
  ['foo=1', /has no foo/],
  ['interfce.vlan.eth1.40.ipv4=10.77.41.1/24', /has no interfce; .* Did you mean "interface"\?/],
  ['interface.vlan.eth1.41.ipv4=10.77.41.1/24', /has no eth1; .* Did you mean "eth1\.40"\?/],
] as const) {
  test(`[R31] --set ${assignment} is refused: a slip must not store what nobody reads, or a device that is not there`, (t) => {
    t.throws(() => setPath(exampleConfig(), assignment, 'router apply'), {
      code: 'HF_CLI_USAGE',
      message: place,
    });
  });
}

test('[R31] --set may begin a section for an interface that is there', (t) => {
  const changed = setPath(exampleConfig(), 'dhcp6.eth1.40.type=stateless', 'router apply') as Config;
  t.deepEqual((changed as unknown as { dhcp6: Record<string, unknown> }).dhcp6['eth1.40'], {
    type: 'stateless',
  });
});
