import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { type AlertRaised, alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { dataChecked } from '../../../../src/core/host/integrity/actor.ts';
import { checkFolder } from '../../../../src/core/host/integrity/check.ts';
import type { DataCheckResult } from '../../../../src/core/host/integrity/findings.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../../src/core/host/runtime/runtime.ts';
import type { WitnessSettings } from '../../../../src/core/host/witness/settings.ts';
import { LogWriter } from '../../../../src/core/kernel/log/log-writer.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../../support/cli.ts';
import { door } from '../../../support/door.ts';
import { rewritePast } from '../../../support/stolen-key.ts';
import { tempDir } from '../../../support/temp.ts';
import { PATIENCE_MS } from '../../../support/until.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { status, webhook } from '../../../support/webhook.ts';

const doors = definePlugin({
  name: 'doors',
  options: z.strictObject({}),
  register(ctx) {
    ctx.actor(door);
    ctx.effect('lamp.on', () => undefined, { onRecovery: 'retry' });
    ctx.effect('bell.ring', () => undefined, { onRecovery: 'retry' });
  },
});

interface Watched {
  readonly runtime: Runtime;
  readonly clock: VirtualClock;
  readonly alerts: AlertRaised[];
  /** Adds records, and lets the sender look for signatures. */
  readonly work: () => Promise<void>;
  readonly fact: () => { state: string; ok?: boolean; text: string; sent: number; behind: number };
  /** Moves the clock until something holds. */
  readonly until: (holds: () => boolean, stepMs?: number) => Promise<void>;
}

async function watched(t: ExecutionContext, dataDir: string, witness: WitnessSettings): Promise<Watched> {
  const clock = new VirtualClock();
  const { plugins } = resolveConfig({ plugins: [doors()] });
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins, dataDir, clock, signEvery: 20, logger, witness });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const alerts: AlertRaised[] = [];
  runtime.services.bus.subscribe(alertRaised, 'test', ({ payload }) => void alerts.push(payload));
  const { actors, log } = runtime.services;
  return {
    runtime,
    clock,
    alerts,
    async work() {
      for (let round = 0; round < 60; round += 1)
        actors.deliver(`test.door/${round}`, { type: 'OPEN', by: `${round}` });
      await log.whenDurable(log.lastSeq());
      await clock.advance(2_000);
    },
    fact: () => runtime.health().witness as ReturnType<Watched['fact']>,
    async until(holds, stepMs = 0) {
      for (const end = performance.now() + PATIENCE_MS; !holds() && performance.now() < end; ) {
        await clock.advance(stepMs);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      t.true(holds());
    },
  };
}

const heads = (file: string) =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { seq: number; hash: string });

test('[C9] with the stolen key the past is rewritten so that log verify passes; the witness names it', async (t) => {
  const dir = tempDir(t);
  const file = join(tempDir(t), 'heads.jsonl');
  const { runtime, work, fact, until } = await watched(t, dir, { file });
  t.like(fact(), { state: 'unknown' });
  await work();
  await until(() => fact().state === 'ok');
  t.true(fact().sent >= 20);
  await runtime.stop('test');
  const sent = heads(file);
  t.is(sent.at(-1)?.seq, runtime.services.log.lastSeq(), 'the last head is that of the stop');
  const verify = (...words: string[]) => call(['log', 'verify', dir, ...words], { cwd: dir });
  const whole = await verify('--witness', file);
  t.is(whole.code, 0, whole.err);
  t.regex(whole.out, new RegExp(`Witness: ${sent.length} heads .* match up to record ${sent.at(-1)?.seq}`));

  rewritePast(dir, 30, (body) => body.replace('"by":"', '"by":"not '));
  const alone = await verify();
  t.is(alone.code, 0, `nothing here can tell: ${alone.err}`);
  const { code, err } = await verify('--witness', file);
  t.is(code, 1);
  t.regex(err, /^HF_LOG_REWRITTEN/);
  const before = sent.filter(({ seq }) => seq < 30).at(-1)?.seq ?? 0;
  const after = sent.find(({ seq }) => seq >= 30)?.seq;
  t.regex(err, new RegExp(`Records ${before + 1} to ${after} are not those`));

  // The instance itself finds it, too.
  const next = await watched(t, dir, { file });
  const checked = Promise.withResolvers<DataCheckResult>();
  next.runtime.services.bus.subscribe(dataChecked, 'test', ({ payload }) => checked.resolve(payload));
  await next.clock.advance(5_000);
  const { findings } = await checked.promise;
  t.like(
    findings.find(({ kind }) => kind === 'damaged'),
    { file: 'log.db', records: { from: before + 1, to: after } },
  );
});

test('[C9] a witness that is a pipe nobody reads is told, and holds up no stop', async (t) => {
  const dir = tempDir(t);
  const file = join(tempDir(t), 'pipe');
  execFileSync('mkfifo', [file]);
  const { runtime, work, fact, until } = await watched(t, dir, { file });
  await work();
  await until(() => fact().ok === false, 1_000);
  t.like(fact(), { state: 'unreachable', sent: 0 });
  await runtime.stop('test');
});

test('[C9] the configuration names the witness that log verify compares with', async (t) => {
  const dir = tempDir(t);
  const file = join(dir, 'heads.jsonl');
  const data = join(dir, 'data');
  const { runtime, work } = await watched(t, data, { file });
  await work();
  await runtime.stop('test');
  const source = new URL('../../../../src/index.ts', import.meta.url).href;
  writeFileSync(
    join(dir, 'plugins.config.ts'),
    `import { defineConfig } from '${source}';
     export default defineConfig({ plugins: [], data: { dir: 'data', witness: { file: 'heads.jsonl' } } });`,
  );
  t.regex((await call(['log', 'verify'], { cwd: dir })).out, /Witness: \d+ heads/);
  rewritePast(data, 30, (body) => body.replace('"by":"', '"by":"not '));
  t.regex((await call(['log', 'verify'], { cwd: dir })).err, /^HF_LOG_REWRITTEN/);
});

test('[C9] a witness that cannot be reached is told by health and alert, and gets every head when it is back', async (t) => {
  const dir = tempDir(t);
  const mount = join(tempDir(t), 'mount');
  const file = join(mount, 'heads.jsonl');
  const { work, fact, until, alerts } = await watched(t, dir, { file });
  await work();
  await until(() => alerts.length > 0, 60_000);
  t.like(fact(), { ok: false, state: 'unreachable' });
  t.true(fact().behind > 20);
  t.like(alerts[0], { name: 'witness.unreachable', severity: 'warning', labels: { state: 'firing' } });
  mkdirSync(mount);
  await until(() => fact().state === 'ok', 60_000);
  t.like(alerts[1], { name: 'witness.unreachable', labels: { state: 'resolved' } });
  t.is(heads(file).at(-1)?.seq, fact().sent);
  rmSync(mount, { recursive: true });
});

test('[C9] a witness that its sender is about to write is no damage; one without a head is', async (t) => {
  const dir = tempDir(t);
  const file = join(tempDir(t), 'heads.jsonl');
  const { runtime, work } = await watched(t, dir, { file });
  await work();
  await runtime.stop('test');
  const lines = readFileSync(file, 'utf8');
  const check = async () => {
    const steps = checkFolder({
      dataDir: dir,
      archives: join(dir, 'archive'),
      overwritten: [],
      witness: file,
      isTrial: true,
    });
    for (let step = await steps.next(); ; step = await steps.next())
      if (step.done) return step.value.result.findings.filter(({ kind }) => kind === 'damaged');
  };
  writeFileSync(file, '');
  setTimeout(() => writeFileSync(file, lines), 300);
  t.deepEqual(await check(), []);
  writeFileSync(file, '');
  t.regex((await check())[0]?.reason ?? '', /holds no head/);
});

test('[C9,R32] a webhook gets the heads with its token, is tried again after a failure, and shows no secret', async (t) => {
  const dir = tempDir(t);
  const hook = await webhook(t);
  hook.behave(status(503));
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'open-sesame\n');
  chmodSync(tokenFile, 0o600);
  const { work, fact, until } = await watched(t, dir, { url: hook.url, tokenFile });
  await work();
  await until(() => fact().state === 'unreachable');
  t.regex(fact().text, /it answered 503/);
  t.notRegex(JSON.stringify(fact()), /canary|sesame/);
  hook.behave(status(200));
  hook.received.length = 0;
  await until(() => fact().state === 'ok', 1_000);
  t.is(hook.received[0]?.headers.authorization, 'Bearer open-sesame');
  await until(() => hook.json().at(-1).heads.at(-1).seq === fact().sent);
});

test('[C9] a folder as a witness has the heads of each day in a file, keeps so many days, and names a rewritten past', async (t) => {
  const dir = tempDir(t);
  const folder = tempDir(t);
  const old = ['heads-2024-01-01.jsonl', 'heads-2025-12-30.jsonl', 'heads-2025-12-31.jsonl', 'notes.txt'];
  for (const name of old) writeFileSync(join(folder, name), '');
  const first = await watched(t, dir, { folder, keepDays: 2 });
  await first.work();
  await first.until(() => first.fact().state === 'ok');
  // The clock begins on the first of January 2026.
  const today = join(folder, 'heads-2026-01-01.jsonl');
  t.is(heads(today).at(-1)?.seq, first.fact().sent);
  await first.until(() => readdirSync(folder).length === 3);
  t.deepEqual(readdirSync(folder).toSorted(), [
    'heads-2025-12-31.jsonl',
    'heads-2026-01-01.jsonl',
    'notes.txt',
  ]);
  first.clock.jump(86_400_000);
  await first.work();
  const tomorrow = join(folder, 'heads-2026-01-02.jsonl');
  await first.until(() => existsSync(tomorrow) && readFileSync(tomorrow, 'utf8').endsWith('\n'));
  await first.runtime.stop('test');

  const verify = () => call(['log', 'verify', dir, '--witness', folder], { cwd: dir });
  const whole = await verify();
  t.is(whole.code, 0, whole.err);
  t.regex(whole.out, new RegExp(`Witness: ${heads(today).length + heads(tomorrow).length} heads`));
  rewritePast(dir, 30, (body) => body.replace('"by":"', '"by":"not '));
  const { code, err } = await verify();
  t.is(code, 1);
  t.regex(err, /^HF_LOG_REWRITTEN/);
});

test('[C9] a log that grows slowly is signed all the same, so that each day has a head', (t) => {
  const signed = (signAfterMs: number) => {
    const dataDir = tempDir(t);
    const writer = new LogWriter({ dataDir, signEvery: 1_000, signAfterMs });
    const row = ['test.door/1', 'c', JSON.stringify({ seq: 1, at: 1 })];
    writer.commit({ id: 0, firstSeq: 1, rows: row, blobs: [] });
    const reader = new SqliteReader(dataDir);
    t.teardown(() => {
      reader.close();
      writer.close();
    });
    return reader.newestSignedSeq();
  };
  t.is(signed(60_000), 0);
  t.is(signed(0), 1);
});

test('[C11] a witness beyond this machine needs https', (t) => {
  const config = (url: string) => resolveConfig({ plugins: [], data: { witness: { url } } }, { env: {} });
  t.throws(() => config('http://witness.example.org/heads'), { code: 'HF_CONFIG_SETTING' });
  t.like(config('https://witness.example.org/heads').witness, { url: 'https://witness.example.org/heads' });
  t.notThrows(() => config('http://127.0.0.1:9/heads'));
});
