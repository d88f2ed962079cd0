import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { z } from 'zod';
import { type Cluster, ClusterToken } from '../../../../src/core/contracts/cluster.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import { cluster } from '../../../../src/plugins/cluster/index.ts';
import { CatchingUp } from '../../../../src/plugins/cluster/messages/catching-up.ts';
import { ClusterSystem } from '../../../../src/plugins/cluster/system.ts';
import { silent } from '../../../support/cluster.ts';
import { startNats } from '../../../support/nats.ts';
import type { Scope } from '../../../support/scope.ts';
import { tempDir } from '../../../support/temp.ts';
import { until } from '../../../support/until.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** A host that runs, with nothing but its part of the cluster. */
async function start(
  t: Scope,
  servers: string,
  keyFile: string,
  host: string,
  clock: Clock = systemClock,
): Promise<ClusterSystem> {
  let joined: Cluster | undefined;
  const witness = definePlugin({
    name: 'test-witness',
    options: z.strictObject({}),
    requires: [ClusterToken],
    start: (services) => {
      joined = services.get(ClusterToken);
      return services;
    },
    register: () => {},
  });
  const plugins = [cluster({ servers, keyFile, name: 'back', host }), witness()];
  const dataDir = tempDir(t);
  const runtime = createRuntime({ ...resolveConfig({ plugins }, {}), dataDir, logger: silent, clock });
  t.teardown(() => runtime.stop('test'));
  await runtime.start();
  if (!(joined instanceof ClusterSystem)) throw new Error('it is another cluster');
  return joined;
}

test('[C13] a host that reaches NATS again is not connected before it has read what was said meanwhile', async (t) => {
  const nats = await startNats(t);
  const keyFile = join(tempDir(t), 'cluster-key');
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  const proxy = await nats.proxyTo(0);
  const a = await start(t, nats.url(), keyFile, 'a');
  const b = await start(t, proxy.url, keyFile, 'b');
  await until('both are connected', () => !a.standing().isIsolated && !b.standing().isIsolated);
  const read: string[] = [];
  const isOpen = Promise.withResolvers<void>();
  b.onArrived(async ({ correlation }) => {
    await isOpen.promise;
    read.push(correlation);
  });
  proxy.cut();
  await until('b is cut off', () => b.standing().isIsolated);
  t.false(b.standing().isBehind, 'it serves for its grace');
  await a.toEveryHost({ topic: 'tests.revoked', payload: 1, correlation: 'revoked' });
  proxy.heal();
  await until('b is heard again', () => !b.beats.standing().isIsolated);
  t.like(b.standing(), { isIsolated: true, isBehind: true });
  t.true(b.standing().silentMs > 2_000, 'for as long as it knows nothing new');
  t.deepEqual(read, []);
  isOpen.resolve();
  await until('b has caught up', () => !b.standing().isIsolated);
  t.deepEqual(read, ['revoked']);
});

test('[C13,G16] a host that was away for longer than the others count counts them before it serves', async (t) => {
  const nats = await startNats(t);
  const keyFile = join(tempDir(t), 'cluster-key');
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  const proxy = await nats.proxyTo(0);
  let passedMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + passedMs };
  const a = await start(t, nats.url(), keyFile, 'a');
  const b = await start(t, proxy.url, keyFile, 'b', clock);
  await until('both are connected', () => [a, b].every((one) => !one.standing().isIsolated));
  t.is(b.standing().hosts, 2);
  proxy.cut();
  passedMs += 15_000;
  t.true(b.standing().isIsolated);
  proxy.heal();
  const seen: number[] = [];
  await until('b serves again', () => {
    const { isIsolated, hosts } = b.standing();
    if (!isIsolated) seen.push(hosts);
    return seen.length > 0;
  });
  t.deepEqual(seen, [2]);
});

test('[C13] a host that is cut off while it catches up begins anew, and tries until it succeeds', async (t) => {
  const clock = new VirtualClock();
  const marks: PromiseWithResolvers<void>[] = [];
  const mark = () => {
    const one = Promise.withResolvers<void>();
    marks.push(one);
    return one.promise;
  };
  const catchingUp = new CatchingUp({ clock, logger: silent, mark });
  t.is(catchingUp.behindMs, undefined);
  await clock.advance(20_000);
  catchingUp.returned(5_000);
  t.is(catchingUp.behindMs, 5_000);
  marks[0]?.reject(new Error('cut off again'));
  await clock.advance(1_000);
  t.is(marks.length, 2);
  catchingUp.returned(3_000);
  marks[1]?.resolve();
  await clock.advance(1_000);
  t.is(catchingUp.behindMs, 7_000, 'what it has read may be older than its return');
  t.is(marks.length, 3);
  marks[2]?.resolve();
  await clock.advance(499);
  t.is(catchingUp.behindMs, 7_499, 'the others may not have beaten since its return');
  await clock.advance(1);
  t.is(catchingUp.behindMs, undefined);
});
