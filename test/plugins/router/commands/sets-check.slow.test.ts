import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { pathOf } from '../../../../src/plugins/router/host/tool.ts';
import { call, writeConfig } from '../../../support/cli.ts';
import { tempDir } from '../../../support/temp.ts';
import { testInNamespace } from '../../../support/test-in-namespace.ts';
import { realRig, SET } from '../embedded/real-rig.ts';
import { Daemon } from '../remote/daemon.ts';
import { writeRemoteConfig } from '../remote/instance.ts';

const PLUGIN = new URL('../../../../src/plugins/router/index.ts', import.meta.url).pathname;
const SECOND = '--set=interface.vlan.eth1.10.ipv6.1=fd00:78::1/64';

testInNamespace(
  '[R21][R31] apply --check-sets keeps a change when the kernel holds its /64, else not',
  async (t) => {
    const packetFilter = pathOf('nft') === undefined ? 'ipset' : 'nft';
    t.log(`sets of ${packetFilter}`);
    const options = { windowMs: 9_000, packetFilter, dnsmasq: false } as const;
    const apply = async (addressSetsMs: number) => {
      const { rig } = await realRig(t, { options: { ...options, addressSetsMs } });
      const cwd = tempDir(t);
      const plugins = `router(${JSON.stringify({ windowMs: options.windowMs })})`;
      writeConfig(cwd, `export default defineConfig({ plugins: [${plugins}] });`, [
        `import { router } from ${JSON.stringify(PLUGIN)};`,
      ]);
      await sleep(1_500); // the sets of the config before follow first, where they follow at all
      const argv = ['router', 'apply', SECOND, '--check-sets', '--data-dir', rig.dataDir];
      const { code, out } = await call(argv, { cwd });
      return { code, out, held: (await rig.active()).interface.vlan['eth1.10'].ipv6 };
    };
    const kept = await apply(700);
    t.is(kept.code, 0, kept.out);
    t.regex(kept.out, new RegExp(`not yet in its set: fd00:78::/64 \\(eth1\\.10, ${SET}\\)`));
    t.regex(kept.out, /check passed after \d+ ms: --check-sets\nKept\./);
    t.is(kept.held[1], 'fd00:78::1/64');
    const reverted = await apply(60_000);
    t.is(reverted.code, 3, reverted.out);
    t.regex(
      reverted.out,
      /check cut off \(the sets did not follow in time\)[\s\S]*Reverted: the router's window/,
    );
    t.is(reverted.held.length, 1);
  },
);

test.serial('[R31] apply --check-sets keeps nothing where nobody can say what the sets hold', async (t) => {
  const daemon = await Daemon.start(t);
  const cwd = tempDir(t);
  const config = writeRemoteConfig(cwd, { url: daemon.url });
  const argv = ['router', 'apply', '--set=interface.vlan.eth1.40.ipv4=10.77.41.1/24', '--check-sets'];
  const { code, out } = await call([...argv, '--config', config, '--data-dir', tempDir(t)], { cwd });
  t.is(code, 3, out);
  t.regex(out, /it is unknown what the address sets hold: \w+/);
  t.is(daemon.config.interface.vlan['eth1.40']?.ipv4, '10.77.40.1/24');
});
