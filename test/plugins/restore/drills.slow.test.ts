import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { alertRaised } from '../../../src/core/contracts/alerts.ts';
import type { SnapshotRecord } from '../../../src/core/contracts/memory-store.ts';
import { memoryStore } from '../../../src/plugins/memory-store/index.ts';
import { refuseLiveAddress } from '../../../src/plugins/restore/safety.ts';
import type { Scope } from '../../support/scope.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { FieldStore } from './field-store.ts';
import { type DrillRig, recordedStore, startDrills } from './rig.ts';

const RECOVER = 'PUT /collections/memory/snapshots/recover';

/** A store elsewhere and an instance for drills, both of the field's manners. */
async function field(
  t: Scope,
  { points = 30, options = {}, clock }: { points?: number; options?: object; clock?: VirtualClock } = {},
) {
  const live = await FieldStore.start(t);
  const scratch = await FieldStore.start(t);
  live.fill(points);
  const name = live.snapshot();
  const known = new Map<string, SnapshotRecord>();
  const rig = await startDrills(t, {
    store: recordedStore(live.url, known),
    restore: { scratchUrl: scratch.url, ...options },
    ...(clock && { clock }),
  });
  const seeds = [1, 2, 3].map((id) => {
    const point = live.collections.get('memory')!.points.get(id)!;
    return { id, fingerprint: rig.fingerprint(point) };
  });
  known.set(name, { name, at: 1, count: points, seeds });
  return { live, scratch, rig, known, name };
}

const alertsOf = ({ runtime }: DrillRig) => {
  const names: string[] = [];
  runtime.services.bus.subscribe(alertRaised, 'test', ({ payload }) => void names.push(payload.name));
  return names;
};

test.serial(
  '[B2,B4] path a is proven against the record of its snapshot, and what differs from live now is listed',
  async (t) => {
    const { live, scratch, rig, name } = await field(t);
    const { points } = live.collections.get('memory')!;
    points.delete(7);
    points.set(500, { id: 500, vector: [1, 1, 1], payload: {} });
    points.set(9, { id: 9, vector: [0, 0, 0], payload: { text: 'another' } });
    const result = await rig.drill();
    t.like(result, { outcome: 'completed', source: { kind: 'snapshot', name, count: 30 } });
    t.is(result.report?.verdict, '30 points, as recorded when it was made, and 3 seeded memories unchanged.');
    t.like(result.report, {
      restored: { count: 30, approximate: 31 },
      live: { count: 30 },
      seeds: { checked: 3, missing: [], changed: [] },
      differences: {
        onlyLive: { total: 1, ids: [500] },
        onlyRestored: { total: 1, ids: [7] },
        changed: { total: 1, ids: [9] },
      },
    });
    t.deepEqual([...scratch.collections.keys()], []);
    t.false(
      live.calls.some((call) => /^(PUT|DELETE|PATCH)/.test(call)),
      'the live store is only read',
    );
  },
);

test.serial('[B4] a corrupted or missing seeded memory of the snapshot is found and named', async (t) => {
  const { live, rig, name } = await field(t);
  const alerts = alertsOf(rig);
  const snapshot = JSON.parse(live.snapshots.get(name)!);
  snapshot.points[1].payload.text = 'corrupted';
  live.snapshots.set(name, JSON.stringify(snapshot));
  const corrupted = await rig.drill();
  t.like(corrupted, { outcome: 'failed', failure: { phase: 'verifying' } });
  t.is(corrupted.report?.verdict, 'seeded memories are not what they were: 2.');
  snapshot.points.splice(2, 1);
  live.snapshots.set(name, JSON.stringify(snapshot));
  const { report } = await rig.drill();
  t.regex(report!.verdict, /^29 points instead of 30, .*; seeded memories are missing: 3; .*: 2\.$/);
  t.deepEqual(alerts, ['restore.drill_failed', 'restore.drill_failed']);
});

test.serial('[B4] vectors that differ, or have another size, are found', async (t) => {
  const { live, rig, name, known } = await field(t);
  known.delete(name);
  const snapshot = JSON.parse(live.snapshots.get(name)!);
  snapshot.points[4].vector = [9, 9, 9];
  live.snapshots.set(name, JSON.stringify(snapshot));
  const differing = await rig.drill();
  t.like(differing.report, { ok: false, differences: { changed: { total: 1, ids: [5] } } });
  live.snapshots.set(name, JSON.stringify({ ...snapshot, size: 4 }));
  const { report } = await rig.drill();
  t.regex(report!.verdict, /its vectors are .*"size":4.* instead of .*"size":3/);
});

test.serial(
  '[B4] a live store that is written while it is compared is told apart from a bad restore',
  async (t) => {
    const { live, rig } = await field(t);
    const { points } = live.collections.get('memory')!;
    let scrolls = 0;
    live.before = (call) => {
      if (call.endsWith('/points/scroll')) scrolls += 1;
      // Between the walk and the second look.
      if (scrolls === 0 || call !== 'POST /collections/memory/points') return;
      points.set(20, { id: 20, vector: [0, 0, 0], payload: { text: 'written again' } });
    };
    points.set(20, { id: 20, vector: [0, 0, 0], payload: { text: 'written once' } });
    const { outcome, report } = await rig.drill();
    t.is(outcome, 'completed');
    t.like(report?.differences, { changed: { total: 0 }, moving: { total: 1, ids: [20] } });
  },
);

test.serial(
  '[B6] what the store answers instead of recovering ends the drill with its words, and everything is cleaned up',
  async (t) => {
    const { live, scratch, rig, name } = await field(t, { options: { recoverMs: 300 } });
    const failing = async (pattern: RegExp) => {
      const { outcome, failure } = await rig.drill();
      t.is(outcome, 'failed');
      t.regex(failure!.reason, pattern);
      t.deepEqual([...scratch.collections.keys()], [], 'nothing is left');
    };
    for (const [status, text] of [
      [500, 'Service internal error'],
      [507, 'No space left on device'],
    ] as const) {
      scratch.mishap = (call) => (call === RECOVER ? { status, text } : undefined);
      await failing(new RegExp(text));
    }
    scratch.mishap = (call) => (call === RECOVER ? 'hang' : undefined);
    await failing(/did not end|time|300 ms/i);
    scratch.mishap = () => undefined;
    live.before = (call) =>
      void (call.startsWith('GET /collections/memory/snapshots/') && live.snapshots.clear());
    await failing(/Failed to download/);
    live.before = () => {};
    live.snapshot(name);
    live.snapshots.set(name, live.snapshots.get(name)!.slice(0, 100));
    await failing(/Failed to download/);
    await live.stop();
    await failing(/ECONNREFUSED|no answer/);
  },
);

test.serial(
  '[B6] a second drill is refused with the id of the first; whoever gives up gets a clean-up',
  async (t) => {
    const { scratch, rig } = await field(t);
    scratch.mishap = (call) => (call === RECOVER ? 'hang' : undefined);
    const { id } = await rig.ask();
    await rig.see(({ state }) => state === 'recovering');
    const second = await rig.ask();
    t.is(second.code, 'HF_RESTORE_RUNNING');
    t.true(second.what?.includes(id!));
    const { bus } = rig.runtime.services;
    const { drillCancelled } = await import('../../../src/plugins/restore/actor.ts');
    bus.publish(drillCancelled, { reason: 'it was interrupted by SIGINT' });
    const { results } = await rig.see(({ state }) => state === 'resting.failed');
    t.like(results.at(-1), { id, failure: { phase: 'recovering', reason: 'it was interrupted by SIGINT' } });
    t.deepEqual([...scratch.collections.keys()], []);
  },
);

test.serial(
  '[B6] a clean-up that fails is told once, tried until it works, and blocks the next drill',
  async (t) => {
    const { scratch, rig } = await field(t);
    const alerts = alertsOf(rig);
    scratch.mishap = (call) => (call.startsWith('DELETE') ? { status: 500, text: 'locked' } : undefined);
    const { id } = await rig.ask();
    const stuck = await rig.see(({ cleanFailures = 0 }) => cleanFailures >= 2);
    t.regex(stuck.cleanReason!, /could not be removed: .*it answered 500/);
    t.is((await rig.ask()).code, 'HF_RESTORE_RUNNING');
    t.false(rig.runtime.health().restore && (rig.runtime.health().restore as any).ok);
    scratch.mishap = () => undefined;
    const { results } = await rig.see(({ state }) => state === 'resting.completed');
    t.is(results.at(-1)?.id, id);
    t.true(results.at(-1)!.cleanFailures >= 2);
    t.deepEqual(alerts, ['restore.scratch_left']);
    t.deepEqual([...scratch.collections.keys()], []);
  },
);

test.serial(
  '[B5] the live store is never a target: by alias, by resolution, by what it holds, or by a redirect',
  async (t) => {
    const live = await FieldStore.start(t);
    live.fill(3);
    live.snapshot();
    const proxy = createServer((request, response) => {
      // Another address that leads to the live store.
      fetch(live.url + request.url, { method: request.method! })
        .then(async (answer) => response.writeHead(answer.status).end(await answer.text()))
        .catch(() => response.destroy());
    });
    const redirect = createServer((request, response) =>
      response.writeHead(307, { location: live.url + request.url }).end(),
    );
    const ports = await Promise.all(
      [proxy, redirect].map((server) => {
        t.teardown(() => server.close());
        return new Promise<number>((resolve) => {
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
        });
      }),
    );
    const aliases = [
      live.url,
      `http://localhost:${live.port}`,
      `http://127.1.2.3:${live.port}`,
      `http://[::1]:${live.port}`,
      `http://[::ffff:127.0.0.1]:${live.port}`,
      `http://0.0.0.0:${live.port}`,
      `http://sub.localhost:${live.port}/`,
    ];
    for (const alias of aliases) {
      await t.throwsAsync(refuseLiveAddress(live.url, alias), { message: /^HF_RESTORE_LIVE/ }, alias);
    }
    await t.notThrowsAsync(refuseLiveAddress(live.url, `http://127.0.0.1:${ports[0]}`));
    const failureAt = async (scratchUrl: string) => {
      const rig = await startDrills(t, { memory: { url: live.url }, restore: { scratchUrl } });
      const { failure } = await rig.drill();
      t.is(failure?.phase, 'preparing', scratchUrl);
      await rig.runtime.stop('next');
      return failure!;
    };
    t.is((await failureAt(aliases[1]!)).code, 'HF_RESTORE_LIVE');
    // Known by its address, it is not even asked.
    t.deepEqual([...live.hosts], [`127.0.0.1:${live.port}`]);
    t.regex((await failureAt(`http://127.0.0.1:${ports[0]}`)).reason, /it holds a collection memory/);
    t.regex((await failureAt(`http://127.0.0.1:${ports[1]}`)).reason, /it answered 307/);
    t.deepEqual(
      live.calls.filter((one) => !one.startsWith('GET')),
      [],
    );
    t.is(live.collections.get('memory')?.points.size, 3);
  },
);

test.serial('[B5] the same name is the live store although nobody can resolve it', async (t) => {
  const live = 'http://qdrant.invalid:6333';
  for (const same of [live, 'http://QDRANT.invalid.:6333/', 'http://qdrant.invalid:6333/collections']) {
    await t.throwsAsync(
      refuseLiveAddress(live, same),
      { message: /^HF_RESTORE_LIVE.*the same address/ },
      same,
    );
  }
});

test.serial(
  '[B5] an instance that says it is the live one, or is filled by the time of the recovery, is not overwritten',
  async (t) => {
    const live = await FieldStore.start(t);
    live.fill(3);
    live.snapshot();
    const failure = async (prepare: (scratch: FieldStore) => void) => {
      const scratch = await FieldStore.start(t);
      prepare(scratch);
      const options = { memory: { url: live.url }, restore: { scratchUrl: scratch.url } };
      const rig = await startDrills(t, options);
      const result = await rig.drill();
      await rig.runtime.stop('next');
      t.false(scratch.calls.some((call) => call.endsWith('/recover')));
      return result.failure!;
    };
    live.instance = 'the-one';
    const same = await failure((scratch) => {
      scratch.instance = 'the-one';
    });
    t.like(same, { phase: 'recovering', code: 'HF_RESTORE_LIVE' });
    t.regex(same.reason, /it says that it is that very instance/);
    const filled = await failure((scratch) => {
      scratch.instance = 'another';
      scratch.before = (call) => {
        if (call === 'GET /readyz') scratch.fill(2);
      };
    });
    t.like(filled, { phase: 'recovering', code: 'HF_RESTORE_LIVE' });
    t.regex(filled.reason, /it holds a collection memory/);
  },
);

test.serial(
  '[B2,B3,B5] beside the embedded store both paths are proven, and no folder, port or thread stays',
  async (t) => {
    const rig = await startDrills(t, { plugins: [memoryStore({ port: 0 })] });
    const { url } = rig.runtime.surfaces.memory!;
    const put = async (path: string, body: object, method = 'PUT') => {
      const answer = await fetch(url + path, {
        method,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      t.is(answer.status, 200);
    };
    const fresh = await rig.drill();
    t.is(fresh.outcome, 'completed', fresh.failure?.reason);
    t.like(fresh.report, { expected: { from: 'record' }, seeds: { missing: [], changed: [] } });
    t.true(fresh.report!.seeds.checked > 0, 'one snapshot was made, seeded first');
    await put('/collections/memory', {}, 'DELETE');
    await put('/collections/memory', { vectors: { size: 3, distance: 'Cosine' } });
    const points = Array.from({ length: 600 }, (_, id) => ({ id, vector: [id + 1, 1, 1], payload: { id } }));
    await put('/collections/memory/points?wait=true', { points });
    await put('/collections/memory/snapshots', {}, 'POST');
    for (const path of ['a', 'b'] as const) {
      const result = await rig.drill(path);
      t.is(result.outcome, 'completed', result.failure?.reason);
      t.like(result.report, { restored: { count: 600 }, compared: { payloads: 600, vectors: 200 } });
      const scratch = /http:\S+/.exec(result.place!)![0];
      await t.throwsAsync(fetch(scratch), undefined, 'nothing listens there any more');
    }
    t.deepEqual(readdirSync(join(rig.dataDir, 'scratch')), []);
    const text = await rig.runtime.services.metrics.text();
    t.regex(text, /holdfast_restore_drill_ok\{path="b"\} 1/);
  },
);

test.serial(
  '[B6] an expired instance that an earlier run left is removed at the start, one of another drill is not',
  async (t) => {
    const live = await FieldStore.start(t);
    const scratch = await FieldStore.start(t);
    live.fill(3);
    live.snapshot();
    scratch.fill(3);
    scratch.collections.set(`holdfast-scratch-old-${Date.now() - 1_000}`, { size: 1, points: new Map() });
    const options = { memory: { url: live.url }, restore: { scratchUrl: scratch.url } };
    const rig = await startDrills(t, options);
    await rig.see(({ state }) => state === 'resting.idle' && scratch.collections.size === 0);
    scratch.collections.set(`holdfast-scratch-other-${Date.now() + 60_000}`, { size: 1, points: new Map() });
    const { failure } = await rig.drill();
    t.regex(failure!.reason, /drill other uses/);
    t.is(scratch.collections.size, 1);
  },
);

test.serial(
  '[B8] a drill runs by its schedule and is a metric; a path whose drills stop is an alert of its own',
  async (t) => {
    const HOUR = 3_600_000;
    // 2026-01-01 is a Thursday.
    const clock = new VirtualClock();
    const { rig } = await field(t, {
      clock,
      options: { schedule: { a: '0 5 * * 0', b: '0 5 1 3 *' }, overdueMs: 9 * 24 * HOUR },
    });
    const alerts: object[] = [];
    rig.runtime.services.bus.subscribe(
      alertRaised,
      'test',
      ({ payload: { name, labels } }) => void alerts.push({ name, ...labels }),
    );
    const ended = async () => {
      for (;;) {
        const { results } = await rig.status();
        if (results.length > 0) return results;
        await clock.advance(10);
        await delay(5);
      }
    };
    await clock.advance(3 * 24 * HOUR + 5 * HOUR - 1_000);
    t.deepEqual((await rig.status()).results, []);
    await clock.advance(1_000);
    const [result] = await ended();
    t.like(result, { path: 'a', by: 'schedule', outcome: 'completed' });
    const metrics = await rig.runtime.services.metrics.text();
    t.regex(metrics, /^holdfast_restore_drill_ok\{path="a"\} 1$/m);
    t.regex(metrics, /^holdfast_restore_drill_end_seconds\{path="a"\} 17675\d{5}/m);
    t.notRegex(metrics, /drill_ok\{path="b"\}/);
    // Nine days after the start path b was never drilled, and path a six days ago.
    await clock.advance(9 * 24 * HOUR - (clock.now() - new VirtualClock().now()) + 60_000);
    for (let tries = 0; tries < 3_000 && alerts.length === 0; tries += 1) await delay(10);
    t.deepEqual(alerts, [{ name: 'restore.overdue', path: 'b', state: 'firing' }]);
  },
);
