import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { call, writeConfig } from '../../../support/cli.ts';
import { namespace } from '../../../support/netns.ts';
import { tempDir } from '../../../support/temp.ts';
import { testInNamespace } from '../../../support/test-in-namespace.ts';
import { eventually, LEG, realRig } from './real-rig.ts';

const PLUGIN = new URL('../../../../src/plugins/router/index.ts', import.meta.url).pathname;
const PREFIX = 'fd5e:21aa:90c4:10::/64';

/** A machine on the leg that advertises the leg's own prefix with a lifetime of its own, as a resolver does. */
function resolver(t: ExecutionContext, router: string, hasVlans: boolean, lifetime: number) {
  const { name, ip } = namespace(t);
  spawnSync('ip', ['-n', router, 'link', 'set', hasVlans ? 'eth1p' : 'eth1x10p', 'netns', name]);
  if (hasVlans) {
    ip('link set eth1p up');
    ip('link add link eth1p name leg type vlan id 10');
  } else ip('link set eth1x10p name leg');
  ip('link set leg up');
  ip('address add fd5e:21aa:90c4:10::53/64 dev leg nodad');
  const folder = tempDir(t);
  const child = spawn(
    'ip',
    [
      ...[
        'netns',
        'exec',
        name,
        'dnsmasq',
        '-k',
        '-p0',
        '-C',
        '/dev/null',
        '--enable-ra',
        '--ra-param=leg,4,0',
      ],
      ...[`--dhcp-range=::,constructor:leg,slaac,${lifetime}`, `--pid-file=${join(folder, 'pid')}`],
      `--dhcp-leasefile=${join(folder, 'leases')}`,
    ],
    { stdio: 'ignore' },
  );
  t.teardown(() => child.kill('SIGKILL'));
}

testInNamespace(
  '[R20] other senders of advertisements are observed where the kernel accepts them, with their lifetimes',
  async (t) => {
    const { space, rig } = await realRig(t);
    const cwd = tempDir(t);
    writeConfig(cwd, 'export default defineConfig({ plugins: [router()] });', [
      `import { router } from ${JSON.stringify(PLUGIN)};`,
    ]);
    const ra = async () => (await call(['router', 'ra', '--data-dir', rig.dataDir], { cwd })).out;
    t.regex(
      await ra(),
      new RegExp(`${PREFIX} +ULA +announced by the router 86400 s, the resolver pair 7200 s\n`),
    );
    const settings = { accept_ra: 2, autoconf: 0, accept_ra_defrtr: 0 };
    for (const [name, value] of Object.entries(settings)) {
      // A dot in the name of a device is written as a slash there.
      const key = `net/ipv6/conf/${LEG}/${name}=${value}`;
      const { status, stderr } = spawnSync('ip', ['netns', 'exec', space.name, 'sysctl', '-qw', key]);
      t.is(status, 0, String(stderr));
    }
    resolver(t, space.name, space.hasVlans, 7200);
    let out = '';
    const hasReceived = async () => {
      await sleep(500);
      out = await ra();
      return out.includes('(received)');
    };
    await eventually(hasReceived, () => out);
    t.regex(
      out,
      new RegExp(
        `${PREFIX} +ULA +announced by the router 86400 s, the resolver pair 7200 s \\(received\\)\n`,
      ),
    );
    t.regex(
      out,
      /conflict: \S+ has 2 sources/,
      "the router's own advertisements are not taken for another's",
    );
  },
);
