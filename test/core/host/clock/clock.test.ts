import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { type AlertRaised, alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { clockMachine } from '../../../../src/core/host/clock/machine.ts';
import { clockCheck } from '../../../../src/core/host/clock/records.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { planPrune } from '../../../../src/core/host/retention/plan.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { impurities } from '../../../../src/core/host/testing/index.ts';
import type { ActorDefinition } from '../../../../src/core/kernel/actors/definition.ts';
import { ClockWatch } from '../../../../src/core/kernel/clock.ts';
import { integritySteps } from '../../../../src/core/kernel/log/integrity.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { Replay } from '../../../../src/core/kernel/replay/verify.ts';
import { door } from '../../../support/door.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
/** How long the door stays open: as long as a transaction of the router stays pending. */
const WINDOW = 120 * SECOND;

const slowDoor = { ...door, input: () => ({ closeAfterMs: WINDOW }) };
const doors = definePlugin({
  name: 'doors',
  options: z.strictObject({}),
  register(ctx) {
    ctx.actor(slowDoor);
    ctx.effect('lamp.on', () => undefined, { onRecovery: 'retry' });
    ctx.effect('bell.ring', () => undefined, { onRecovery: 'retry' });
  },
});

/** One run on a folder. */
async function run(t: ExecutionContext, dataDir: string, clock: VirtualClock) {
  const lines: { msg: string; byMs?: number }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const { plugins } = resolveConfig({ plugins: [doors()] });
  const runtime = createRuntime({
    plugins,
    dataDir,
    clock,
    logger: createLogger({ level: 'warn', destination }),
  });
  t.teardown(() => runtime.stop('test over'));
  const alerts: AlertRaised[] = [];
  const started = runtime.start();
  runtime.services.bus.subscribe(alertRaised, 'test', ({ payload }) => void alerts.push(payload));
  await started;
  const { log, actors } = runtime.services;
  /** Time passes, and what is due by then is durable and done. */
  const pass = async (ms: number) => {
    await clock.advance(ms);
    for (let seq = -1; seq !== log.lastSeq(); ) {
      seq = log.lastSeq();
      await log.whenDurable(seq);
      await clock.advance(0);
    }
  };
  return {
    alerts,
    pass,
    lines: () => lines.filter(({ msg }) => msg === 'clock.jumped').map(({ byMs }) => byMs),
    stop: () => runtime.stop('test'),
    open: () => actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' }),
    door: () => actors.snapshot('test.door/front')?.value,
    fact: () => runtime.health().clock as { ok?: boolean; state: string; text: string },
  };
}

async function recordsOf(dir: string): Promise<LogRecord[]> {
  const reader = new SqliteReader(dir);
  try {
    return await Array.fromAsync(reader.read());
  } finally {
    reader.close();
  }
}

/** Checks the whole log, and that replay decides it again. */
async function isSound(t: ExecutionContext, dir: string): Promise<void> {
  const reader = new SqliteReader(dir);
  t.notThrows(() => Array.from(integritySteps(reader)));
  reader.close();
  const own: ActorDefinition = { ...slowDoor };
  const { clockActor } = await import('../../../../src/core/host/clock/machine.ts');
  const replay = new Replay(new Map([own, clockActor].map((actor) => [actor.type, actor])));
  for (const record of await recordsOf(dir)) replay.check(record);
  t.is(replay.report().divergence, undefined);
}

const names = (alerts: readonly AlertRaised[]) =>
  alerts.filter(({ name }) => name === 'clock.jumped').map(({ labels }) => labels?.state);

for (const [what, by] of [
  ['a year ahead', YEAR],
  ['an hour back', -HOUR],
] as const) {
  test(`[C3] a clock that is set ${what} and back while running moves no timer, and is said until it is right again`, async (t) => {
    const dir = tempDir(t);
    const clock = new VirtualClock();
    const { alerts, pass, open, door, fact, lines, stop } = await run(t, dir, clock);
    t.is(fact().state, 'ok');
    open();
    await pass(20 * SECOND);
    clock.set(by);
    await pass(40 * SECOND);
    t.is(door(), 'open', 'no deadline on the wall clock ends it');
    t.like(fact(), { ok: false, state: 'jumped' });
    t.like(clockCheck({ dataDir: dir, signal: new AbortController().signal, facts: { clock: fact() } }), {
      state: 'warn',
    });
    t.deepEqual(names(alerts), ['firing']);
    clock.set(-by);
    await pass(59 * SECOND);
    t.is(door(), 'open');
    t.is(fact().state, 'ok');
    t.deepEqual(names(alerts), ['firing', 'resolved']);
    await pass(1 * SECOND);
    t.is(door(), 'closed', 'the window has truly passed');
    t.deepEqual(lines(), [by, -by]);
    await stop();
    const at = (await recordsOf(dir)).filter(({ event }) => event.type === 'JUMPED').map((one) => one.at);
    t.is(Math.sign((at[0] ?? 0) - (at[1] ?? 0)), Math.sign(by), 'records carry the wall clock as it is');
    await isSound(t, dir);
  });

  for (const boot of ['same', undefined]) {
    const kind = boot ? 'on a machine that stayed up' : 'where only the wall clock is there';
    test(`[C3] a start with a clock ${what}, ${kind}, leaves a timer what it had`, async (t) => {
      const dir = tempDir(t);
      const clock = new VirtualClock();
      clock.boot = boot;
      const first = await run(t, dir, clock);
      first.open();
      await first.pass(20 * SECOND);
      await first.stop();
      clock.set(by);
      const second = await run(t, dir, clock);
      t.like(second.fact(), { ok: false, state: 'jumped' });
      t.deepEqual(second.lines(), [by]);
      await second.pass(0);
      t.deepEqual(names(second.alerts), ['firing']);
      await second.pass(99 * SECOND);
      t.is(second.door(), 'open');
      await second.pass(1 * SECOND);
      t.is(second.door(), 'closed');
      clock.set(-by);
      await second.pass(30 * SECOND);
      t.is(second.fact().state, 'ok');
      t.deepEqual(names(second.alerts), ['firing', 'resolved']);
      second.open();
      await second.stop();
      const third = await run(t, dir, clock);
      t.is(third.fact().state, 'ok');
      await third.pass(119 * SECOND);
      t.is(third.door(), 'open', 'nor does it wait a year');
      await third.pass(1 * SECOND);
      t.is(third.door(), 'closed');
      await third.stop();
      await isSound(t, dir);
    });
  }
}

test('[C3] a timer that was armed by a wrong clock keeps its delay when the next start has the right one', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock();
  clock.set(YEAR);
  const first = await run(t, dir, clock);
  first.open();
  await first.pass(20 * SECOND);
  await first.stop();
  clock.set(-YEAR);
  const second = await run(t, dir, clock);
  t.deepEqual(second.lines(), [-YEAR]);
  await second.pass(99 * SECOND);
  t.is(second.door(), 'open');
  await second.pass(1 * SECOND);
  t.is(second.door(), 'closed');
});

for (const boot of ['same', undefined]) {
  test(`[C3] time that truly passed while nothing ran counts, ${boot ? 'by the uptime' : 'by the wall clock'}`, async (t) => {
    const dir = tempDir(t);
    const clock = new VirtualClock();
    clock.boot = boot;
    const first = await run(t, dir, clock);
    first.open();
    await first.pass(20 * SECOND);
    await first.stop();
    await clock.advance(10 * DAY);
    const second = await run(t, dir, clock);
    await second.pass(0);
    t.is(second.door(), 'closed');
    t.is(second.fact().state, 'ok');
    t.deepEqual(second.lines(), []);
  });
}

test('[C3] a machine that was started anew is not judged by the uptime it had before', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock();
  clock.boot = 'one';
  const first = await run(t, dir, clock);
  first.open();
  await first.pass(20 * SECOND);
  await first.stop();
  clock.boot = 'two';
  clock.set(10 * DAY); // it was off for so long
  const second = await run(t, dir, clock);
  await second.pass(0);
  t.is(second.door(), 'closed');
  t.deepEqual(second.lines(), []);
});

test('[C3] a clock that goes on for a day as it was set is taken as right', async (t) => {
  const clock = new VirtualClock();
  const { alerts, pass, fact } = await run(t, tempDir(t), clock);
  clock.set(HOUR);
  await pass(30 * SECOND);
  await pass(23 * HOUR);
  t.is(fact().state, 'jumped');
  await pass(HOUR);
  t.is(fact().state, 'ok');
  t.deepEqual(names(alerts), ['firing', 'resolved']);
});

test('[C10] a clock that jumps a year ahead makes no record old enough to be archived', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock();
  const { pass, open, stop } = await run(t, dir, clock);
  open();
  await pass(WINDOW);
  clock.set(YEAR);
  await pass(2 * DAY);
  await stop();
  const reader = new SqliteReader(dir);
  const goes = (ms: number) => {
    const { from, to } = planPrune(reader, { olderThanMs: ms }, clock.now());
    return to >= from;
  };
  t.false(goes(90 * DAY));
  t.true(goes(DAY), 'what is truly older goes');
  reader.close();
});

test('[C3] neither a suspended machine nor small steps are a jump', (t) => {
  const clock = new VirtualClock();
  let slept = 0;
  const watch = new ClockWatch({
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: clock.after.bind(clock),
    sinceBoot: () => ({ boot: 'one', ms: clock.monotonic() + slept }),
  });
  clock.set(HOUR);
  slept = HOUR;
  t.is(watch.look(), 0);
  for (let step = 0; step < 10; step += 1) {
    clock.set(-1_500);
    clock.jump(10 * SECOND);
    t.is(watch.look(), 0);
  }
  clock.set(HOUR);
  t.is(watch.look(), HOUR);
  t.is(watch.look(), 0);
});

test('[C3] the machine of the clock uses nothing that replay could not repeat', (t) => {
  t.deepEqual(impurities(clockMachine), []);
});
