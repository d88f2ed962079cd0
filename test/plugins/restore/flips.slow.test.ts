import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { z } from 'zod';
import type { ScratchStores } from '../../../src/core/contracts/memory-store.ts';
import { ScratchStoresToken } from '../../../src/core/contracts/memory-store.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { memoryStore } from '../../../src/plugins/memory-store/index.ts';
import { ProgressBoard } from '../../../src/plugins/restore/steps.ts';
import { compare } from '../../../src/plugins/restore/verify/compare.ts';
import { expectationOf } from '../../../src/plugins/restore/verify/expectation.ts';
import { verdictOf } from '../../../src/plugins/restore/verify/verdict.ts';
import { rest } from '../memory-store/rig.ts';
import { startDrills } from './rig.ts';

const FLIPS = 500;
const POINTS = 160;

/** The same numbers at each run. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    yield ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

function somePoints() {
  return Array.from({ length: POINTS }, (_, index) => ({
    id: index % 3 === 0 ? `00000000-0000-4000-8000-${String(index).padStart(12, '0')}` : index + 1,
    vector: Array.from({ length: 16 }, (_, place) => Math.sin((index + 1) * (place + 1))),
    ...(index % 20 > 0 && {
      payload: {
        text: `Grüße, memory ${index}: ${'x'.repeat((index * 37) % 900)}`,
        n: index,
        list: [{ k: index % 7 }],
        none: null,
      },
    }),
  }));
}

/** Every byte that a collection of a store keeps, by SQLite itself and not by what is tested. */
function bytesOf(file: string): string {
  const db = new DatabaseSync(file, { readOnly: true });
  const place = db.prepare("SELECT place FROM collections WHERE name = 'memory'").get()?.place;
  const rows = db
    .prepare(
      `SELECT typeof(id) AS type, id, hex(vector) AS vector, typeof(payload) AS kind, hex(payload) AS payload
       FROM points_${place} ORDER BY id`,
    )
    .all();
  db.close();
  return JSON.stringify(rows);
}

/** The share of a snapshot's bytes that belong to rows of points, as SQLite tells it. */
function contentShare(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true });
  const of = (what: string, where = '1') =>
    Number(db.prepare(`SELECT sum(${what}) AS n FROM dbstat WHERE ${where}`).get()?.n);
  const share = of('pgsize - unused', "name = 'points'") / of('pgsize');
  db.close();
  return share;
}

test('[B4] of 500 flipped bits of a snapshot none is proven, and the points alone miss none that changes a byte of them', async (t) => {
  t.timeout(900_000);
  let scratch: ScratchStores | undefined;
  const reader = definePlugin({
    name: 'scratch-reader',
    options: z.strictObject({}),
    requires: [ScratchStoresToken],
    start(services) {
      scratch = services.get(ScratchStoresToken);
    },
    register() {},
  });
  const rig = await startDrills(t, {
    plugins: [memoryStore({ port: 0 }), reader()],
    memory: { missed: 'report' },
  });
  const { url } = rig.runtime.surfaces.memory!;
  await rest(url, 'PUT', '/collections/memory', { vectors: { size: 16, distance: 'Cosine' } });
  await rest(url, 'PUT', '/collections/memory/points', { points: somePoints() });
  const name = await rig.snapshot();
  const record = rig.records.of(name)!;
  const { live, ...stores } = { live: rig.stores.live, at: (at: string) => rig.stores.at(at) };
  const file = join(rig.dataDir, 'memory', 'snapshots', 'memory', name);
  const whole = readFileSync(file);
  const signal = AbortSignal.timeout(880_000);
  const { url: target } = await scratch!.create('flips', 'empty', signal);
  const restored = stores.at(target);
  const verify = () =>
    compare({
      live,
      restored,
      collection: 'memory',
      expectation: expectationOf(rig.records, record, undefined),
      hasFile: true,
      digest: () => rig.records.digest(name, signal),
      record,
      seeds: [],
      fingerprint: ({ id, digest }) => rig.runtime.services.vault.fingerprint([id, digest]),
      listed: 50,
      progress: new ProgressBoard(rig.runtime.services.clock),
      signal,
    });
  const recover = () => restored.recover('memory', live.snapshotUrl('memory', name), signal);
  await recover();
  t.true((await verify()).ok, 'as it was made, it is proven');
  const original = bytesOf(join(rig.dataDir, 'memory', 'memory.db'));
  const seen = { refused: 0, differing: 0, free: 0 };
  const random = numbers(17);
  for (let flip = 0; flip < FLIPS; flip += 1) {
    const bit = Math.floor(random.next().value * whole.length * 8);
    const flipped = Buffer.from(whole);
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    writeFileSync(file, flipped);
    try {
      await recover();
    } catch (error) {
      // The store itself finds it: such a drill fails while recovering.
      t.true(isCoded(error, 'HF_MEMORY_REFUSED'), String(error));
      seen.refused += 1;
      continue;
    }
    const report = await verify();
    t.false(report.ok, `bit ${bit}`);
    t.is(report.file?.state, 'different', `bit ${bit}`);
    const { file: _, ...pointsAlone } = report;
    const isSame = bytesOf(join(rig.dataDir, 'scratch', 'flips', 'memory.db')) === original;
    t.is(verdictOf(pointsAlone, report.restored.count).ok, isSame, `bit ${bit}: ${report.verdict}`);
    seen[isSame ? 'free' : 'differing'] += 1;
  }
  t.log(seen);
  writeFileSync(file, whole);
  const expected = contentShare(file) * FLIPS;
  t.true(seen.differing + seen.refused > expected * 0.95, `${expected} of the flips hit points`);
  t.true(seen.differing > FLIPS / 3);
  await scratch!.remove('flips', signal);
});
