import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { defineTopic } from '../../../../src/bus/topic.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { HOST, runsOf } from '../../../../src/core/host/lifecycle/records.ts';
import { checkpointSaved } from '../../../../src/core/host/lifecycle/run.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../../src/core/host/runtime/runtime.ts';
import { readRuntimeFile } from '../../../../src/core/host/runtime/runtime-file.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { door } from '../../../support/door.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const knock = defineTopic('test.knock', z.object({ door: z.string(), by: z.string() }), 'Somebody wants in.');
const tick = defineTopic('test.tick', z.object({}), 'A minute has passed.');

/** A plugin with one of everything. */
const doors = definePlugin({
  name: 'doors',
  options: z.strictObject({}),
  register(ctx) {
    ctx.actor(door);
    ctx.route(knock, door, ({ payload }) => [{ key: payload.door, event: { type: 'OPEN', by: payload.by } }]);
    ctx.route(tick, door, () => [{ key: 'clock', event: { type: 'KNOCK' } }]);
    ctx.effect('lamp.on', () => undefined, { onRecovery: 'retry' });
    ctx.effect('bell.ring', () => undefined, { onRecovery: 'retry' });
    ctx.schedule('* * * * *', tick);
    ctx.http({ name: 'doors', port: 0, portVariable: 'NONE' }, (surface, { actors, bus, pendingReplies }) => {
      surface.post('/knock/:by', async (request, reply) => {
        const { by } = request.params as { by: string };
        const correlation = newCorrelation();
        const answer = pendingReplies.open(correlation, 5_000);
        bus.publish(knock, { door: 'front', by }, { correlation });
        const actor = actors.get(door, 'front');
        pendingReplies.settle(correlation, { status: 200, body: { state: String(actor?.value) } });
        const { status, body } = await answer;
        return reply.code(status).send(body);
      });
    });
  },
});

function build(
  t: ExecutionContext,
  dataDir: string,
  options: { clock?: VirtualClock; checkpointEvery?: number } = {},
): Runtime {
  const { plugins } = resolveConfig({ plugins: [doors()] });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }), ...options });
  t.teardown(() => runtime.stop('test over'));
  return runtime;
}

test('[C1] a message becomes an event of the actor that a route names, under the same correlation', async (t) => {
  const dir = tempDir(t);
  const runtime = build(t, dir);
  await runtime.start();
  const { bus, actors, log } = runtime.services;
  const correlation = bus.publish(knock, { door: 'front', by: 'ann' });
  t.is(actors.snapshot('test.door/front')?.value, 'open');
  await log.whenDurable(log.lastSeq());
  const records = await Array.fromAsync(log.read({ actor: 'test.door/front' }));
  t.true(records.every((record) => record.correlation === correlation));
});

test('[C14] a started runtime says in runtime.json, readable by its user alone, who it is and where it listens', async (t) => {
  const dir = tempDir(t);
  const runtime = build(t, dir);
  await runtime.start();
  const file = readRuntimeFile(dir);
  t.like(file, { pid: process.pid, surfaces: runtime.surfaces });
  t.is(statSync(join(dir, 'runtime.json')).mode & 0o777, 0o600);
  const answer = await fetch(`${file?.surfaces.doors?.url}/knock/ann`, { method: 'POST' });
  t.deepEqual(await answer.json(), { state: 'open' });
  await runtime.stop('test');
  t.false(existsSync(join(dir, 'runtime.json')));
});

test("a second runtime on the same folder is refused with the first one's pid, and harms nothing", async (t) => {
  const dir = tempDir(t);
  const first = build(t, dir);
  await first.start();
  await t.throwsAsync(build(t, dir).start(), {
    code: 'HF_LOG_LOCKED',
    message: new RegExp(`process ${process.pid}`),
  });
  t.is(readRuntimeFile(dir)?.pid, process.pid);
  t.notThrows(() => first.services.actors.deliver('test.door/front', { type: 'KNOCK' }));
});

test('[C5] a stop saves the actors, and the next start goes on from there', async (t) => {
  const dir = tempDir(t);
  const first = build(t, dir);
  await first.start();
  first.services.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await first.stop('test');
  const reader = new SqliteReader(dir);
  t.deepEqual(
    reader.snapshots(reader.lastSeq()).map((body) => JSON.parse(body).ref),
    ['runtime.lifecycle/host', 'test.door/front'],
  );
  reader.close();
  const second = build(t, dir);
  await second.start();
  t.like(second.services.actors.snapshot('test.door/front'), { value: 'open', context: { opened: 1 } });
});

test('[C5] actors are saved every so many records, and the digest is published', async (t) => {
  const runtime = build(t, tempDir(t), { checkpointEvery: 20 });
  await runtime.start();
  const { bus, actors } = runtime.services;
  const saved = new Promise((resolve) =>
    bus.subscribe(checkpointSaved, 'test', ({ payload }) => resolve(payload)),
  );
  for (let i = 0; i < 30; i += 1) actors.deliver(`test.door/${i}`, { type: 'CLOSE' });
  const payload = (await saved) as { digest: string; count: number };
  t.regex(payload.digest, /^[0-9a-f]{64}$/);
  t.is(payload.count, 31, 'the doors, and the life of the runtime');
});

test("a schedule publishes its topic at its times, in UTC, on the runtime's clock", async (t) => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1, 12, 0, 30));
  const runtime = build(t, tempDir(t), { clock });
  await runtime.start();
  clock.jump(29_999);
  t.is(runtime.services.actors.snapshot('test.door/clock'), undefined);
  clock.jump(1);
  t.truthy(runtime.services.actors.snapshot('test.door/clock'));
});

test('[R29] how a run ended is remembered whatever plugins there are, by the log that its checkpoint vouches for', async (t) => {
  const dir = tempDir(t);
  const first = build(t, dir);
  await first.start();
  await first.stop('SIGTERM');
  const second = build(t, dir);
  await second.start();
  const { last, checkpoint } = runsOf(second.services.actors.snapshot(HOST));
  t.like(last, { pid: process.pid, reason: 'SIGTERM' });
  t.regex(checkpoint?.digest ?? '', /^[0-9a-f]{64}$/);
});

test('[C12] a start that fails leaves the folder free for the next one', async (t) => {
  const dir = tempDir(t);
  const broken = definePlugin({
    name: 'broken',
    options: z.strictObject({}),
    start: () => Promise.reject(new Error('no network')),
    register() {},
  });
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: [doors(), broken()] }).plugins,
    dataDir: dir,
    logger: createLogger({ level: 'silent' }),
  });
  await t.throwsAsync(runtime.start(), { code: 'HF_PLUGIN_FAILED', message: /broken.*no network/ });
  await t.notThrowsAsync(build(t, dir).start());
});
