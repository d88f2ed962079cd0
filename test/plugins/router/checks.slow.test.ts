import test from 'ava';
import { call } from '../../support/cli.ts';
import { active, post, startInstance, writeConfig } from '../../support/instance.ts';
import { until } from '../../support/redis.ts';
import { tempDir } from '../../support/temp.ts';

test.serial(
  '[R30,R34,R40] doctor router tells of the embedded router: API, store, transaction, colliding sets, legs',
  async (t) => {
    const cwd = tempDir(t);
    const dataDir = tempDir(t);
    const config = writeConfig(cwd);
    const doctor = async () => {
      const argv = ['doctor', 'router', '--json', '--config', config, '--data-dir', dataDir];
      const { code, out } = await call(argv, { cwd });
      const checks: { name: string }[] = JSON.parse(out).checks;
      return { code, found: Object.fromEntries(checks.map(({ name, ...rest }) => [name, rest])) as any };
    };
    const before = await doctor();
    t.is(before.code, 0);
    t.like(before.found, { 'router.api': { state: 'warn' }, 'router.store': { state: 'unknown' } });

    const { router, child } = await startInstance(t, dataDir, config);
    await until('all is well', async () =>
      Object.values((await doctor()).found).every(({ state }: any) => state === 'ok'),
    );
    const collide: any = await active(router);
    collide.interface.vlan['eth1.20'].meta.uuid = collide.interface.vlan['eth1.10'].meta.uuid;
    const appended = await post(router, { ...collide, transactionOp: 'append', transID: 'tour-1' });
    t.is(appended.status, 200);
    const during = await doctor();
    t.is(during.code, 1);
    t.like(during.found['router.transaction'], { state: 'warn' });
    t.regex(during.found['router.transaction'].found, /tour-1 by .* is pending/);
    t.like(during.found['router.address_sets'], { state: 'fail' });
    t.regex(
      during.found['router.address_sets'].found,
      /eth1\.10.* and .*eth1\.20.* share the address set c_net_/,
    );

    await child.kill('SIGKILL');
    const after = await doctor();
    t.like(after.found['router.api'], { state: 'warn' });
    t.like(after.found['router.transaction'], { state: 'warn' });
    t.regex(
      after.found['router.transaction'].found,
      /tour-1 by .* is pending, \d+ s left; the next start reverts it/,
    );
    t.regex(after.found['router.store'].found, /^it holds ncid/);
  },
);
