import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SqliteReader } from '../../../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../../../src/core/kernel/replay/verify-log.ts';
import { routerConfig } from '../../../../../src/machines/router/config.ts';
import { active, post, startInstance, writeConfig } from '../../../../support/instance.ts';
import { namespace } from '../../../../support/netns.ts';
import { until } from '../../../../support/redis.ts';
import { tempDir } from '../../../../support/temp.ts';
import { testInNamespace } from '../../../../support/test-in-namespace.ts';

/** An `ip` that takes its time over each line, and ends with whoever feeds it, as a killed one's does. */
function slowIp(dir: string): string {
  const real = execFileSync('sh', ['-c', 'command -v ip'], { encoding: 'utf8' }).trim();
  const folder = join(dir, 'bin');
  mkdirSync(folder);
  const script = `#!/bin/sh
feeder=$PPID
while IFS= read -r line && [ -d /proc/$feeder ]; do printf '%s\\n' "$line"; sleep 0.1; done | ${real} "$@"
`;
  writeFileSync(join(folder, 'ip'), script, { mode: 0o755 });
  return `${folder}:${process.env.PATH}`;
}

testInNamespace(
  '[R7,R9] killed between two interface reapplies: the next start leaves both as the config has them',
  async (t) => {
    t.timeout(180_000);
    const space = namespace(t);
    for (const name of ['eth0', 'eth1']) {
      space.ip(`link add ${name} type veth peer name ${name}p`);
      space.ip(`link set ${name}p up`);
    }
    const dir = tempDir(t);
    const file = writeConfig(dir, { kernel: 'linux', namespace: space.name });
    const first = await startInstance(t, dir, file);
    const config: any = {
      ncid: (await active(first.router)).ncid,
      interface: { phy: { eth0: { ipv4: '192.0.2.2/24' }, eth1: { ipv4: '198.51.100.2/24' } } },
    };
    const { status, body } = await post(first.router, config);
    t.is(status, 200, JSON.stringify(body));
    await first.child.kill('SIGTERM');

    const slow = await startInstance(t, dir, file, { PATH: slowIp(dir) });
    config.ncid = (await active(slow.router)).ncid;
    config.interface.phy.eth0.ipv4 = '192.0.2.3/24';
    config.interface.phy.eth1.ipv4 = '198.51.100.3/24';
    const has = (address: string) => space.ip('address show').includes(`inet ${address}`);
    const posted = post(slow.router, config).catch(() => undefined);
    await until('the first is reapplied', () => has('192.0.2.3'));
    await slow.child.kill('SIGKILL');
    t.is(await posted, undefined, 'nobody was answered');
    t.false(has('198.51.100.3'), 'the second was not reached');

    const again = await startInstance(t, dir, file);
    await until('the write that was accepted stands', async () => {
      const now: any = await active(again.router);
      return now.interface.phy.eth1.ipv4 === '198.51.100.3/24';
    });
    for (const address of ['192.0.2.3', '198.51.100.3']) t.true(has(address), address);
    for (const address of ['192.0.2.2', '198.51.100.2']) t.false(has(address), address);
    await again.child.kill('SIGTERM');
    const reader = new SqliteReader(dir);
    t.teardown(() => reader.close());
    const type = 'router.config';
    const machines = new Map([[type, { type, machine: routerConfig, version: 1 }]]);
    t.is(verifyLog(reader, machines).divergence, undefined);
  },
);
