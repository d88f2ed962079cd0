import { cpSync, existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { type AlertRaised, alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { dataChecked } from '../../../../src/core/host/integrity/actor.ts';
import type { DataCheckResult } from '../../../../src/core/host/integrity/findings.ts';
import { DATA_CHECK } from '../../../../src/core/host/integrity/records.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { pruneStopped } from '../../../../src/core/host/retention/prune-stopped.ts';
import { createRuntime, type Runtime } from '../../../../src/core/host/runtime/runtime.ts';
import { call } from '../../../support/cli.ts';
import { flipBytes, seeded } from '../../../support/damage.ts';
import { door } from '../../../support/door.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const DAY = 86_400_000;

const doors = definePlugin({
  name: 'doors',
  options: z.strictObject({}),
  register(ctx) {
    ctx.actor(door);
    ctx.effect('lamp.on', () => undefined, { onRecovery: 'retry' });
    ctx.effect('bell.ring', () => undefined, { onRecovery: 'retry' });
  },
});

/** Some hundred records, signed in the middle, and a stop unless it is to be killed. */
async function folder(t: ExecutionContext, clock = new VirtualClock()): Promise<string> {
  const dir = tempDir(t);
  const runtime = build(t, dir, clock);
  await runtime.start();
  for (let round = 0; round < 100; round += 1)
    runtime.services.actors.deliver(`test.door/${round % 7}`, {
      type: round % 2 ? 'CLOSE' : 'OPEN',
      by: `${round}`,
    });
  await runtime.services.log.whenDurable(runtime.services.log.lastSeq());
  await runtime.stop('test');
  return dir;
}

function build(t: ExecutionContext, dataDir: string, clock: VirtualClock): Runtime {
  const { plugins } = resolveConfig({ plugins: [doors()] });
  const runtime = createRuntime({
    plugins,
    dataDir,
    clock,
    signEvery: 50,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test over'));
  return runtime;
}

interface Checked {
  readonly runtime: Runtime;
  readonly clock: VirtualClock;
  readonly alerts: AlertRaised[];
  /** Moves the clock until the next check is due, and waits for it. */
  readonly next: (ms: number) => Promise<DataCheckResult>;
  readonly fact: () => { state: string; ok?: boolean; text: string };
}

async function started(t: ExecutionContext, dir: string): Promise<Checked> {
  const clock = new VirtualClock();
  const runtime = build(t, dir, clock);
  await runtime.start();
  const alerts: AlertRaised[] = [];
  runtime.services.bus.subscribe(alertRaised, 'test', ({ payload }) => void alerts.push(payload));
  const fact = () => runtime.health().data as ReturnType<Checked['fact']>;
  return {
    runtime,
    clock,
    alerts,
    async next(ms) {
      const checked = Promise.withResolvers<DataCheckResult>();
      runtime.services.bus.subscribe(dataChecked, 'test', ({ payload }) => checked.resolve(payload));
      await clock.advance(ms);
      const result = await checked.promise;
      // The timer of the next day is armed when this check has ended, and its alert is one more record.
      const isOver = () =>
        !fact().text.includes('a check is under way') &&
        Object.keys(runtime.services.actors.snapshot(DATA_CHECK)?.effects ?? {}).length === 0;
      while (!isOver()) await new Promise((resolve) => setTimeout(resolve, 5));
      return result;
    },
    fact,
  };
}

test('[C9] a folder is unknown until the first check after a start has read everything; then it is ok', async (t) => {
  const { next, fact, alerts } = await started(t, await folder(t));
  t.like(fact(), { state: 'unknown' });
  const result = await next(5_000);
  t.deepEqual(result.findings, []);
  t.true(result.records > 100 && result.files >= 4, `${result.records} records, ${result.files} files`);
  t.like(fact(), { state: 'ok' });
  t.deepEqual(alerts, []);
});

test('[C9] records that were swapped among those that were signed are named within a day', async (t) => {
  const dir = await folder(t);
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec(`
    CREATE TEMP TABLE kept AS SELECT * FROM records WHERE seq IN (20, 21);
    UPDATE records SET (actor, correlation, body, hash) =
      (SELECT actor, correlation, body, hash FROM kept WHERE kept.seq = 41 - records.seq) WHERE seq IN (20, 21)`);
  db.close();
  const { next, fact, alerts, runtime } = await started(t, dir);
  const { findings } = await next(5_000);
  const [finding] = findings.filter(({ records }) => records);
  t.like(finding, { kind: 'damaged', file: 'log.db', records: { from: 20, to: 21 } });
  t.like(fact(), { ok: false, state: 'damaged' });
  t.regex(fact().text, /log\.db, records 20 to 21/);
  t.like(alerts[0], { name: 'data.damaged', severity: 'critical', labels: { state: 'firing' } });
  const { err } = await call(['log', 'show', '21', dir], { cwd: dir });
  t.regex(err, /Do not rely on records 20 to 21/);
  // The next day the same is no news, and each check is one record.
  await next(DAY);
  const before = runtime.services.log.lastSeq();
  await next(DAY);
  t.is(runtime.services.log.lastSeq(), before + 1);
  t.true(alerts.every(({ labels }) => labels.state === 'firing'));
});

test('[C9] records that were swapped behind the last signature keep a start from relying on them', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock();
  const killed = build(t, dir, clock);
  await killed.start();
  for (let round = 0; round < 20; round += 1)
    killed.services.actors.deliver(`test.door/${round}`, { type: 'OPEN', by: `${round}` });
  await killed.services.log.whenDurable(killed.services.log.lastSeq());
  // As a kill leaves it: nothing behind the 50 records of a signature is signed.
  const copy = tempDir(t);
  cpSync(dir, copy, { recursive: true });
  const db = new DatabaseSync(join(copy, 'log.db'));
  const last = Number(db.prepare('SELECT max(seq) AS seq FROM records').get()?.seq);
  db.exec(`
    CREATE TEMP TABLE kept AS SELECT * FROM records WHERE seq IN (${last - 3}, ${last - 2});
    UPDATE records SET (actor, correlation, body, hash) =
      (SELECT actor, correlation, body, hash FROM kept WHERE kept.seq = ${2 * last - 5} - records.seq)
      WHERE seq IN (${last - 3}, ${last - 2})`);
  db.close();
  await t.throwsAsync(build(t, copy, clock).start(), {
    code: 'HF_LOG_CORRUPT',
    message: new RegExp(`Record ${last - 3} cannot be trusted`),
  });
});

test('[C9] 64 flipped bytes in the database are named: by the start, or within a day', async (t) => {
  const dir = await folder(t);
  flipBytes(join(dir, 'log.db'), 64, seeded(64));
  try {
    const { next, fact } = await started(t, dir);
    const { findings } = await next(5_000);
    t.true(findings.some(({ file, kind }) => file === 'log.db' && kind === 'damaged'));
    t.like(fact(), { state: 'damaged' });
  } catch (error) {
    t.regex(String(error), /HF_LOG_(CORRUPT|DAMAGED|UNTRUSTED|FORMAT)/);
  }
});

test('[C9,C10] a damaged archive is moved aside and named with its records', async (t) => {
  const dir = await folder(t, new VirtualClock());
  const { file = '' } = await pruneStopped({
    dataDir: dir,
    request: { olderThanMs: 0 },
    folder: join(dir, 'archive'),
    now: Date.now(),
  });
  t.true(existsSync(file));
  const whole = await started(t, dir);
  t.like(await whole.next(5_000), { archives: 1, findings: [] });
  await whole.runtime.stop('test');
  flipBytes(file, 3, seeded(5));
  const { next } = await started(t, dir);
  const { findings } = await next(5_000);
  const [finding] = findings;
  t.like(finding, {
    kind: 'damaged',
    file: `archive/${readdirSync(join(dir, 'quarantine'))[0]?.replace('.damaged', '')}`,
  });
  t.is(finding?.records?.from, 1);
  t.true(existsSync(join(dir, finding?.movedTo ?? 'none')));
  t.false(existsSync(file));
});

test('[C9] a byte that changed without a new time is damage, until the file is replaced', async (t) => {
  const dir = await folder(t);
  const { next, runtime, fact } = await started(t, dir);
  const secret = join(dir, 'secrets', 'fingerprint-key');
  t.deepEqual((await next(5_000)).findings, []);
  const { atimeMs, mtimeMs } = statSync(secret);
  const bytes = readFileSync(secret);
  flipBytes(secret, 1, seeded(9));
  utimesSync(secret, atimeMs / 1_000, mtimeMs / 1_000);
  for (let day = 0; day < 2; day += 1) {
    const { findings } = await next(DAY);
    t.deepEqual(
      findings.map(({ kind, file }) => `${kind} ${file}`),
      ['damaged secrets/fingerprint-key'],
    );
  }
  t.like(fact(), { ok: false });
  writeFileSync(secret, bytes);
  t.deepEqual((await next(DAY)).findings, []);
  await runtime.stop('test');
});

test('[C9] a database that nobody wrote, and that is another one, is damaged although its pages fit', async (t) => {
  const dir = await folder(t);
  const file = join(dir, 'store.db');
  const db = new DatabaseSync(file);
  db.exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('as it was written')");
  db.close();
  const longAgo = Math.floor(Date.now() / 1_000) - 3_600;
  utimesSync(file, longAgo, longAgo);
  const { next } = await started(t, dir);
  t.deepEqual((await next(5_000)).findings, []);
  const bytes = readFileSync(file);
  bytes.write('AS', bytes.indexOf('as it was written'));
  writeFileSync(file, bytes);
  utimesSync(file, longAgo, longAgo);
  t.like((await next(DAY)).findings[0], { kind: 'damaged', file: 'store.db' });
});

test('[C9] what somebody overwrote while nothing ran is named, whatever file it is', async (t) => {
  const dir = await folder(t);
  flipBytes(join(dir, 'secrets', 'sealing-key'), 1, seeded(3));
  const { next, fact } = await started(t, dir);
  const { findings } = await next(5_000);
  t.like(findings[0], { kind: 'changed', file: 'secrets/sealing-key' });
  t.like(fact(), { state: 'changed' });
  t.deepEqual((await next(DAY)).findings, [], 'once');
});
