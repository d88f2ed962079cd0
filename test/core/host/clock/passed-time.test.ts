import type { ExecutionContext } from 'ava';
import test from 'ava';
import { clockActor } from '../../../../src/core/host/clock/machine.ts';
import {
  type ActorDefinition,
  defineActor,
  effectTypes,
} from '../../../../src/core/kernel/actors/definition.ts';
import { Replay } from '../../../../src/core/kernel/replay/verify.ts';
import { alert } from '../../../../src/machines/alerts/alert.ts';
import { alertOutbox } from '../../../../src/machines/alerts/outbox.ts';
import { alertRule } from '../../../../src/machines/alerts/rule.ts';
import { alertSilences } from '../../../../src/machines/alerts/silences.ts';
import { alertsUnevaluated } from '../../../../src/machines/alerts/unevaluated.ts';
import { keyRotation } from '../../../../src/machines/collector/key-rotation.ts';
import { virtualKey } from '../../../../src/machines/gateway/key.ts';
import { rejections } from '../../../../src/machines/gateway/rejections.ts';
import { memoryBackups } from '../../../../src/machines/memory/backups.ts';
import { leg } from '../../../../src/machines/reconciler/leg.ts';
import { monitor } from '../../../../src/machines/uptime-monitor/monitor.ts';
import { openBench } from '../../../support/actors.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

const MACHINES = {
  rule: alertRule,
  alert,
  outbox: alertOutbox,
  silences: alertSilences,
  unevaluated: alertsUnevaluated,
  rotation: keyRotation,
  key: virtualKey,
  rejections,
  backups: memoryBackups,
  copies: memoryBackups,
  leg,
  monitor,
};
const COPIES = {
  kind: 'volume',
  keepNewest: 100,
  keepDays: 5,
  staleMs: 26 * HOUR,
  missed: 'catch-up',
  retryMs: MINUTE,
};
const actors = Object.entries(MACHINES).map(
  ([name, machine]): ActorDefinition =>
    defineActor({
      type: `aged.${name}`,
      machine,
      version: 1,
      ...(name === 'copies' && { input: () => COPIES }),
    }),
);
/** The machines of several features over one log, whose effects are only noted. */
async function started(t: ExecutionContext) {
  const clock = new VirtualClock(Date.UTC(2026, 5, 1, 12));
  const requested: { readonly type: string; readonly params: unknown }[] = [];
  const types = new Set(Object.values(MACHINES).flatMap((machine) => effectTypes(machine)));
  const effects = [...types, 'alerts.raise'].map((type) => ({
    type,
    handler: (params: unknown) => void requested.push({ type, params }),
    onRecovery: 'retry' as const,
  }));
  const definitions = [...actors, clockActor];
  const bench = await openBench(tempDir(t), definitions, effects, clock);
  t.teardown(() => bench.close());
  const system = bench.actors;
  /** Time passes, and what is due by then is durable and done. */
  const pass = async (ms: number) => {
    await bench.settled();
    await clock.advance(ms);
    await bench.settled();
    await clock.advance(0);
  };
  return {
    clock,
    pass,
    /** The runtime looks at its clock every 30 s. */
    async set(ms: number) {
      clock.set(ms);
      await pass(30 * SECOND);
      system.lookAtClock();
      await pass(0);
    },
    /** Sends an event with the time of the wall clock, as plugins do. */
    send: (name: keyof typeof MACHINES, event: { readonly type: string }) =>
      system.deliver(`aged.${name}/one`, { at: clock.now(), ...event }),
    value: (name: keyof typeof MACHINES) => JSON.stringify(system.snapshot(`aged.${name}/one`)?.value),
    context: (name: keyof typeof MACHINES) => system.snapshot(`aged.${name}/one`)?.context as any,
    requested: (type: string) => requested.filter((each) => each.type === type).map(({ params }) => params),
    async isRepeatable() {
      const replay = new Replay(new Map(definitions.map((actor) => [actor.type, actor])));
      for (const record of await bench.records()) replay.check(record);
      t.is(replay.report().divergence, undefined);
    },
  };
}
type Started = Awaited<ReturnType<typeof started>>;

/** How a clock is wrong for a while. */
const JUMPS = { 'a year ahead': YEAR, 'an hour back': -HOUR, 'a year back': -YEAR } as const;
type Jump = keyof typeof JUMPS;

/** A test under each jump, and with the jump healed: `part` sets the clock, `heal` sets it back. */
function jumping(
  what: string,
  work: (t: ExecutionContext, run: Started, part: () => Promise<void>, heal: () => Promise<void>) => unknown,
  jumps: readonly Jump[] = ['a year ahead', 'an hour back'],
): void {
  for (const name of jumps) {
    const by = JUMPS[name];
    test(`[C3] with a clock that is set ${name} and later right again, ${what}`, async (t) => {
      const run = await started(t);
      const part = () => run.set(by);
      const heal = () => run.set(-by);
      await work(t, run, part, heal);
      await run.isRepeatable();
    });
  }
}

const ruleSettings = {
  name: 'one',
  title: 'One',
  severity: 'warning',
  condition: { kind: 'above', than: 5 },
  window: '5m',
  windowMs: 5 * MINUTE,
  everyMs: 40 * DAY,
  forMs: 10 * MINUTE,
  onNoData: 'fire',
  expect: 'steady',
  freshMs: HOUR,
  unseenAfterMs: 2 * DAY,
  metric: 'lamps',
  labels: {},
};

jumping('a rule fires when its condition has truly lasted, and not before', async (t, run, part, heal) => {
  run.send('rule', { type: 'DEFINE', settings: ruleSettings } as never);
  run.send('rule', { type: 'EVALUATED', value: 1 } as never);
  run.send('rule', { type: 'EVALUATED', value: 9 } as never);
  t.regex(run.value('rule') ?? '', /pending/);
  await part();
  run.send('rule', { type: 'EVALUATED', value: 9 } as never);
  t.regex(run.value('rule') ?? '', /pending/, 'half a minute has passed');
  await run.pass(5 * MINUTE);
  await heal();
  run.send('rule', { type: 'EVALUATED', value: 9 } as never);
  t.regex(run.value('rule') ?? '', /pending/, 'six minutes');
  await run.pass(4 * MINUTE);
  run.send('rule', { type: 'EVALUATED', value: 9 } as never);
  t.regex(run.value('rule') ?? '', /firing/);
});

jumping(
  'a signal counts as absent after a whole window, and as unseen after its days',
  async (t, run, part, heal) => {
    run.send('rule', {
      type: 'DEFINE',
      settings: { ...ruleSettings, expect: 'required', forMs: 0 },
    } as never);
    run.send('rule', { type: 'EVALUATED', value: 1 } as never);
    await run.pass(HOUR);
    await part();
    run.send('rule', { type: 'EVALUATED' } as never);
    t.regex(run.value('rule') ?? '', /noData/, 'samples before have other times');
    run.send('rule', { type: 'EVALUATED', value: 1 } as never);
    await run.pass(10 * MINUTE);
    await heal();
    run.send('rule', { type: 'EVALUATED' } as never);
    t.regex(run.value('rule') ?? '', /noData/);
    await run.pass(5 * MINUTE);
    run.send('rule', { type: 'EVALUATED' } as never);
    t.regex(run.value('rule') ?? '', /firing/, 'it goes on to be watched');
    run.send('rule', { type: 'DEFINE', settings: ruleSettings } as never);
    await part();
    run.send('rule', { type: 'EVALUATED' } as never);
    t.notRegex(run.value('rule') ?? '', /unseen/);
    await heal();
    await run.pass(2 * DAY - 2 * MINUTE);
    run.send('rule', { type: 'EVALUATED' } as never);
    t.notRegex(run.value('rule') ?? '', /unseen/);
    await run.pass(2 * MINUTE);
    run.send('rule', { type: 'EVALUATED' } as never);
    t.regex(run.value('rule') ?? '', /unseen/);
  },
);

jumping('a steady signal stays steady, and comes without a gap', async (t, run, part, heal) => {
  run.send('rule', { type: 'DEFINE', settings: ruleSettings } as never);
  for (let hour = 0; hour < 25; hour += 1) {
    if (hour === 8) await part();
    if (hour === 10) await heal();
    run.send('rule', { type: 'EVALUATED', value: 1 } as never);
    t.is(run.context('rule').steady, hour >= 24, `after ${hour} h`);
    await run.pass(HOUR);
  }
});

const notice = {
  name: 'lamp.out',
  severity: 'info',
  title: '',
  text: '',
  labels: {},
  state: 'event',
  since: 0,
};

jumping('the outbox drops a notice after a day that truly passed', async (t, run, part, heal) => {
  run.send('outbox', { type: 'QUEUE', item: { id: 'n1', at: run.clock.now(), notice } } as never);
  await run.pass(3 * SECOND);
  const refuse = async () => {
    run.send('outbox', { type: 'REFUSED', reason: 'away' } as never);
    await run.pass(HOUR);
  };
  await refuse();
  await part();
  for (let hour = 0; hour < 12; hour += 1) await refuse();
  t.like(run.context('outbox'), { lost: 0, queue: { length: 1 } });
  await heal();
  for (let hour = 0; hour < 9; hour += 1) await refuse();
  t.like(run.context('outbox'), { lost: 0, queue: { length: 1 } });
  const posts = run.requested('alerts.post') as { items: { id: string; at: number }[] }[];
  t.is(
    new Set(posts.map(({ items }) => `${items[0]?.id}@${items[0]?.at}`)).size,
    1,
    'one post for its receiver',
  );
  for (let hour = 0; hour < 3; hour += 1) await refuse();
  t.like(run.context('outbox'), { lost: 1, queue: { length: 0 } });
});

jumping('a receiver that forgets is told of everything at its interval', async (t, run, part, heal) => {
  run.send('outbox', { type: 'CONFIGURE', batchMs: SECOND, repeatMs: MINUTE } as never);
  const repost = async (within: number) => {
    const before = run.requested('alerts.repost').length;
    await run.pass(within);
    t.is(run.requested('alerts.repost').length, before + 1);
    run.send('outbox', { type: 'REPOSTED', count: 1, answer: { status: 200, body: '' } } as never);
  };
  await repost(MINUTE);
  await repost(MINUTE);
  await part();
  await repost(30 * SECOND);
  run.send('outbox', { type: 'QUEUE', item: { id: 'n2', at: run.clock.now(), notice } } as never);
  await run.pass(SECOND);
  run.send('outbox', { type: 'POSTED', answer: { status: 200, body: '' } } as never);
  await heal();
  await repost(29 * SECOND);
});

jumping('a silence lasts as long as was asked for', async (t, run, part, heal) => {
  const until = run.clock.now() + 2 * HOUR;
  const silence = { id: 's1', pattern: 'lamp.*', by: 'ann', until };
  run.send('silences', { type: 'ADD', silence } as never);
  const left = () => run.context('silences').silences[0].until - run.clock.now();
  await part();
  t.is(left(), 2 * HOUR - 30 * SECOND);
  run.send('silences', { type: 'REMOVE', id: 'another' } as never);
  t.is(run.context('silences').silences.length, 1, 'it is not over');
  await run.pass(HOUR);
  await heal();
  t.is(left(), HOUR - MINUTE);
  await run.pass(HOUR);
  run.send('silences', { type: 'REMOVE', id: 'another' } as never);
  t.is(run.context('silences').silences.length, 0);
});

jumping(
  'an alert is reminded, silenced and acknowledged for the time that passes',
  async (t, run, part, heal) => {
    const content = { name: 'lamp.out', severity: 'info', title: '', text: 'out', labels: {} };
    const steps = [{ to: ['ann'], afterMs: 0 }];
    const raised = { kind: 'event', content, steps, remindMs: HOUR };
    const raise = (cause: string) => run.send('alert', { type: 'RAISED', cause, ...raised } as never);
    raise('1');
    await part();
    raise('2');
    await run.pass(10 * MINUTE);
    await heal();
    raise('3');
    t.is(run.requested('alerts.notify').length, 1, 'the same event within an hour');
    await run.pass(HOUR);
    raise('4');
    await run.pass(0);
    t.is(run.requested('alerts.notify').length, 2);
  },
);

jumping('rules that cannot be evaluated are reported after an hour', async (t, run, part, heal) => {
  const fail = (rule: string) => run.send('unevaluated', { type: 'FAILED', rule, reason: 'away' } as never);
  fail('a');
  fail('b');
  await part();
  run.send('unevaluated', { type: 'RECOVERED', rule: 'b' } as never);
  await run.pass(20 * MINUTE);
  t.is(run.value('unevaluated'), '"failing"');
  await heal();
  fail('b');
  run.send('unevaluated', { type: 'RECOVERED', rule: 'b' } as never);
  await run.pass(38 * MINUTE);
  t.is(run.value('unevaluated'), '"failing"');
  await run.pass(MINUTE);
  t.is(run.value('unevaluated'), '"reported"');
});

const NOT_YET = [{ check: 'producers', result: 'not', text: 'nas has not moved' }];

jumping('the overlap of a key rotation lasts as long as it was set to', async (t, run, part, heal) => {
  const settings = { adoptMs: HOUR, lookMs: MINUTE, refreshMs: 15 * MINUTE, overlapMs: DAY, retryMs: MINUTE };
  const facts = {
    name: 'otel_ingest_api_key',
    maker: 'own',
    old: 'fp_1',
    external: ['nas'],
    canForce: false,
  };
  const producers = [{ producer: 'nas', at: run.clock.now() }];
  run.send('rotation', { type: 'ROTATE', ...facts, producers, settings } as never);
  run.send('rotation', { type: 'REGENERATED' } as never);
  run.send('rotation', { type: 'CONFIG_READ', fingerprint: 'fp_2' } as never);
  run.send('rotation', { type: 'STORED', place: 'file' } as never);
  const none = { type: 'SIGHTINGS_READ', old: [], fresh: [] } as never;
  run.send('rotation', none);
  await part();
  run.send('rotation', { type: 'CHECKED', checks: NOT_YET } as never);
  t.regex(run.value('rotation') ?? '', /refreshPause/, 'a minute of fifteen');
  await run.pass(MINUTE);
  run.send('rotation', none);
  await heal();
  await run.pass(15 * MINUTE);
  run.send('rotation', { type: 'CHECKED', checks: NOT_YET } as never);
  t.regex(run.value('rotation') ?? '', /external/);
  await part();
  run.send('rotation', none);
  t.regex(run.value('rotation') ?? '', /externalPause/, 'the old key is not retired');
  await run.pass(12 * HOUR);
  await heal();
  run.send('rotation', none);
  t.regex(run.value('rotation') ?? '', /externalPause/);
  await run.pass(12 * HOUR);
  run.send('rotation', none);
  t.regex(run.value('rotation') ?? '', /retiring/);
});

/** Makes backups, lists them and deletes what the machine says. */
function backupsOf(run: Started, kind: 'backups' | 'copies') {
  let files: readonly { readonly name: string; readonly at: number; readonly size: number }[] = [
    { name: 'nobody-recorded', at: run.clock.now() - HOUR, size: 10 },
  ];
  const deleted: string[] = [];
  return {
    deleted,
    async make(passing = DAY) {
      const at = run.clock.now();
      const backup = { name: `memory-${new Date(at).toISOString()}`, at, size: 10 };
      run.send(kind, { type: 'REQUESTED', by: 'schedule' } as never);
      run.send(kind, { type: 'MADE', backup } as never);
      files = [...files, backup];
      run.send(kind, { type: 'LISTED', listed: files } as never);
      const gone: readonly string[] = run.context(kind).deleted;
      files = files.filter(({ name }) => !gone.includes(name));
      deleted.push(...gone);
      run.send(kind, { type: 'PRUNED', deleted: gone } as never);
      await run.pass(passing);
      return backup.name;
    },
    check: (due: number, dueBefore: number) => run.send(kind, { type: 'CHECK', due, dueBefore } as never),
  };
}

jumping('a backup is kept for its days', async (t, run, part, heal) => {
  const { make, deleted } = backupsOf(run, 'copies');
  const first = await make();
  const second = await make();
  await part();
  const third = await make();
  const fourth = await make();
  t.deepEqual(deleted, []);
  await heal();
  await make();
  t.deepEqual(deleted, []);
  await make();
  t.deepEqual(deleted, [first], 'five days have passed');
  await make();
  t.deepEqual(deleted, [first, second]);
  await make();
  t.deepEqual(
    deleted.slice(2).toSorted(),
    [third, 'nobody-recorded'].toSorted(),
    'first listed with the third',
  );
  await make();
  t.deepEqual(deleted.slice(4), [fourth]);
});

jumping(
  'the newest backups are kept, whatever time their names have',
  async (t, run, part, heal) => {
    const { make, deleted } = backupsOf(run, 'backups');
    const made: string[] = [];
    const days = async (count: number) => {
      for (let day = 0; day < count; day += 1) made.push(await make());
    };
    await days(4);
    await part();
    await days(4);
    await heal();
    await days(6);
    t.is(deleted.length, 1, 'fourteen of fifteen');
    await days(2);
    const { good, isStale } = run.context('backups');
    t.deepEqual(
      good.map(({ name }: { readonly name: string }) => name).slice(0, 13),
      made.slice(-13).toReversed(),
    );
    t.false(isStale);
  },
  ['a year ahead', 'a year back'],
);

jumping('no backup counts as missed or stale', async (t, run, part, heal) => {
  const { make, check } = backupsOf(run, 'copies');
  const due = (now: number) => now - (now % DAY);
  const isMade = () => {
    check(due(run.clock.now()), due(run.clock.now()) - DAY);
    t.regex(run.value('copies') ?? '', /resting/);
    t.false(run.context('copies').isStale);
  };
  await run.pass(12 * HOUR);
  await make();
  await make(20 * HOUR);
  isMade();
  await part();
  isMade();
  await heal();
  isMade();
});
