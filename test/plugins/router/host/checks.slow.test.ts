/** `holdfast doctor router` on the router's own host: each finding is made ok, wrong and unknown in a real kernel. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import { generateFiles } from '../../../../src/plugins/router/config/generated-files.ts';
import { pathOf } from '../../../../src/plugins/router/host/tool.ts';
import type { router } from '../../../../src/plugins/router/index.ts';
import { call, writeConfig } from '../../../support/cli.ts';
import { namespace } from '../../../support/netns.ts';
import { tempDir } from '../../../support/temp.ts';
import { testInNamespace } from '../../../support/test-in-namespace.ts';
import { children, eventually, LEG, realRig, SET } from '../embedded/real-rig.ts';
import { Daemon } from '../remote/daemon.ts';
import { writeRemoteConfig } from '../remote/instance.ts';

const BINARY = new URL('../../../../bin/holdfast.js', import.meta.url).pathname;
const PLUGIN = new URL('../../../../src/plugins/router/index.ts', import.meta.url).pathname;

async function findings(cwd: string, config: string, dataDir: string): Promise<any> {
  const argv = ['doctor', 'router', '--json', '--config', config, '--data-dir', dataDir];
  const { out } = await call(argv, { cwd });
  const checks: { name: string }[] = JSON.parse(out).checks;
  return Object.fromEntries(checks.map(({ name, ...rest }) => [name, rest]));
}

/** The same in a process of its own, for which programs of this machine are not installed. */
async function findingsWithout(
  programs: readonly string[],
  cwd: string,
  config: string,
  dataDir: string,
): Promise<any> {
  const hide =
    'while [ "$1" != -- ]; do mount --bind /dev/null "$1" || exit 99; shift; done; shift; exec "$@"';
  const command = ['doctor', 'router', '--json', '--config', config, '--data-dir', dataDir];
  const argv = ['--mount', 'sh', '-c', hide, 'sh', ...programs.map((name) => pathOf(name) ?? name), '--'];
  const child = spawn('unshare', [...argv, process.execPath, BINARY, ...command], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const checks: { name: string }[] = JSON.parse(await text(child.stdout)).checks;
  return Object.fromEntries(checks.map(({ name, ...rest }) => [name, rest]));
}

const inside = (space: string, tool: string, ...args: string[]): void => {
  const { status, stderr } = spawnSync('ip', ['netns', 'exec', space, pathOf(tool) ?? tool, ...args]);
  if (status !== 0) throw new Error(String(stderr));
};

testInNamespace(
  '[R19][R21][R20] the embedded router on a real kernel is held against its config',
  async (t) => {
    const options = { addressSetsMs: 100, dhcpRestartMs: 300, packetFilter: 'ipset' } as const;
    const { space, rig } = await realRig(t, { options });
    const doctor = (more: Parameters<typeof router>[0] = {}) => {
      const cwd = tempDir(t); // a configuration file is loaded once
      const all = { kernel: 'linux', namespace: space.name, ...options, ...more };
      const config = writeConfig(
        cwd,
        `export default defineConfig({ plugins: [router(${JSON.stringify(all)})] });`,
        [`import { router } from ${JSON.stringify(PLUGIN)};`],
      );
      return findings(cwd, config, rig.dataDir);
    };
    const facts = () => rig.runtime.health() as any;
    await eventually(() => facts().dhcp?.serving === true && facts().addressSets === undefined);
    let found: any;
    const settles = async (name: string, state: string) => {
      const matches = async () => {
        found = await doctor();
        return found[name].state === state;
      };
      await eventually(matches, () => JSON.stringify(found[name]));
      return found[name].found as string;
    };
    t.regex(await settles('router.sets', 'ok'), /^1 sets hold the 1 prefixes of their networks$/);
    t.regex(
      await settles('router.v6_files', 'ok'),
      /^1 files in .*router\/dhcp\/conf are those of the legs with dhcp6$/,
    );
    t.regex(
      await settles('router.advertisements', 'ok'),
      /^dnsmasq \(pid \d+\) runs, and has read the files of eth1\.10$/,
    );

    const file = join(rig.dataDir, 'router/dhcp/conf', `${LEG}_v6.conf`);
    const later = Date.now() / 1000 + 2;
    utimesSync(file, later, later);
    t.regex(
      await settles('router.advertisements', 'fail'),
      /runs since before the files of eth1\.10 were written/,
    );
    writeFileSync(file, 'enable-ra\n');
    t.regex(await settles('router.v6_files', 'fail'), /^eth1\.10_v6\.conf says something else$/);
    renameSync(file, file.replace(LEG, 'eth1.99'));
    t.is(
      await settles('router.v6_files', 'fail'),
      'eth1.10_v6.conf is missing; eth1.99_v6.conf has no leg with dhcp6',
    );

    const elsewhere = await doctor({ namespace: 'hf-none', generatedDir: 'nowhere' });
    t.like(elsewhere, { 'router.sets': { state: 'unknown' }, 'router.v6_files': { state: 'unknown' } });
    t.regex(elsewhere['router.sets'].found, /cannot be read: .*hf-none/);
    t.false('router.chains' in elsewhere, 'the embedded router writes no chains');
    await rig.runtime.stop('test');
    await eventually(() => !children().some((line) => line.includes('dnsmasq ')));
    const { state } = (await doctor())['router.advertisements'];
    t.true(state === 'fail' || state === 'unknown', 'unknown where another dnsmasq runs on this machine');

    // The running router fills them again.
    inside(space.name, 'ipset', 'flush', SET);
    t.regex(
      await settles('router.sets', 'fail'),
      new RegExp(`^fd5e:21aa:90c4:10::/64 is not in ${SET} \\(Main, eth1.10\\)`),
    );
    inside(space.name, 'ipset', 'destroy', SET);
    t.regex(await settles('router.sets', 'fail'), new RegExp(`is not in the missing set ${SET}`));
  },
);

/** A daemon elsewhere whose packet filter and DHCP service are in a namespace here. */
async function setUpRemote(t: ExecutionContext) {
  const daemon = await Daemon.start(t);
  const { name, ip } = namespace(t);
  const config: any = daemon.config;
  const folder = tempDir(t);
  mkdirSync(join(folder, 'conf'));
  const dataDir = tempDir(t);
  const doctor = (options: object = {}) => {
    const cwd = tempDir(t);
    return findings(cwd, writeRemoteConfig(cwd, { url: daemon.url, ...options }), dataDir);
  };
  const own = { ownHost: true, namespace: name, dhcpConfDir: join(folder, 'conf') };
  return { space: name, ip, config, folder, doctor, own };
}

testInNamespace(
  '[R22][R21] a router elsewhere on the same host is looked at where `ownHost` says so',
  async (t) => {
    const { space, ip, config, folder, doctor, own } = await setUpRemote(t);
    const silent = await doctor();
    t.like(silent['router.host'], { state: 'unknown' });
    t.regex(silent['router.host'].found, /`ownHost` is not set/);
    t.false('router.sets' in silent);

    const before = await doctor(own);
    t.like(before, { 'router.sets': { state: 'fail' }, 'router.chains': { state: 'fail' } });
    t.regex(before['router.chains'].found, /no chain FW_FORWARD, FW_ULA_LOCAL_ONLY, FW_ACCEPT_DEFAULT/);
    t.like(before['router.v6_files'], { state: 'fail' });
    t.regex(before['router.v6_files'].found, /eth1\.10_v6\.conf is missing/);
    t.like((await doctor({ ...own, dhcpConfDir: undefined }))['router.v6_files'], { state: 'unknown' });

    for (const name of ['FW_ULA_LOCAL_ONLY', 'FW_ACCEPT_DEFAULT', 'FW_FORWARD'])
      inside(space, 'nft', `add table ip6 filter; add chain ip6 filter ${name}`);
    t.regex((await doctor(own))['router.chains'].found, /sends sources in fc00::\/7 to no chain/);
    inside(space, 'nft', 'add rule ip6 filter FW_FORWARD ip6 saddr fc00::/7 jump FW_ULA_LOCAL_ONLY');
    ip(`link add ${LEG} type veth peer name p`);
    ip(`address add fd5e:21aa:90c4:10::1/64 dev ${LEG}`);
    const set = 'c_net_df62a84c-ed88_set6';
    inside(space, 'nft', `add set ip6 filter ${set} { type ipv6_addr; flags interval; }`);
    const half = await doctor(own);
    t.is(half['router.chains'].state, 'ok');
    t.regex(half['router.sets'].found, new RegExp(`fd5e:21aa:90c4:10::/64 is not in ${set} `));

    for (const [path, text] of generateFiles(config)) {
      const [, name] = /^dhcp\/conf\/(.*)$/.exec(path) ?? [];
      // Another daemon writes other lines around the one that counts.
      if (name !== undefined) writeFileSync(join(folder, 'conf', name), `# by the daemon\n${text}`);
    }
    t.is((await doctor(own))['router.v6_files'].state, 'ok');
    const service = spawn(
      'ip',
      [
        'netns',
        'exec',
        space,
        'dnsmasq',
        '-k',
        '-p0',
        '-C',
        '/dev/null',
        `--conf-dir=${join(folder, 'conf')}`,
        '--pid-file=',
      ],
      { stdio: 'ignore' },
    );
    t.teardown(() => service.kill('SIGKILL'));
    await eventually(async () => /has read/.test((await doctor(own))['router.advertisements'].found));
  },
);

/** The two kinds of ip6tables keep their rules in different places of the kernel. */
function workingIptables(t: ExecutionContext, space: string, wanted: 'nft' | 'legacy'): string {
  const kinds = [wanted, wanted === 'nft' ? 'legacy' : 'nft'].map((kind) => `ip6tables-${kind}`);
  const refusals: string[] = [];
  for (const kind of kinds) {
    const { status, stderr, error } = spawnSync('ip', ['netns', 'exec', space, kind, '-N', 'probe']);
    if (status === 0) return kind;
    refusals.push(`${kind} does not work here: ${String(error?.message ?? stderr).trim()}`);
    t.log(refusals.at(-1));
  }
  throw new Error(refusals.join('; '));
}

for (const kind of ['nft', 'legacy'] as const) {
  testInNamespace(`[R22] chains of ip6tables-${kind} are read on a host without nft`, async (t) => {
    const daemon = await Daemon.start(t);
    const { name: space } = namespace(t);
    const tool = workingIptables(t, space, kind);
    const cwd = tempDir(t);
    const config = writeRemoteConfig(cwd, { url: daemon.url, ownHost: true, namespace: space });
    const chains = async (...hidden: string[]) =>
      (await findingsWithout(['nft', ...hidden], cwd, config, tempDir(t)))['router.chains'];
    const none = await chains();
    t.is(none.state, 'fail');
    t.regex(none.found, /no chain FW_FORWARD, FW_ULA_LOCAL_ONLY, FW_ACCEPT_DEFAULT/);
    for (const name of ['FW_ULA_LOCAL_ONLY', 'FW_ACCEPT_DEFAULT', 'FW_FORWARD'])
      inside(space, tool, '-N', name);
    inside(space, tool, '-A', 'FW_FORWARD', '-s', 'fc00::/7', '-j', 'FW_ACCEPT_DEFAULT');
    t.regex((await chains()).found, /sends sources in fc00::\/7 to FW_ACCEPT_DEFAULT/);
    inside(space, tool, '-R', 'FW_FORWARD', '1', '-s', 'fc00::/7', '-j', 'FW_ULA_LOCAL_ONLY');
    const whole = await chains();
    t.is(whole.state, 'ok', whole.found);
    const unread = await chains('ip6tables-save', 'ip6tables-legacy-save');
    t.is(unread.state, 'unknown');
    t.regex(unread.found, /cannot be read: .*ip6tables-save/);
  });
}
