import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Result } from '../../../src/machines/restore/drill-shapes.ts';
import type { DrillStatus } from '../../../src/plugins/restore/control.ts';
import { ClusterApi } from '../../support/kubernetes/index.ts';
import { tempDir } from '../../support/temp.ts';
import { read } from '../../support/until.ts';
import { storePoints } from '../memory-store/rig.ts';
import { backup, left, restores, runsStore } from './cluster-rig.ts';
import { FieldStore } from './field-store.ts';
import { KilledChild } from './killed-child.ts';

const SCROLL = 'POST /collections/memory/points/scroll';
const RECOVER = 'PUT /collections/memory/snapshots/recover';
const QUICK = '{ pollMs: 10, retryMs: 50 }';

/** What a drill says that was killed while in a phase: nothing was proven, unless the verdict was there already. */
function isHonest(t: ExecutionContext, result: Result, id: string, phase: string): void {
  t.is(result.id, id, phase);
  if (phase === 'cleaning') t.is(result.outcome, 'completed');
  else {
    t.is(result.outcome, 'failed');
    t.like(result.failure, { phase, reason: 'it was interrupted by the end of the runtime' });
    t.is(result.report, undefined);
  }
}

test('[B6] a drill that kill -9 ends in any phase is cleaned up by the next start, and the log replays', async (t) => {
  const [live, scratch] = await Promise.all([FieldStore.start(t), FieldStore.start(t)]);
  live.fill(10);
  live.snapshot();
  const child = new KilledChild(t, {
    memory: `memory({ url: '${live.url}' })`,
    restore: `restore({ scratchUrl: '${scratch.url}', ...${QUICK} })`,
  });
  const phases = {
    choosing: [live, 'GET /collections/memory/snapshots'],
    preparing: [scratch, 'GET /readyz'],
    recovering: [scratch, RECOVER],
    verifying: [scratch, SCROLL],
    cleaning: [scratch, 'DELETE /collections/memory'],
  } as const;
  await child.start();
  for (const [phase, [store, hangs]] of Object.entries(phases)) {
    const reached = new Promise<void>((resolve) => {
      store.mishap = (one) => {
        if (one !== hangs) return undefined;
        resolve();
        return 'hang';
      };
    });
    const id = await child.ask('a');
    await reached;
    t.is((await child.status()).state, phase);
    const result = await child.killAndRestart(() => {
      store.mishap = () => undefined;
    });
    isHonest(t, result, id, phase);
    t.deepEqual([...scratch.collections.keys()], [], `nothing is left of a drill killed while ${phase}`);
  }
  await child.verify();
});

/** Where a drill in the cluster hangs: a call of the API server, or of the scratch instance. */
type Place = { readonly api: RegExp } | { readonly scratch: string };
const NAMESPACE = '/api/v1/namespaces';

for (const { path, places } of [
  {
    path: 'a',
    places: [
      ['preparing', { api: new RegExp(`^POST ${NAMESPACE}$`) }],
      ['preparing', { api: /^POST .*\/persistentvolumeclaims$/ }],
      ['preparing', { api: /^GET .*\/holdfast-drill-[^/]*\/pods$/ }],
      ['recovering', { scratch: RECOVER }],
      ['verifying', { scratch: SCROLL }],
      ['cleaning', { api: new RegExp(`^DELETE ${NAMESPACE}/holdfast-drill-`) }],
    ],
  },
  {
    path: 'b',
    places: [
      ['preparing', { api: /^POST .*\/secrets$/ }],
      ['recovering', { api: /^POST .*\/restores$/ }],
      ['recovering', { api: /^GET .*\/restores\/holdfast-drill-/ }],
      ['recovering', { api: /^GET .*\/holdfast-drill-[^/]*\/pods$/ }],
      ['verifying', { scratch: SCROLL }],
      ['cleaning', { api: /^DELETE .*\/restores\/holdfast-drill-/ }],
      ['cleaning', { api: new RegExp(`^DELETE ${NAMESPACE}/holdfast-drill-`) }],
    ],
  },
] as const satisfies { path: 'a' | 'b'; places: readonly (readonly [string, Place])[] }[]) {
  test(`[B3,B6] kill -9 in a drill of path ${path} in the cluster leaves no namespace and no restore, and an honest outcome`, async (t) => {
    t.timeout(600_000);
    const [api, live, scratch] = await Promise.all([
      ClusterApi.start(t),
      FieldStore.start(t),
      FieldStore.start(t),
    ]);
    live.fill(10);
    live.snapshot();
    runsStore(api, scratch);
    api.store.create(backup('good', '2026-11-19T04:00:00Z', { phase: 'Completed' }));
    restores(api, live, scratch, [{ phase: 'InProgress' }, { phase: 'Completed' }]);
    const kubeconfig = JSON.stringify(api.kubeconfig(tempDir(t)));
    const child = new KilledChild(t, {
      memory: `memory({ url: '${live.url}' })`,
      kubernetes: `kubernetes({ kubeconfig: ${kubeconfig} })`,
      restore: `restore(${QUICK})`,
    });
    await child.start();
    for (const [phase, place] of places) {
      const reached = new Promise<void>((resolve) => {
        const hang = (isIt: boolean) => {
          if (!isIt) return undefined;
          resolve();
          return 'hang' as const;
        };
        if ('scratch' in place) scratch.mishap = (call) => hang(call === place.scratch);
        else api.mishap = (call) => hang(place.api.test(`${call.method} ${call.path}`));
      });
      const id = await child.ask(path);
      await reached;
      const about = `${phase} ${JSON.stringify(Object.values(place).map(String))}`;
      t.is((await child.status()).state, phase, about);
      const result = await child.killAndRestart(() => {
        scratch.mishap = () => undefined;
        api.mishap = () => undefined;
      });
      isHonest(t, result, id, phase);
      t.deepEqual(left(api), [], about);
      t.deepEqual(api.store.all('Restore'), [], about);
      scratch.collections.clear(); // its volume is gone with the namespace
    }
    await child.verify();
  });
}

test('[B6] kill -9 in a drill of path b beside the embedded store leaves no copy of its data, and an honest outcome', async (t) => {
  const child = new KilledChild(t, {
    memoryStore: 'memoryStore({ port: 0 })',
    memory: 'memory()',
    restore: `restore(${QUICK})`,
  });
  storePoints(child.dataDir, 8_000, 64);
  await child.start();
  const folder = join(child.dataDir, 'scratch');
  const scratches = () => (existsSync(folder) ? readdirSync(folder) : []);
  // What a phase says of its progress: then the record of its beginning is durable.
  const phases = { preparing: "copying the store's data", verifying: 'comparing' };
  for (const [phase, doing] of Object.entries(phases)) {
    const id = await child.ask('b');
    const isThere = ({ state, progress }: DrillStatus) =>
      state === phase && progress?.text === doing && scratches().length > 0;
    await read(phase, () => child.status(), isThere, 2);
    isHonest(t, await child.killAndRestart(), id, phase);
    t.deepEqual(scratches(), [], `nothing is left of a drill killed while ${phase}`);
  }
  const id = await child.ask('b');
  await read(
    'its end',
    () => child.status(),
    ({ results }) => results.at(-1)?.id === id,
    20,
  );
  t.like((await child.status()).results.at(-1), { id, outcome: 'completed' });
  await child.verify();
});
