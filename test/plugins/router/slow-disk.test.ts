import { readFileSync } from 'node:fs';
import test from 'ava';
import { fakeDisk } from '../../support/disk.ts';
import { startInstance, writeConfig } from '../../support/instance.ts';
import { tempDir } from '../../support/temp.ts';

test('with a slow disk no sync of the config store runs on the main thread', async (t) => {
  const dir = tempDir(t);
  const disk = fakeDisk(dir, 20);
  const instance = await startInstance(t, dir, writeConfig(dir), disk.env);
  const url = `${instance.router}/v1/config`;
  const before = readFileSync(disk.traceFile, 'utf8').length; // opening files, before there is anything to stall
  for (let i = 0; i < 5; i += 1) {
    const config: any = await (await fetch(`${url}/active`)).json();
    config.interface.vlan['eth1.30'].mtu = 1400 + i;
    const response = await fetch(`${url}/set`, {
      method: 'POST',
      body: JSON.stringify(config),
      headers: { 'content-type': 'application/json' },
    });
    t.is(response.status, 200);
  }
  const syncs = readFileSync(disk.traceFile, 'utf8').slice(before).trim().split('\n');
  t.true(syncs.length >= 10, 'a record before, the save, and a record after each apply');
  t.true(syncs.every((line) => line.split(' ')[0] !== String(instance.child.process.pid)));
});
