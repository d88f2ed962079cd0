import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { backupRequested } from '../../../src/plugins/memory/backups/actor.ts';
import type { ListAnswer } from '../../../src/plugins/memory/backups/answers.ts';
import { inspectionResult, memoryChecks } from '../../../src/plugins/memory/doctor.ts';
import type { Scope } from '../../support/scope.ts';
import { read } from '../../support/until.ts';
import { fill, type MemoryRig, startMemory } from '../memory-store/rig.ts';

const signal = AbortSignal.timeout(120_000);

/** Waits until what is read is so. */
const until = <T>(look: () => Promise<T>, isSo: (value: T) => boolean): Promise<T> =>
  read('that', look, isSo, 20);

const post = async <T>({ dataDir }: MemoryRig, path: string, body: object = {}): Promise<T> =>
  (await postControl(dataDir, `/memory/backup/${path}`, body, signal)).body as T;

async function doctor({ dataDir, runtime }: MemoryRig) {
  const { memory } = runtime.health();
  const running = { surfaces: {}, facts: { memory } };
  const [check] = memoryChecks;
  return check!.run({ dataDir, signal, running });
}

/** A store with a snapshot and a copy of its volume, each with its record. */
async function backedUp(t: Scope) {
  const rig = await startMemory(t);
  await fill(rig.url, 40);
  await post(rig, 'seed', { ids: [1, 2] });
  const early = await doctor(rig);
  const { name: snapshot } = await post<{ name: string }>(rig, 'snapshot');
  const half = await doctor(rig);
  const { bus, clock } = rig.runtime.services;
  bus.publish(backupRequested, { kind: 'volume', at: clock.now(), by: 'command' });
  const { backups } = await until(
    () => post<ListAnswer>(rig, 'list'),
    (found) => found.backups.some(({ kind, recorded }) => kind === 'volume' && recorded),
  );
  const { name: copy } = backups.find(({ kind }) => kind === 'volume')!;
  return { rig, early, half, backups, snapshot, copy };
}

test('[B4,B10] doctor says ok only of a snapshot and a copy that were read again, with the bytes that were recorded', async (t) => {
  const { rig, early, half, backups, snapshot, copy } = await backedUp(t);
  t.like(early, {
    state: 'unknown',
    found: 'not checked: no good snapshot was made yet; no good volume was made yet',
  });
  t.is(half.state, 'unknown', half.found);
  t.regex(half.found, /^not checked: no good volume was made yet; .*\.snapshot is there/);
  t.like(
    backups.find(({ kind }) => kind === 'volume'),
    { recorded: true, count: 40 },
  );
  const well = await doctor(rig);
  t.is(well.state, 'ok', well.found);
  t.true(well.found.includes(`${snapshot} is there with the bytes that were recorded; ${copy} is there`));

  const files = [
    [snapshot, join(rig.dataDir, 'memory', 'snapshots', 'memory', snapshot)],
    [copy, join(rig.dataDir, 'backups', 'volume', copy)],
  ] as const;
  for (const [name, file] of files) {
    const whole = readFileSync(file);
    const flipped = Buffer.from(whole);
    flipped[whole.length - 1]! ^= 1;
    writeFileSync(file, flipped);
    t.like(await doctor(rig), {
      state: 'fail',
      found: `the file of ${name} has other bytes than were recorded`,
    });
    writeFileSync(file, whole.subarray(0, whole.length - 1));
    t.is((await doctor(rig)).state, 'fail');
    rmSync(file);
    t.like(await doctor(rig), { state: 'fail', found: `${name} is gone` });
    writeFileSync(file, whole);
    t.is((await doctor(rig)).state, 'ok');
  }
  // Nobody looked while no instance answers.
  await rig.runtime.stop('test');
  const away = await doctor(rig);
  t.is(away.state, 'unknown', away.found);
});

test('[B4] what was not read of a backup is unknown, and what differs is told before it', (t) => {
  const none = { seen: [], faults: [], unseen: [] };
  t.is(inspectionResult('x', none).state, 'unknown');
  t.is(inspectionResult('x', { ...none, seen: ['a is there'] }).state, 'ok');
  t.is(inspectionResult('x', { ...none, seen: ['a is there'], unseen: ['b'] }).state, 'unknown');
  t.is(inspectionResult('x', { seen: ['a is there'], faults: ['c is gone'], unseen: ['b'] }).state, 'fail');
});

test('[B4,B10] the list of points of a volume copy is kept as long as the copy is', async (t) => {
  const { rig } = await backedUp(t);
  const lists = readdirSync(join(rig.dataDir, 'backups', 'content'));
  // Snapshot and copy hold the same points.
  t.is(lists.length, 1);
  const [file] = lists.map((name) => join(rig.dataDir, 'backups', 'content', name));
  t.is(readFileSync(file!, 'utf8').trim().split('\n').length, 40);
});
