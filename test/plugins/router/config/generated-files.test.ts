import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import {
  advertisingLegs,
  generateFiles,
  rewrittenLegs,
} from '../../../../src/plugins/router/config/generated-files.ts';
import { planReapply } from '../../../../src/plugins/router/config/reapply.ts';
import { countSecrets } from '../../../../src/plugins/router/config/secrets.ts';
import { validateConfig } from '../../../../src/plugins/router/config/validate.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';
import { type Config, exampleConfig } from '../rig.ts';

const MAIN = 'eth1.10';
const v6 = (intf: string) => `dhcp/conf/${intf}_v6.conf`;
const DNS_SERVER = '[fd5e:21aa:90c4:50::53]';

test('[R19] a leg with dhcp6 gets exactly the four lines', (t) => {
  t.is(
    generateFiles(exampleConfig()).get(v6(MAIN)),
    [
      `dhcp-option=tag:${MAIN},option6:dns-server,${DNS_SERVER}`,
      `dhcp-range=tag:${MAIN},::,constructor:${MAIN},slaac,86400`,
      'enable-ra',
      `ra-param=${MAIN},200,3600`,
      '',
    ].join('\n'),
  );
});

test('[R19] the files of the example are those of its legs and WANs: Lab and Telework do not advertise', (t) => {
  const paths = [...generateFiles(exampleConfig()).keys()].sort();
  const legs = ['eth1.10', 'eth1.20', 'eth1.30', 'eth1.50', 'eth1.70'];
  t.deepEqual(
    paths.filter((path) => path.startsWith('dhcp/')),
    legs.map(v6),
  );
  t.deepEqual(advertisingLegs(exampleConfig()), legs);
  t.deepEqual(
    paths.filter((path) => path.startsWith('dhcp6/')),
    ['dhcp6/eth0.conf'],
  );
  t.is(paths.filter((path) => path.startsWith('dns/')).length, 10);
});

test('[R19] another DHCPv6 DNS server, lease or RA time is another file, of that leg alone', (t) => {
  const before = generateFiles(exampleConfig());
  const config = exampleConfig();
  Object.assign(config.dhcp6[MAIN], { nameservers: ['fd00::53', 'fd00::54'], lease: 7200, raLifetime: 1800 });
  const after = generateFiles(config);
  t.deepEqual(
    [...after].filter(([path, text]) => before.get(path) !== text).map(([path]) => path),
    [v6(MAIN)],
  );
  t.is(
    after.get(v6(MAIN)),
    [
      `dhcp-option=tag:${MAIN},option6:dns-server,[fd00::53],[fd00::54]`,
      `dhcp-range=tag:${MAIN},::,constructor:${MAIN},slaac,7200`,
      'enable-ra',
      `ra-param=${MAIN},200,1800`,
      '',
    ].join('\n'),
  );
});

test("[R19] a leg's own dhcp6 section counts as the top-level one does; a WAN's is a client", (t) => {
  const config = exampleConfig();
  delete config.dhcp6;
  config.interface.vlan['eth1.40'].dhcp6 = {};
  const files = generateFiles(config);
  t.deepEqual(advertisingLegs(config), ['eth1.40']);
  t.regex(files.get(v6('eth1.40')) ?? '', /^dhcp-option=tag:eth1\.40,option6:dns-server,\[::\]\n/);
  config.dhcp6 = { eth0: {} };
  t.false(generateFiles(config).has(v6('eth0')));
  t.is(
    files.get('dhcp6/eth0.conf'),
    'duid\nnoipv4\nnoipv6rs\ninterface eth0\n  ipv6rs\n  ia_na\n  ia_pd 1/::/56 -\n',
  );
});

test('[R19] DNS files carry the nameservers of each leg', (t) => {
  const files = generateFiles(exampleConfig());
  t.is(files.get(`dns/${MAIN}.conf`), 'server=10.77.50.53\nserver=fd5e:21aa:90c4:50::53\n');
  t.is(files.get('dns/eth1.30.conf'), '', 'those of the WAN');
});

test('[R32] no generated file holds a secret', (t) => {
  const config = exampleConfig();
  t.true(countSecrets(config).count > 3);
  const text = JSON.stringify([...generateFiles(config)]);
  t.notRegex(text, /EXAMPLExP|example-not-a-secret/);
});

test('[R23] the legs whose file is rewritten are those whose server, or whose interface, is reapplied', (t) => {
  const rewritten = (change: (config: Config) => void) => {
    const after = exampleConfig();
    change(after);
    return rewrittenLegs(planReapply(exampleConfig(), after), exampleConfig(), after);
  };
  t.deepEqual(
    rewritten((config) => {
      config.dhcp6[MAIN].nameservers = ['fd00::53'];
    }),
    [MAIN],
  );
  t.deepEqual(
    rewritten((config) => {
      config.interface.vlan[MAIN].ipv6 = [];
      config.interface.vlan['eth1.40'].ipv6 = [];
    }),
    [MAIN],
    'Lab has no file',
  );
  t.deepEqual(
    rewritten((config) => {
      delete config.dhcp6['eth1.20'];
    }),
    ['eth1.20'],
  );
  t.deepEqual(
    rewritten((config) => {
      config.interface.vlan[MAIN].meta.name = 'Parlour';
      config.icmp[MAIN].echoRequest = false;
    }),
    [],
  );
});

/** Configs whose every generated value is hostile, or nearly right. */
const hostile = fc.oneof(
  fc.string(),
  fc.constantFrom(
    'fd00::1',
    'fd00::1\nserver=1.2.3.4',
    'fd00::1]',
    '::1%eth0\nlog-queries',
    '10.0.0.1',
    '10.0.0.1#53',
    '::ffff:10.0.0.1',
    '0x0a.1',
    '',
  ),
);
const name = fc.oneof(
  fc.constantFrom(
    'eth1.10',
    'br0',
    'wg-0',
    'a,b',
    'x\nenable-tftp',
    '../../etc',
    '..',
    '.hidden',
    'ä',
    'default',
  ),
  fc.string({ minLength: 1 }),
);
const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, -1, 1e300, '7200\nserver=1.2.3.4'));
const config = fc
  .record({
    leg: name,
    nameservers: fc.oneof(hostile, fc.array(hostile, { maxLength: 3 })),
    dns6Servers: fc.array(hostile, { maxLength: 2 }),
    lease: number,
    raInterval: number,
    pdSize: number,
    type: fc.constantFrom('lan', 'wan', undefined),
  })
  .map(({ leg, nameservers, dns6Servers, lease, raInterval, pdSize, type }) => ({
    interface: { vlan: { [leg]: { dhcp6: { pdSize, numOfPDs: pdSize }, meta: { type } } } },
    dhcp6: { [leg]: { nameservers, lease, raInterval, raLifetime: lease } },
    dns: { [leg]: { nameservers, dns6Servers } },
  }));

const LINE =
  /^(dhcp-option=tag:[\w.-]+,option6:dns-server,\[[0-9a-fA-F:.]+\](,\[[0-9a-fA-F:.]+\])*|dhcp-range=tag:[\w.-]+,::,constructor:[\w.-]+,slaac,\d+|enable-ra|ra-param=[\w.-]+,\d+,\d+|server=[0-9a-fA-F:.]+|duid|noipv4|noipv6rs|interface [\w.-]+| {2}(ipv6rs|ia_na|ia_pd \d+\/::\/\d+ -))$/;
const PATH = /^(dhcp\/conf\/[\w][\w.-]*_v6|dhcp6\/[\w][\w.-]*|dns\/[\w][\w.-]*)\.conf$/;

test('[R19] no config writes a line of its own into a file, nor a file elsewhere: it is refused or harmless', (t) => {
  let made = 0;
  fc.assert(
    fc.property(config, (hostileConfig) => {
      let files: ReturnType<typeof generateFiles>;
      try {
        files = generateFiles(hostileConfig);
      } catch (error) {
        return isCoded(error, 'HF_ROUTER_GENERATE');
      }
      made += 1;
      return [...files].every(
        ([path, text]) =>
          PATH.test(path) &&
          text
            .split('\n')
            .slice(0, -1)
            .every((line) => LINE.test(line)) &&
          (text === '' || text.endsWith('\n')),
      );
    }),
    { numRuns: 2_000 },
  );
  t.true(made > 20, 'some are fine');
});

/** Writes the files of a config as the router does. @returns what the real daemon says of each it reads */
function dnsmasqSays(dir: string, config: Config): string[] {
  const said: string[] = [];
  for (const [path, text] of generateFiles(config)) {
    const file = join(dir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    if (path.startsWith('dhcp6/')) continue;
    const { stderr, status } = spawnSync('dnsmasq', ['--test', `--conf-file=${file}`], { encoding: 'utf8' });
    if (status !== 0) said.push(`${path}: ${stderr.trim()}`);
  }
  return said;
}

test('[R19] the real dnsmasq parses every generated file, alone and as a directory', (t) => {
  t.regex(execFileSync('dnsmasq', ['--version'], { encoding: 'utf8' }), /Dnsmasq version/);
  const dir = tempDir(t);
  t.deepEqual(dnsmasqSays(dir, exampleConfig()), []);
  const whole = spawnSync('dnsmasq', ['--test', '--conf-file=/dev/null', `--conf-dir=${dir}/dhcp/conf`], {
    encoding: 'utf8',
  });
  t.regex(whole.stderr, /syntax check OK/);
});

test('[R19] the real dnsmasq parses what any valid config generates', (t) => {
  const ipv6 = fc.ipV6().filter((address) => !address.includes('.'));
  const valid = fc.record({
    servers: fc.array(ipv6, { maxLength: 3 }),
    dns: fc.array(fc.oneof(fc.ipV4(), ipv6), { maxLength: 3 }),
    lease: fc.option(fc.double({ min: 1e-3, max: 1e12, noNaN: true }), { nil: undefined }),
    raInterval: fc.option(fc.integer(), { nil: undefined }),
  });
  fc.assert(
    fc.property(valid, ({ servers, dns, lease, raInterval }) => {
      const own = {
        interface: { phy: { eth1: {} }, vlan: { [MAIN]: { intf: 'eth1', vid: 10, meta: { type: 'lan' } } } },
        dhcp6: {
          [MAIN]: { nameservers: servers, ...(lease && { lease }), ...(raInterval && { raInterval }) },
        },
        dns: { [MAIN]: { nameservers: dns } },
      };
      validateConfig(own);
      t.deepEqual(dnsmasqSays(tempDir(t), own), []);
    }),
    { numRuns: runs(25) },
  );
});
