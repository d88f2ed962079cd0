import test from 'ava';
import { fakeDisk } from '../../../support/disk.ts';
import { active, post, startInstance, writeConfig } from '../../../support/instance.ts';
import { tempDir } from '../../../support/temp.ts';

async function health(
  console: string,
): Promise<{ status: number; body: { status: string; log: Record<string, unknown> } }> {
  const answer = await fetch(`${console}/healthz`);
  return { status: answer.status, body: (await answer.json()) as never };
}

test('[C5,C14] on a disk that became read-only nothing is decided unlogged, /healthz says so, and it goes on when it can', async (t) => {
  t.timeout(180_000);
  const dir = tempDir(t);
  const disk = fakeDisk(dir);
  const { router, console } = await startInstance(t, dir, writeConfig(dir), disk.env);
  const named = async (name: string) => {
    const config = await active(router);
    const leg = config.interface.vlan['eth1.10'];
    if (leg) leg.meta.name = name;
    return post(router, config);
  };
  t.is((await named('before')).status, 200);

  disk.freeze();
  const refused = await named('while');
  t.is(refused.status, 503);
  t.is((await named('again')).status, 503);
  const sick = await health(console);
  t.is(sick.status, 503);
  t.like(sick.body.log, { state: 'frozen' });
  t.regex(String(sick.body.log.reason), /disk I\/O error|readonly/);
  t.is((await active(router)).interface.vlan['eth1.10']?.meta.name, 'before');

  disk.thaw();
  for (;;) {
    const { status, body } = await health(console);
    if (status === 200 && body.log.state === 'open') break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // What waited was carried out then, or the save fails as stale: either way the next one counts.
  let after = await named('after');
  while (after.status !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    after = await named('after');
  }
  t.is((await active(router)).interface.vlan['eth1.10']?.meta.name, 'after');
});
