import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createMachine } from 'xstate';
import type { Services } from '../../../src/core/host/plugin/definition.ts';
import { defineActor } from '../../../src/core/kernel/actors/definition.ts';
import { singletonActor } from '../../../src/plugins/cluster/actors.ts';
import { openHostLog } from '../../../src/plugins/cluster/mirror/host-log.ts';
import { namesOf } from '../../../src/plugins/cluster/mirror/incarnations.ts';
import { joinCluster, keyIn } from '../../support/joined-host.ts';
import { startNats } from '../../support/nats.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

const bell = defineActor({
  type: 'test.bell',
  machine: createMachine({ id: 'bell', on: { RING: { actions: () => {} } } }),
  version: 1,
});

const nothing = async () => {};
const bells = { name: 'bells', actorTypes: ['test.bell'], machines: {}, begin: nothing, end: nothing };

/** @returns the record */
function ring({ actors, log }: Services): number {
  actors.send(bell, 'front', { type: 'RING' });
  return log.lastSeq();
}

test('[C13] what does not count is told although the servers lost the fence before its host had read it', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const proxy = await nats.proxyTo(0);
  const keyFile = keyIn(t);
  const attic = await joinCluster(t, proxy.url, keyFile, 'attic', { actors: [bell] });
  const barn = await joinCluster(t, nats.url(), keyFile, 'barn', { actors: [bell] });
  const { system, services } = attic;
  const known = ({ actors }: Services) => actors.get(singletonActor, 'bells');
  system.compete([bells]);
  await until('the work runs in the attic', () => known(services)?.value === 'holding');
  await system.mirrored(ring(services));
  proxy.cut();
  const beside = ring(services);

  const stream = join('jetstream', '$G', 'streams', namesOf('joined', 'attic', 1).stream);
  const copy = tempDir(t);
  await nats.kill(0);
  cpSync(join(nats.storeDir(), stream), copy, { recursive: true });
  await nats.restart(0);
  barn.system.compete([bells]);
  await until('the work runs in the barn', () => known(barn.services)?.value === 'holding');
  const fenced = await openHostLog(barn.system.streams, 'attic');
  fenced.reader.close();
  t.like(fenced.fences, [{ singleton: 'bells', by: 'barn' }]);
  t.true(fenced.end.seq < beside);
  await nats.kill(0);
  rmSync(join(nats.storeDir(), stream), { recursive: true });
  cpSync(copy, join(nats.storeDir(), stream), { recursive: true });
  await nats.restart(0);

  proxy.heal();
  await system.mirrored(ring(services));
  t.is(system.outbox.position.incarnation, 1, 'the attic sees nothing of what was lost');
  const isTold = () =>
    known(services)?.context.branches.some(({ from, to }) => from === fenced.end.seq + 1 && to >= beside);
  await until('the attic tells of it', isTold);
  // So that readers of the stream know of it, too.
  await until('the fence stands again', async () => {
    const { reader, fences } = await openHostLog(barn.system.streams, 'attic');
    reader.close();
    return fences.some(({ singleton, by }) => singleton === 'bells' && by === 'barn');
  });
  t.is(system.outbox.orphans().length, 1);
});
