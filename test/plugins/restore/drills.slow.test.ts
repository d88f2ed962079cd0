import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { alertRaised } from '../../../src/core/contracts/alerts.ts';
import { backupRequested } from '../../../src/plugins/memory/backups/actor.ts';
import { memoryStore } from '../../../src/plugins/memory-store/index.ts';
import { refuseLiveAddress } from '../../../src/plugins/restore/safety.ts';
import { call, writeConfig } from '../../support/cli.ts';
import type { Scope } from '../../support/scope.ts';
import { until } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { FieldStore } from './field-store.ts';
import { type DrillRig, startDrills } from './rig.ts';

const RECOVER = 'PUT /collections/memory/snapshots/recover';
const SCROLL = 'POST /collections/memory/points/scroll';

/** A store elsewhere with a recorded snapshot, and an instance for drills, both of the field's manners. */
async function field(
  t: Scope,
  { points = 30, options = {}, clock }: { points?: number; options?: object; clock?: VirtualClock } = {},
) {
  const live = await FieldStore.start(t);
  const scratch = await FieldStore.start(t);
  live.fill(points);
  const rig = await startDrills(t, {
    memory: { url: live.url, seeds: { ids: [1, 2, 3] } },
    restore: { scratchUrl: scratch.url, ...options },
    ...(clock && { clock }),
  });
  const name = await rig.snapshot();
  return { live, scratch, rig, name };
}

/** Changes a snapshot's file as a damaged disk, or a person, would. */
function damage(store: FieldStore, name: string, change: (snapshot: any) => void): void {
  const snapshot = JSON.parse(store.snapshots.get(name)!);
  change(snapshot);
  store.snapshots.set(name, JSON.stringify(snapshot));
}

const alertsOf = ({ runtime }: DrillRig) => {
  const names: string[] = [];
  runtime.services.bus.subscribe(alertRaised, 'test', ({ payload }) => void names.push(payload.name));
  return names;
};

const listFolder = ({ dataDir }: DrillRig) => join(dataDir, 'backups', 'content');

test.serial(
  '[B2,B4] path a is proven point by point against the record of its snapshot; what was written since is told apart',
  async (t) => {
    const { live, scratch, rig, name } = await field(t);
    const before = live.calls.length;
    const { points } = live.collections.get('memory')!;
    points.delete(7);
    points.set(500, { id: 500, vector: [1, 1, 1], payload: {} });
    points.set(9, { id: 9, vector: [0, 0, 0], payload: { text: 'another' } });
    const result = await rig.drill();
    t.like(result, { outcome: 'completed', source: { kind: 'snapshot', name, count: 30 } });
    t.is(
      result.report?.verdict,
      '30 points, each with the id, payload and vector recorded when it was made, 3 seeds among them; its file has the bytes that were recorded.',
    );
    t.like(result.report, {
      expected: { by: 'made', least: 30, most: 30 },
      restored: { count: 30, approximate: 31 },
      live: { count: 30 },
      file: { state: 'same' },
      points: { same: 30, changed: { total: 0 }, digest: { state: 'same' } },
      seeds: { checked: 3, missing: [], changed: [] },
      drift: {
        added: { total: 1, ids: [500] },
        deleted: { total: 1, ids: [7] },
        changed: { total: 1, ids: [9] },
      },
    });
    t.deepEqual([...scratch.collections.keys()], []);
    t.false(
      live.calls.slice(before).some((call) => /^(PUT|DELETE|PATCH)/.test(call)),
      'the live store is only read',
    );
  },
);

test.serial(
  '[B4] one changed payload, one changed number of a vector, a lost, an added and a renamed point: each is named, none is proven',
  async (t) => {
    const { live, rig, name } = await field(t);
    const whole = live.snapshots.get(name)!;
    const damages: [(snapshot: any) => void, RegExp][] = [
      [
        ({ points }) => (points[14].payload.text = 'memorY 15'),
        /^point 15 is not as recorded when it was made; its file/,
      ],
      [({ points }) => (points[14].vector[2] += 1e-12), /^point 15 is not as recorded/],
      [({ points }) => (points[14].payload.more = null), /^point 15 is not as recorded/],
      [
        ({ points }) => points.splice(14, 1),
        /^29 points instead of 30, as recorded when it was made; point 15 is missing/,
      ],
      [({ points }) => points.push({ ...points[14], id: 99 }), /^31 points .*; point 99 is not recorded/],
      [
        ({ points }) => (points[14].id = 15.5 + 83.5),
        /; point 15 is missing|point 15 is missing; point 99 is not recorded/,
      ],
      [({ points }) => (points[1].payload.text = 'corrupted'), /point 2 is not as .*; seeds are changed: 2/],
      [({ points }) => points.splice(2, 1), /point 3 is missing.*; seeds are missing: 3/],
      [(snapshot) => (snapshot.size = 4), /its vectors are .*"size":4.* instead of .*"size":3/],
      [({ points }) => points.reverse(), /^its file has other bytes than were recorded\.$/],
    ];
    for (const [change, verdict] of damages) {
      live.snapshots.set(name, whole);
      damage(live, name, change);
      const { outcome, failure, report } = await rig.drill();
      t.is(outcome, 'failed', String(change));
      t.is(failure?.phase, 'verifying');
      t.regex(report!.verdict, verdict);
      t.regex(report!.verdict, /its file has other bytes/);
      t.deepEqual(report!.drift.changed, { total: 0, ids: [] }, 'nothing was written since');
    }
  },
);

test.serial('[B4] two hundred overwritten payloads are counted, and the first of them named', async (t) => {
  const { live, rig, name } = await field(t, { points: 300 });
  const alerts = alertsOf(rig);
  damage(live, name, ({ points }) => {
    for (const point of points.slice(50, 250)) point.payload = { text: 'overwritten' };
  });
  const { outcome, report } = await rig.drill();
  t.is(outcome, 'failed');
  t.regex(
    report!.verdict,
    /^200 points \(51, 52, .*, 70, and 180 more\) are not as recorded when it was made/,
  );
  t.like(report, { points: { same: 100, changed: { total: 200 } }, drift: { changed: { total: 0 } } });
  t.is(report!.points.changed.ids.length, 50);
  t.deepEqual(alerts, ['restore.drill_failed']);
});

test.serial(
  '[B4] a file that cannot be read is unknown, and says so; then the points alone decide',
  async (t) => {
    const { live, rig, name } = await field(t);
    const refused = { status: 501, text: 'it lies in an object store' };
    const file = (of: string) => `GET /collections/memory/snapshots/${of}`;
    // The scratch instance fetches it, and then it is read again.
    let reads = 0;
    live.mishap = (call) => {
      reads += Number(call === file(name));
      return call === file(name) && reads > 1 ? refused : undefined;
    };
    const now = await rig.drill();
    t.is(now.outcome, 'completed', now.failure?.reason);
    t.like(now.report?.file, { state: 'unknown' });
    t.regex(
      now.report!.verdict,
      /; the bytes of its file are unknown: it cannot be read now .*501: it lies in an object store/,
    );

    live.mishap = (call) => (call.startsWith('GET /collections/memory/snapshots/') ? refused : undefined);
    const other = await rig.snapshot();
    live.mishap = () => undefined;
    const { report, outcome } = await rig.drill('a', other);
    t.is(outcome, 'completed');
    t.regex(
      report!.verdict,
      /the bytes of its file are unknown: it could not be read when it was recorded .*501/,
    );
    damage(live, other, ({ points }) => (points[20].payload.text = 'damaged'));
    const damaged = await rig.drill('a', other);
    t.is(damaged.outcome, 'failed');
    t.regex(damaged.report!.verdict, /^point 21 is not as recorded when it was made\.$/);
  },
);

test.serial(
  '[B4] without the list of its record a snapshot is proven by the digest alone, or not at all',
  async (t) => {
    const { live, rig, name } = await field(t);
    const { points } = live.collections.get('memory')!;
    points.set(9, { id: 9, vector: [0, 0, 0], payload: { text: 'another' } });
    const [list = ''] = readdirSync(listFolder(rig));
    const path = join(listFolder(rig), list);
    const whole = readFileSync(path, 'utf8');
    for (const spoil of [
      () => writeFileSync(path, whole.replace('"fp_', '"fp_0')),
      () => writeFileSync(path, whole.slice(0, 400)),
      () => writeFileSync(path, `${whole}[31,"fp_00"]\n`),
      () => rmSync(path),
    ]) {
      spoil();
      const { outcome, report } = await rig.drill();
      t.is(outcome, 'completed', report?.verdict);
      t.like(report, {
        points: { same: 30, digest: { state: 'same' } },
        drift: { changed: { total: 1, ids: [9] } },
      });
      t.regex(report!.points.unlisted!, /cannot be used: it is (gone|damaged|not the one that was recorded)/);
    }
    damage(live, name, ({ points: all }) => (all[14].vector[0] = 0.123));
    const { outcome, report } = await rig.drill();
    t.is(outcome, 'failed');
    t.regex(
      report!.verdict,
      /the digest of all points differs: .*; which points these should be is unknown: .*it is gone/,
    );
  },
);

test.serial(
  '[B4] a point that is written while the snapshot is made may have either state; any other state is not known to be right',
  async (t) => {
    const { live, rig } = await field(t);
    const { points } = live.collections.get('memory')!;
    const write = (id: number, text: string) => points.set(id, { id, vector: [1, 2, 3], payload: { text } });
    const during = async (before: () => void, after: () => void) => {
      live.before = (call) => {
        if (call !== 'POST /collections/memory/snapshots') return;
        before();
        queueMicrotask(after);
      };
      const made = await rig.snapshot();
      live.before = () => {};
      return made;
    };
    const once = await during(
      () => {
        write(4, 'written before the snapshot saw it');
        points.delete(5);
        write(600, 'new');
      },
      () => points.delete(6),
    );
    const record = rig.records.of(once)!;
    t.like(record.content, { count: 30, countAfter: 29, written: 4, digest: undefined });
    const { outcome, report } = await rig.drill('a', once);
    t.is(outcome, 'completed', report?.verdict);
    t.like(report, {
      expected: { least: 29, most: 30 },
      points: { digest: { state: 'unknown' }, unsettled: { total: 0 } },
    });

    const twice = await during(
      () => write(4, 'what the snapshot holds'),
      () => write(4, 'what was read afterwards'),
    );
    const unknown = await rig.drill('a', twice);
    t.is(unknown.outcome, 'failed');
    t.regex(unknown.report!.verdict, /^point 4 is unknown, because of writes while it was made/);
    // What was not written is as certain as ever.
    damage(live, once, ({ points: all }) => (all[20].payload.text = 'damaged'));
    t.regex((await rig.drill('a', once)).report!.verdict, /^point \d+ is not as recorded when it was made/);
    // Without its list, nobody knows the two states.
    for (const file of readdirSync(listFolder(rig))) rmSync(join(listFolder(rig), file));
    t.is((await rig.drill('a', once)).outcome, 'failed');
  },
);

test.serial(
  '[B4] a snapshot that somebody else made is recorded when it is first seen, and compared with that',
  async (t) => {
    const live = await FieldStore.start(t);
    const scratch = await FieldStore.start(t);
    live.fill(20);
    const clock = new VirtualClock();
    const rig = await startDrills(t, {
      memory: { url: live.url, missed: 'report' },
      restore: { scratchUrl: scratch.url },
      clock,
    });
    const first = live.snapshot();
    t.is(rig.records.of(first), undefined);
    // The look of every five minutes.
    for (let tries = 0; tries < 200 && !rig.records.of(first); tries += 1) {
      await clock.advance(30_000);
      await delay(20);
    }
    const record = rig.records.of(first)!;
    t.is(record.at, Date.parse('2026-11-21T02:30:00Z'), "made at the store's time, not when it was seen");
    t.true(record.seenAt! < clock.now() + 1);
    t.regex(record.sha256!, /^[0-9a-f]{64}$/);
    const { points } = live.collections.get('memory')!;
    points.delete(3);
    const proven = await rig.drill('a', first);
    t.is(proven.outcome, 'completed', proven.failure?.reason);
    t.like(proven.report, { expected: { by: 'seen', at: record.seenAt }, drift: { deleted: { ids: [3] } } });
    t.regex(proven.report!.verdict, /recorded when it was first seen; its file has the bytes/);

    damage(live, first, ({ points: all }) => (all[11].payload.text = 'damaged after it was seen'));
    const damaged = await rig.drill('a', first);
    t.regex(
      damaged.report!.verdict,
      /^point 12 is not as recorded when it was first seen; .*file has other bytes/,
    );
    // Damaged before anybody saw it: what cannot be known is not proven.
    const second = live.snapshot();
    damage(live, second, ({ points: all }) => (all[11].payload.text = 'damaged before it was seen'));
    const unknown = await rig.drill('a', second);
    t.is(unknown.outcome, 'failed');
    t.like(unknown.report, { file: { state: 'same' } });
    t.regex(unknown.report!.verdict, /^point 13 is not as .* first seen; .*: nobody knows\.$/);
    // A second look keeps what was recorded first.
    const kept = rig.records.of(second)!;
    await rig.records.recordSeen(AbortSignal.timeout(10_000));
    t.deepEqual(rig.records.of(second), kept);
  },
);

test.serial(
  '[B4] a snapshot was made when its record says, whatever time the store gives its file',
  async (t) => {
    const { live, rig, name } = await field(t);
    const newer = await rig.snapshot();
    live.toldTimes.set(name, '2027-01-01T00:00:00').set(newer, '2020-01-01T00:00:00');
    const { source, report } = await rig.drill();
    t.like(source, { name: newer, madeAt: '2026-11-21T02:30:01' });
    t.is(report?.expected.at, Date.parse('2026-11-21T02:30:01Z'));
  },
);

test.serial(
  '[B4] where nothing is recorded the live store is the only witness, and its writes are told apart from damage by no one',
  async (t) => {
    const { live, rig } = await field(t);
    const name = live.snapshot('by-hand.snapshot');
    const same = await rig.drill('a', name);
    t.is(same.outcome, 'completed');
    t.regex(
      same.report!.verdict,
      /in the live store now.*; the bytes of its file are unknown: nothing was recorded/,
    );
    damage(live, name, ({ points }) => (points[4].vector = [9, 9, 9]));
    const differing = await rig.drill('a', name);
    t.regex(
      differing.report!.verdict,
      /^point 5 is not as in the live store now; nothing recorded what it held/,
    );
    const { points } = live.collections.get('memory')!;
    let scrolls = 0;
    live.before = (call) => {
      if (call === SCROLL) scrolls += 1;
      // Between the walk and the second look.
      if (scrolls === 0 || call !== 'POST /collections/memory/points') return;
      points.set(5, { id: 5, vector: [0, 0, 0], payload: { text: 'written meanwhile' } });
    };
    const moving = await rig.drill('a', name);
    t.is(moving.outcome, 'completed', moving.report?.verdict);
    t.like(moving.report, { points: { same: 29, changed: { total: 0 } }, moving: { total: 1, ids: [5] } });
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
  '[B6] the command names each phase as it begins, and ends with the clean-up of a drill that was interrupted',
  async (t) => {
    const { scratch, rig, name } = await field(t);
    const source = (path: string) => new URL(`../../../src/${path}`, import.meta.url).pathname;
    const plugins = ['memory', 'restore'].map(
      (plugin) => `import { ${plugin} } from '${source(`plugins/${plugin}/index.ts`)}';`,
    );
    writeConfig(rig.dataDir, 'export default defineConfig({ plugins: [memory(), restore()] });', plugins);
    scratch.mishap = (call) => (call === RECOVER ? 'hang' : undefined);
    const interrupted = new AbortController();
    const noted: string[] = [];
    const { code, out, err } = await call(['restore', 'drill', '--data-dir', rig.dataDir], {
      cwd: rig.dataDir,
      interrupted: interrupted.signal,
      onErr: (text) => {
        noted.push(text.slice(text.indexOf(' s  ') + 4).trim());
        if (text.includes('recovering')) interrupted.abort('SIGINT');
      },
    });
    t.is(code, 1, err);
    const recovering = noted.findIndex((text) => text.includes('recovering'));
    t.is(noted[recovering], `recovering into configured scratch instance at ${scratch.url}`);
    t.false(
      noted.slice(recovering + 1).some((text) => text.includes('into')),
      err,
    );
    t.true(out.includes(name));
    t.regex(out, /NOT PROVEN, failed while recovering: it was interrupted by SIGINT/);
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
      live.calls.filter((one) => !one.startsWith('GET') && one !== SCROLL),
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
    const nothing = await rig.drill();
    t.like(nothing.failure, { phase: 'choosing', code: 'HF_RESTORE_NOTHING' });
    t.regex(nothing.failure!.reason, /has no collection memory; .*backup seed --synthetic/);
    t.is(
      (await fetch(`${url}/collections/memory`)).status,
      404,
      'a drill writes nothing into the live store',
    );
    await put('/collections/memory', { vectors: { size: 3, distance: 'Cosine' } });
    const points = Array.from({ length: 600 }, (_, id) => ({ id, vector: [id + 1, 1, 1], payload: { id } }));
    await put('/collections/memory/points?wait=true', { points });
    for (const path of ['a', 'b'] as const) {
      const result = await rig.drill(path);
      t.is(result.outcome, 'completed', result.failure?.reason);
      t.like(result.report, {
        expected: { by: path === 'a' ? 'made' : 'copied' },
        restored: { count: 600 },
        points: { same: 600, digest: { state: 'same' } },
      });
      const scratch = /http:\S+/.exec(result.place!)![0];
      await t.throwsAsync(fetch(scratch), undefined, 'nothing listens there any more');
    }
    t.deepEqual(readdirSync(join(rig.dataDir, 'scratch')), []);

    // From then on it is the newest recorded copy of the volume that is restored.
    const { bus, clock } = rig.runtime.services;
    bus.publish(backupRequested, { kind: 'volume', at: clock.now(), by: 'command' });
    let copies = await rig.records.volumeCopies();
    while (copies.length === 0) {
      await delay(20);
      copies = await rig.records.volumeCopies();
    }
    const [{ record, file }] = copies as [(typeof copies)[0]];
    const more = { points: [{ id: 700, vector: [1, 1, 1], payload: {} }] };
    await put('/collections/memory/points?wait=true', more);
    const copy = await rig.drill('b');
    t.is(copy.outcome, 'completed', copy.failure?.reason ?? copy.report?.verdict);
    t.like(copy, { source: { kind: 'volume', name: record.name, count: 600 } });
    t.like(copy.report, {
      expected: { by: 'made' },
      file: { state: 'same' },
      points: { same: 600, digest: { state: 'same' } },
      drift: { added: { total: 1, ids: [700] } },
    });
    const bytes = readFileSync(file);
    const at = bytes.lastIndexOf('"id":599');
    t.true(at > 0);
    bytes.write('"id":598', at);
    writeFileSync(file, bytes);
    const damaged = await rig.drill('b', record.name);
    t.is(damaged.outcome, 'failed');
    t.regex(damaged.report?.verdict ?? '', /point 599 is not as recorded when it was made.*other bytes/);
    const unknown = await rig.drill('b', 'memory-2020-01-01-00-00-00.db');
    t.regex(unknown.failure?.reason ?? '', /no recorded copy of the volume is called/);
    const text = await rig.runtime.services.metrics.text();
    t.regex(text, /holdfast_restore_drill_ok\{path="a"\} 1/);
    t.regex(text, /holdfast_restore_drill_ok\{path="b"\} 0/);
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
    rig.runtime.services.bus.subscribe(alertRaised, 'test', ({ payload: { name, labels } }) => {
      // The store's own backups have no time to be made while the clock leaps.
      if (name.startsWith('restore.')) alerts.push({ name, ...labels });
    });
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
    await until('it is overdue', () => alerts.length > 0);
    t.deepEqual(alerts, [{ name: 'restore.overdue', path: 'b', state: 'firing' }]);
  },
);
