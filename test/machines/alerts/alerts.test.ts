import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { Story } from '../../../src/core/host/testing/story.ts';
import type { Json } from '../../../src/core/kernel/json.ts';
import { alert } from '../../../src/machines/alerts/alert.ts';
import type { AlertEvent, Raised } from '../../../src/machines/alerts/escalation.ts';
import { alertOutbox } from '../../../src/machines/alerts/outbox.ts';
import type { OutboxEvent } from '../../../src/machines/alerts/outbox-queue.ts';
import { alertRule } from '../../../src/machines/alerts/rule.ts';
import type { RuleEvent, RuleSettings } from '../../../src/machines/alerts/rule-shapes.ts';

const rule: RuleSettings = {
  name: 'nas-failed',
  title: 'NAS backup snapshot FAILED',
  severity: 'critical',
  condition: { kind: 'above', than: 0 },
  window: '1d',
  windowMs: 86_400_000,
  everyMs: 3_600_000,
  forMs: 0,
  onNoData: 'ok',
  expect: 'required',
  freshMs: 3_600_000,
  unseenAfterMs: 86_400_000,
  metric: 'nas.backup.snapshot.failed',
  labels: {},
};
const measured = { title: rule.title, threshold: 'above 0', window: '1d', places: [] };

test('[O17] a rule fires once for a breach, and missing data is what the rule says of it, never zero', (t) => {
  const firing = {
    name: 'rule.nas-failed',
    severity: 'critical',
    text: 'NAS backup snapshot FAILED: 1 in 1d; it is wrong when above 0; source photos.',
    labels: { rule: 'nas-failed', state: 'firing' },
    measured: { ...measured, value: 1 },
  };
  const over = {
    name: 'rule.nas-failed',
    severity: 'info',
    text: 'NAS backup snapshot FAILED: no data in 1d.',
    labels: { rule: 'nas-failed', state: 'resolved' },
    measured,
  };
  const look = { type: 'EVALUATE', at: 2 } as const;
  t.notThrows(() => {
    given(alertRule, { input: rule })
      .initially({
        state: { ok: 'evaluating' },
        effects: [{ type: 'alerts.evaluate', params: { rule: rule.name } }],
      })
      .when({ type: 'EVALUATED', at: 1, value: 0 })
      .then({ state: { ok: 'resting' }, timers: { due: 3_600_000 } });
    given(alertRule, { input: rule })
      .when({ type: 'EVALUATED', at: 3, value: 1, finding: 'source photos' })
      .then({
        state: { firing: 'resting' },
        context: { firingSince: 3 },
        effects: [{ type: 'alerts.raise', params: firing }],
      });
    const fired = [{ type: 'EVALUATED', at: 3, value: 1 }, look] as const;
    given(alertRule, { input: rule, events: fired })
      .when({ type: 'EVALUATED', at: 5, value: 2 })
      .then({ state: { firing: 'resting' }, context: { firingSince: 3, value: 2 } });
    given(alertRule, { input: rule, events: fired })
      .when({ type: 'EVALUATED', at: 7 })
      .then({ state: { noData: 'resting' }, effects: [{ type: 'alerts.raise', params: over }] });
  });
});

test('[O17] a rule for which silence is the fault fires on silence, and not when the database was not heard', (t) => {
  const input: RuleSettings = { ...rule, onNoData: 'fire', condition: { kind: 'below', than: 1 } };
  const unseen = { type: 'EVALUATION_FAILED', at: 1, reason: 'the database is away' } as const;
  t.notThrows(() =>
    given(alertRule, { input })
      .when(unseen)
      .then({ state: { ok: 'resting' }, context: { failures: 1, failure: 'the database is away' } }),
  );
  const { state, effects } = lastOf(input, [
    unseen,
    { type: 'EVALUATE', at: 2 },
    { type: 'EVALUATED', at: 86_400_001 },
  ]);
  t.deepEqual(state, { firing: 'resting' });
  t.deepEqual(effects, ['alerts.raise']);
  const restarted = [
    { type: 'WATCH', at: 86_400_000 } as const,
    { type: 'EVALUATED', at: 86_400_001 } as const,
  ];
  t.deepEqual(lastOf(input, restarted), { state: { noData: 'resting' }, effects: [] });
});

const HOUR = 3_600_000;
const missing: RuleSettings = {
  ...rule,
  window: '1h',
  windowMs: HOUR,
  onNoData: 'fire',
  condition: { kind: 'below', than: 1 },
};

test('[O17] a runtime that is restarted each hour does not hide that nothing comes: silence fires in the fifth', (t) => {
  const fired = Array.from({ length: 6 }, (_, hour) => {
    const hours = Array.from({ length: hour + 1 }, (_, index): RuleEvent[] => [
      { type: 'WATCH', at: index * HOUR + 1 },
      { type: 'EVALUATE', at: index * HOUR + 2 },
      { type: 'EVALUATED', at: (index + 1) * HOUR },
    ]);
    return lastOf(missing, hours.flat()).effects.includes('alerts.raise');
  });
  t.deepEqual(fired, [false, false, false, false, true, false], 'once, and it lasts');
});

/** Evaluations each hour, from an hour to another, with a sample or without. */
const hourly = (from: number, to: number, value?: number): RuleEvent[] =>
  Array.from({ length: to - from }, (_, index): RuleEvent[] => [
    { type: 'EVALUATE', at: (from + index) * HOUR },
    { type: 'EVALUATED', at: (from + index) * HOUR, ...(value !== undefined && { value }) },
  ]).flat();
const begun: readonly RuleEvent[] = [
  { type: 'WATCH', at: 1 },
  { type: 'EVALUATED', at: 2 },
];
const steady: RuleSettings = { ...missing, expect: 'steady', metric: 'file.mtime' };

test('[O17,R28] a trial of telemetry ends in no critical alert; a signal that came for a day is required, and the text names the setting', (t) => {
  const trial = [...begun, ...hourly(1, 24, 1)];
  t.deepEqual(lastOf(steady, [...trial, ...hourly(24, 27)]), { state: { noData: 'resting' }, effects: [] });
  const day = [...begun, ...hourly(1, 26, 1)];
  const { state, effects, text } = lastOf(steady, [...day, ...hourly(26, 27)], true);
  t.deepEqual({ state, effects }, { state: { firing: 'resting' }, effects: ['alerts.raise'] });
  t.regex(
    text!,
    /no data in 1h.*required since it came for a day, unless signals\['nas-failed'\] of alerts\(\)/,
  );
  const withGap = [...begun, ...hourly(1, 20, 1), ...hourly(20, 22), ...hourly(22, 30, 1), ...hourly(30, 32)];
  t.deepEqual(
    lastOf(steady, withGap),
    { state: { noData: 'resting' }, effects: [] },
    'a day in two halves is no day',
  );
  const declared = lastOf({ ...steady, expect: 'required' }, [...begun, ...hourly(2, 3)], true);
  t.deepEqual(declared.effects, ['alerts.raise'], 'what is declared is required from the beginning');
  t.regex(declared.text!, /its signal is required by signals\['nas-failed'\]/);
  const optional = [...begun, ...hourly(1, 60)];
  t.deepEqual(lastOf({ ...steady, expect: 'optional' }, optional), {
    state: { noData: 'resting' },
    effects: [],
  });
});

test('[O17] an age that only grows because a trial ended is no fault, and one that is reported is', (t) => {
  const age: RuleSettings = { ...steady, onNoData: 'ok', condition: { kind: 'above', than: 36 } };
  const old = (newestAt: number): RuleEvent[] => [
    ...begun,
    { type: 'EVALUATE', at: 50 * HOUR },
    { type: 'EVALUATED', at: 50 * HOUR, value: 48, newestAt },
  ];
  t.deepEqual(lastOf(age, old(2 * HOUR)), { state: { noData: 'resting' }, effects: [] });
  t.deepEqual(lastOf(age, old(49.5 * HOUR)).effects, ['alerts.raise']);
  t.deepEqual(lastOf({ ...age, expect: 'required' }, old(2 * HOUR)).effects, ['alerts.raise']);
});

test('[O17] a signal that has never come is an alert of its own after a day, a warning that says which setting ends it', (t) => {
  t.deepEqual(lastOf(steady, [...begun, ...hourly(1, 24)]), { state: { noData: 'resting' }, effects: [] });
  const never = [...begun, ...hourly(1, 26)];
  const { state, text, alert } = lastOf(steady, [...begun, ...hourly(1, 27)], true);
  t.deepEqual(state, { unseen: 'resting' });
  t.is(alert, undefined, 'once');
  const first = lastOf(steady, [...begun, ...hourly(1, 25), ...hourly(25, 26)], true);
  t.like(first.alert, {
    name: 'rule.nas-failed.unseen',
    severity: 'warning',
    labels: { rule: 'nas-failed', state: 'firing' },
  });
  t.regex(
    first.text!,
    /no sample of file\.mtime has ever come, for 25 h now\..*alerts\(\{ signals: \{ 'nas-failed': \{ expect: 'optional' \} \} \}\)/,
  );
  t.is(text, undefined);
  // A restart does not begin the day anew.
  const restarted: RuleEvent[] = [
    ...begun,
    ...hourly(1, 12),
    { type: 'WATCH', at: 12 * HOUR },
    ...hourly(12, 26),
  ];
  t.deepEqual(lastOf(steady, restarted).state, { unseen: 'resting' });
  const comes = lastOf(steady, [...never, ...hourly(26, 27, 1)], true);
  t.deepEqual(comes.state, { ok: 'resting' });
  t.like(comes.alert, { name: 'rule.nas-failed.unseen', labels: { state: 'resolved' } });
  const declared = lastOf(
    steady,
    [
      ...never,
      { type: 'DEFINE', at: 26 * HOUR, settings: { ...steady, expect: 'optional' } },
      { type: 'EVALUATED', at: 26 * HOUR },
    ],
    true,
  );
  t.regex(declared.text!, /file\.mtime is no longer waited for/);
  // A trial that has been over for a day is the same alert.
  t.deepEqual(lastOf(steady, [...begun, ...hourly(1, 6, 1), ...hourly(6, 40)]).state, { unseen: 'resting' });
});

test('[O17] an alert that fires takes over what explains it now, without telling anybody', (t) => {
  const wrong = (finding: string): RuleEvent => ({ type: 'EVALUATED', at: 5, value: 1, finding });
  const look: RuleEvent = { type: 'EVALUATE', at: 4 };
  t.deepEqual(lastOf(rule, [wrong('source a'), look, wrong('source a')]).effects, []);
  const { text, effects } = lastOf(rule, [wrong('source a'), look, wrong('source b')], true);
  t.deepEqual(effects, ['alerts.raise']);
  t.regex(text!, /source b/);
});

test('[O17] a breach shorter than the rule asks for is told to nobody', (t) => {
  const input: RuleSettings = { ...rule, forMs: 1_000 };
  const look = { type: 'EVALUATE', at: 0 } as const;
  const wrong = { type: 'EVALUATED', at: 1_000, value: 1 } as const;
  const fine = { type: 'EVALUATED', at: 1_500, value: 0 } as const;
  const later = { type: 'EVALUATED', at: 2_000, value: 1 } as const;
  t.deepEqual(lastOf(input, [wrong]), { state: { pending: 'resting' }, effects: [] });
  t.deepEqual(lastOf(input, [wrong, look, fine]), { state: { ok: 'resting' }, effects: [] });
  t.deepEqual(lastOf(input, [wrong, look, fine, look, later]), {
    state: { pending: 'resting' },
    effects: [],
  });
  t.deepEqual(lastOf(input, [wrong, look, later]), {
    state: { firing: 'resting' },
    effects: ['alerts.raise'],
  });
});

/** State and what was asked for after the last of the events. @param withAlert its alert too */
function lastOf(input: RuleSettings, events: readonly RuleEvent[], withAlert = false) {
  const end = events.reduce(
    (story, event) => story.next(event as never),
    Story.begin(alertRule, input as unknown as Json),
  );
  const result = { state: end.step.value, effects: end.effects.map(({ type }) => type) };
  const alert = end.effects.find(({ type }) => type === 'alerts.raise')?.params as
    | { text: string }
    | undefined;
  return withAlert
    ? { ...result, alert, text: alert?.text }
    : (result as typeof result & { alert?: undefined; text?: undefined });
}

const content = { name: 'a', severity: 'critical', title: 'A', text: 'a is bad', labels: {} } as const;
const raised = (kind: Raised['kind'], seq: number, more: Partial<Raised> = {}): Raised => ({
  type: 'RAISED',
  at: 1_000,
  cause: `story:${seq}`,
  kind,
  content,
  steps: [
    { to: ['first'], afterMs: 0 },
    { to: ['second'], afterMs: 900_000 },
  ],
  remindMs: 3_600_000,
  ...more,
});
const notify = (to: readonly string[], state: string) => ({
  type: 'alerts.notify',
  params: { to, notice: { ...content, state, since: 1_000 } },
});

/** What is told after each of the events, `receivers: state`. */
function toldOf(events: readonly (AlertEvent | ReturnType<typeof elapsed>)[]) {
  let story = Story.begin(alert);
  return events.map((event) => {
    story = story.next(event as never);
    return story.effects.map(({ params }) => {
      const { to, notice } = params as unknown as { to: string[]; notice: { state: string } };
      return `${to.join(' ')}: ${notice.state}`;
    });
  });
}

const next = elapsed('next');

test('[O17] the ladder: the next one is told when nobody acknowledges, all are reminded, and all who heard hear the end', (t) => {
  t.notThrows(() =>
    given(alert)
      .when(raised('firing', 1))
      .then({
        state: { firing: 'notified' },
        effects: [notify(['first'], 'firing')],
        timers: { next: 900_000 },
      }),
  );
  const story = [raised('firing', 1), raised('firing', 2), next, next, next, raised('resolved', 3)];
  t.deepEqual(toldOf(story), [
    ['first: firing'],
    [],
    ['second: firing'],
    ['first second: reminder'],
    ['first second: reminder'],
    ['first second: resolved'],
  ]);
});

test('[O17] who has taken a notice is known from the answer, of a condition and of an event, and its end is told as it began', (t) => {
  const take = (receiver: string, at: number): AlertEvent => ({ type: 'TAKEN', at, receiver });
  const contextOf = (events: readonly AlertEvent[]): any =>
    events.reduce<Story>((story, event) => story.next(event as never), Story.begin(alert)).step.context;
  const firing = raised('firing', 1);
  t.like(contextOf([firing]), { informed: ['first'], takenAt: {} });
  t.deepEqual(contextOf([firing, take('first', 5), take('another', 6)]).takenAt, { first: 5 });
  t.deepEqual(contextOf([raised('event', 1), take('first', 5)]).takenAt, { first: 5 });
  t.deepEqual(contextOf([firing, take('first', 5), raised('resolved', 2), raised('firing', 3)]).takenAt, {});
  const over = raised('resolved', 2, {
    content: { ...content, severity: 'info', text: 'a is fine', labels: { state: 'resolved' } },
  });
  const story = [{ ...firing, record: 7 }, over].reduce<Story>(
    (one, event) => one.next(event as never),
    Story.begin(alert),
  );
  t.deepEqual(story.effects, [
    {
      type: 'alerts.notify',
      params: { to: ['first'], notice: { ...content, text: 'a is fine', state: 'resolved', since: 1_000 } },
    },
  ] as never);
});

test('[O17] what a crash raises twice is told once, and each change of state once', (t) => {
  const again = { ...raised('firing', 5), again: true };
  const story = [
    raised('firing', 1),
    raised('firing', 1),
    raised('resolved', 2),
    raised('firing', 1),
    raised('resolved', 2),
    raised('firing', 4),
    again,
    again,
  ];
  t.deepEqual(toldOf(story), [
    ['first: firing'],
    [],
    ['first: resolved'],
    [],
    [],
    ['first: firing'],
    ['second: firing'],
    [],
  ]);
});

test('[O17] an acknowledgement stops the ladder and ends by itself; a silence tells later what still lasts, and never what is over', (t) => {
  const ack: AlertEvent = { type: 'ACKNOWLEDGE', at: 2_000, by: 'operator', forMs: 60_000 };
  const acknowledged = [raised('firing', 1), ack, elapsed('acknowledged')];
  t.deepEqual(toldOf([...acknowledged, elapsed('next'), raised('resolved', 2)]), [
    ['first: firing'],
    [],
    ['second: firing'],
    ['first second: reminder'],
    ['first second: resolved'],
  ]);
  const silent = raised('firing', 1, { silentUntil: 61_000 });
  t.deepEqual(toldOf([silent, elapsed('silence'), raised('resolved', 2)]), [
    [],
    ['first: firing'],
    ['first: resolved'],
  ]);
  t.deepEqual(toldOf([silent, raised('resolved', 2)]), [[], []]);
  t.deepEqual(
    toldOf([raised('firing', 1), { type: 'SILENCE', at: 2_000, until: 9_000 }, elapsed('silence')]),
    [['first: firing'], [], ['second: firing']],
  );
});

test('[O17] an event that comes again unchanged is counted, and told again after an hour or in other words', (t) => {
  const other = { ...content, text: 'a is worse' };
  t.deepEqual(
    toldOf([
      raised('event', 1),
      raised('event', 2, { at: 5_000 }),
      raised('event', 3, { at: 9_000, content: other }),
      raised('event', 4, { at: 3_700_000, content: other }),
    ]),
    [['first: event'], [], ['first: event'], ['first: event']],
  );
});

const item = (id: string, at = 1) => ({
  type: 'QUEUE' as const,
  item: { id, at, notice: { ...content, state: 'firing' as const, since: 1 } },
});

function outbox(events: readonly (OutboxEvent | ReturnType<typeof elapsed>)[]) {
  const start = Story.begin(alertOutbox, { receiver: 'first' });
  return events.reduce<Story>((story, event) => story.next(event as never), start);
}

const idsOf = ({ effects }: Story): string[] =>
  (effects.map(({ params }) => params) as { items: { id: string }[] }[]).flatMap(({ items }) =>
    items.map(({ id }) => id),
  );

test('[O17] what comes together is posted together, once, and leaves the outbox only when the receiver has taken it', (t) => {
  const batched = [item('1.0'), item('1.0'), item('2.0'), elapsed('batch')];
  const sending = outbox(batched);
  t.deepEqual(idsOf(sending), ['1.0', '2.0']);
  const failed = outbox([...batched, { type: 'REFUSED', at: 2, reason: 'answered 500' }]);
  t.is(failed.step.value, 'waiting');
  t.deepEqual(failed.timers, { backoff: 5_000 });
  const later = outbox([
    ...batched,
    item('3.0'),
    { type: 'REFUSED', at: 2, reason: 'answered 429', retryAfterMs: 9_000 },
    elapsed('backoff'),
  ]);
  t.deepEqual(idsOf(later), ['1.0', '2.0'], 'the same post again, so that its receiver knows it');
  const taken: OutboxEvent = { type: 'POSTED', at: 3, answer: { status: 200, body: '' } };
  const end = [taken, item('2.0'), elapsed('batch'), taken].reduce<Story>(
    (story, event) => story.next(event as never),
    later,
  );
  t.is(end.step.value, 'idle');
  t.like(end.step.context, { sent: 3, queue: [], failures: 0 });
});

test('[O17] a receiver that stays away is told of once, and what is a day old is given up and counted', (t) => {
  const fail: OutboxEvent = { type: 'REFUSED', at: 2, reason: 'answered 500' };
  const failures = (count: number) =>
    outbox([
      item('1.0'),
      elapsed('batch'),
      ...Array.from({ length: count - 1 }, () => [fail, elapsed('backoff')]).flat(),
      fail,
    ]);
  t.deepEqual(
    [4, 5, 6].map((count) => failures(count).effects.map(({ type }) => type)),
    [[], ['alerts.raise'], []],
  );
  t.deepEqual(failures(9).timers, { backoff: 300_000 });
  const back = [elapsed('backoff'), { type: 'POSTED', at: 3, answer: { status: 200, body: '' } }].reduce(
    (story, event) => story.next(event as never),
    failures(6),
  );
  t.like((back.effects[0] as { params: object }).params, {
    name: 'alerts.receiver_away',
    labels: { receiver: 'first', state: 'resolved' },
  });
  const late = outbox([item('1.0'), elapsed('batch'), { ...fail, at: 86_400_002 }]);
  t.is(late.step.value, 'idle');
  t.like(late.step.context, { queue: [], lost: 1 });
});

const minute = 60_000;
const answer = { status: 200, body: '' };
/** The outbox of a receiver that forgets, after events. */
const forgetful = (events: readonly (OutboxEvent | ReturnType<typeof elapsed>)[]) =>
  events.reduce<Story>(
    (story, event) => story.next(event as never),
    Story.begin(alertOutbox, { receiver: 'manager', batchMs: 0, repeatMs: minute }),
  );
const posted = (at: number): OutboxEvent => ({ type: 'POSTED', at, answer });
const again = (at: number, count = 1): OutboxEvent => ({
  type: 'REPOSTED',
  at,
  count,
  ...(count > 0 && { answer }),
});

test('[O17] a receiver that forgets is told of everything once a minute while something fires, and never more often', (t) => {
  const first = [item('1.0'), elapsed('batch'), posted(1_000)] as const;
  t.deepEqual(forgetful(first).timers, { repeat: minute });
  const told = forgetful([...first, elapsed('repeat')]);
  t.deepEqual(told.effects, [{ type: 'alerts.repost', params: { receiver: 'manager' } }] as never);
  t.deepEqual(forgetful([...first, elapsed('repeat'), again(61_000)]).timers, { repeat: minute });
  // Changes that are posted in between neither put it off nor hasten it.
  const busy = [...first, item('2.0'), elapsed('batch'), posted(41_000)] as const;
  t.deepEqual(forgetful(busy).timers, { repeat: 20_000 });
  const ended = forgetful([...first, elapsed('repeat'), again(61_000, 0)]);
  t.is(ended.step.value, 'idle');
  t.deepEqual(ended.timers, {});
  // What is queued meanwhile is posted next.
  const meanwhile = forgetful([...first, elapsed('repeat'), item('3.0'), again(61_000)]);
  t.is(meanwhile.step.value, 'batching');
  t.deepEqual(
    forgetful([
      item('1.0'),
      elapsed('batch'),
      posted(1_000),
      { type: 'CONFIGURE', batchMs: 0 },
      elapsed('repeat'),
    ]).step.value,
    'idle',
  );
  t.deepEqual(outbox([item('1.0'), elapsed('batch'), posted(1_000)]).timers, {}, 'others forget nothing');
  t.deepEqual(
    outbox([{ type: 'CONFIGURE', batchMs: 0, repeatMs: minute }]).timers,
    { repeat: minute },
    'a start with another format',
  );
});

test('[O17] a receiver that forgets and is away is tried each minute and told of once, and again when it is back', (t) => {
  const fail: OutboxEvent = { type: 'REFUSED', at: 2, reason: 'it cannot be reached (ECONNREFUSED)' };
  const away = (count: number) =>
    forgetful([
      item('1.0'),
      elapsed('batch'),
      posted(1_000),
      ...Array.from({ length: count }, () => [elapsed('repeat'), fail]).flat(),
    ]);
  t.deepEqual(
    [4, 5, 6].map((count) => away(count).effects.map(({ type }) => type)),
    [[], ['alerts.raise'], []],
  );
  t.deepEqual(away(6).timers, { repeat: minute });
  const back = [elapsed('repeat'), again(9_000)].reduce<Story>(
    (story, event) => story.next(event as never),
    away(6),
  );
  t.like((back.effects[0] as { params: object }).params, {
    name: 'alerts.receiver_away',
    labels: { receiver: 'manager', state: 'resolved' },
  });
  t.like(back.step.context, { failures: 0 });
});

test('[O17] the alerts of a post hear that it was taken, each once', (t) => {
  const of = (id: string, alert?: string): OutboxEvent => ({
    type: 'QUEUE',
    item: {
      id,
      at: 1,
      notice: { ...content, state: 'firing', since: 1, ...(alert !== undefined && { alert }) },
    },
  });
  const done = outbox([
    of('1.0', 'a'),
    of('2.0', 'b'),
    of('3.0', 'a'),
    of('4.0'),
    elapsed('batch'),
    posted(7),
  ]);
  t.deepEqual(done.effects, [
    { type: 'alerts.taken', params: { receiver: 'first', at: 7, alerts: ['a', 'b'] } },
  ] as never);
});

test('[O17] reminders of one condition do not pile up at a receiver that is away', (t) => {
  const reminder = (id: string, name = 'a'): OutboxEvent => ({
    type: 'QUEUE',
    item: { id, at: 1, notice: { ...content, name, state: 'reminder', since: 1 } },
  });
  const fail: OutboxEvent = { type: 'REFUSED', at: 2, reason: 'answered 500' };
  const waiting = outbox([
    item('1.0'),
    elapsed('batch'),
    fail,
    reminder('2.0'),
    reminder('3.0', 'b'),
    reminder('4.0'),
  ]);
  const { queue } = waiting.step.context as unknown as { queue: { id: string }[] };
  t.deepEqual(
    queue.map(({ id }) => id),
    ['1.0', '3.0', '4.0'],
  );
});

test('[O17] a full outbox drops its oldest notice, never what is being posted nor the newest, and counts it', (t) => {
  const more = Array.from({ length: 201 }, (_, index) => item(`2.${index}`));
  const full = outbox([item('1.0'), elapsed('batch'), ...more]);
  const { queue, lost } = full.step.context as unknown as { queue: { id: string }[]; lost: number };
  const ids = queue.map(({ id }) => id);
  t.is(ids.length, 200);
  t.deepEqual([...ids.slice(0, 2), ids.at(-1)], ['1.0', '2.2', '2.200']);
  t.is(lost, 2);
});

test('[O17] a receiver that gets its address while an alert fires is told then, and those who know are not told again', (t) => {
  const ladder = (to: string[]): AlertEvent => ({
    type: 'ESCALATION',
    at: 5_000,
    steps: [{ to, afterMs: 0 }],
    remindMs: 3_600_000,
  });
  const nobody = raised('firing', 1, { steps: [{ to: [], afterMs: 0 }] });
  t.deepEqual(toldOf([nobody, ladder(['first']), ladder(['first', 'late']), next, raised('resolved', 2)]), [
    [': firing'],
    ['first: firing'],
    ['late: firing'],
    ['first late: reminder'],
    ['first late: resolved'],
  ]);
  const silent = { ...nobody, silentUntil: 61_000 };
  t.deepEqual(toldOf([silent, ladder(['first']), elapsed('silence')]), [[], [], ['first: firing']]);
  t.deepEqual(
    toldOf([nobody, raised('resolved', 2)]),
    [[': firing'], []],
    'nobody heard of it, nobody hears of its end',
  );
});

test('[O17] a clock that was ahead and is set back does not make a rule deaf to silence', (t) => {
  const input: RuleSettings = { ...rule, onNoData: 'fire', condition: { kind: 'below', than: 1 } };
  const year = 31_536_000_000;
  const look = { type: 'EVALUATE', at: 0 } as const;
  const story = [
    { type: 'WATCH', at: year } as const,
    { type: 'EVALUATED', at: 1_000 } as const,
    look,
    { type: 'EVALUATED', at: 86_401_000 } as const,
  ];
  t.deepEqual(lastOf(input, story), { state: { firing: 'resting' }, effects: ['alerts.raise'] });
});
