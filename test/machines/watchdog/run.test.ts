import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { watchdogRun } from '../../../src/machines/watchdog/run.ts';

const T = 1_000_000;
const run = { type: 'RUN', at: T } as const;
const checked = (more: object = {}) =>
  ({
    type: 'CHECKED',
    at: T + 40,
    time: '2026-01-01T00:00:00.000Z',
    tookMs: 40,
    stale: 4,
    drift: 0,
    failures: [],
    ...more,
  }) as const;
const report = (outcome: string, lines: string[], exitCode: number, startedAt = T) => ({
  type: 'watchdog.report',
  params: { outcome, lines, exitCode, startedAt },
});
const push = { type: 'watchdog.push', params: { msg: 'stale=4s drift=0', ping: 40 } };
const deadline = { deadline: 120_000 };

test('[O12] a well stack gets a heartbeat, and the document says its two lines', (t) => {
  given(watchdogRun)
    .when(run)
    .then({ state: { running: 'checking' }, effects: [{ type: 'watchdog.check' }], timers: deadline })
    .when(checked())
    .then({ state: { running: 'pushing' }, effects: [push], timers: deadline })
    .when({ type: 'PUSHED', at: T + 50, status: 200 })
    .then({
      state: 'delivered',
      effects: [report('delivered', ['stale=4s drift=0', '{"ok":true}'], 0)],
      timers: {},
      context: { deliveredAt: T + 50 },
    });
  t.pass();
});

test('[O10] what fails is told with what was asked, what came, and since when; no heartbeat, exit 0', (t) => {
  const failure = { check: 'ingest', query: 'the age', found: '420 s, more than 300 s' } as const;
  const line = (since: string) =>
    `HEALTH CHECK FAILED: ingest: asked the age, got 420 s, more than 300 s, since ${since}`;
  given(watchdogRun, { events: [run] })
    .when(checked({ failures: [failure] }))
    .then({
      state: 'unhealthy',
      effects: [report('unhealthy', [line('2026-01-01T00:00:00.000Z')], 0)],
      timers: {},
    })
    .when({ type: 'RUN', at: T + 300_000 })
    .then({ state: { running: 'checking' }, effects: [{ type: 'watchdog.check' }], timers: deadline })
    .when(checked({ at: T + 300_040, time: '2026-01-01T00:05:00.000Z', failures: [failure] }))
    .then({
      state: 'unhealthy',
      effects: [report('unhealthy', [line('2026-01-01T00:00:00.000Z')], 0, T + 300_000)],
      timers: {},
    });
  t.pass();
});

test('[O11] a push that is not delivered is told with the exit status of the client, exit 1', (t) => {
  const refused = {
    type: 'PUSH_REFUSED',
    at: T,
    status: 404,
    msg: 'Monitor not\nfound',
    body: '{}',
    exitStatus: 8,
  } as const;
  given(watchdogRun, { events: [run, checked()] })
    .when(refused)
    .then({
      state: 'pushFailed',
      effects: [
        report('undelivered', ['PUSH DELIVERY FAILED: HTTP 404: Monitor not found (wget exit status 8)'], 1),
      ],
      timers: {},
    });
  given(watchdogRun, { events: [run, checked()] })
    .when({ type: 'PUSH_FAILED', at: T, reason: 'nothing listens there (ECONNREFUSED)', exitStatus: 4 })
    .then({
      state: 'pushFailed',
      effects: [
        report(
          'undelivered',
          ['PUSH DELIVERY FAILED: nothing listens there (ECONNREFUSED) (wget exit status 4)'],
          1,
        ),
      ],
      timers: {},
    });
  t.pass();
});

test('[O13] a run that does not end by itself is killed, with its reason, and is neither healthy nor undelivered', (t) => {
  const killed = (line: string) => [report('killed', [line], 124)];
  const over = killed('DEADLINE EXCEEDED: the run did not end within 120 s');
  given(watchdogRun, { events: [run] })
    .when(elapsed('deadline'))
    .then({ state: 'killed', effects: over, timers: {} })
    .when(checked())
    .then({ state: 'killed', ignored: true, timers: {} });
  given(watchdogRun, { events: [run, checked()] })
    .when(elapsed('deadline'))
    .then({
      state: 'killed',
      effects: killed(
        'DEADLINE EXCEEDED: the run did not end within 120 s; its heartbeat had been sent, and whether it arrived is not known',
      ),
      timers: {},
    });
  for (const [events, effect] of [
    [[run], 'watchdog.check'],
    [[run, checked()], 'watchdog.push'],
  ] as const) {
    given(watchdogRun, { events: [...events] })
      .when({ type: 'effect.lost', effect })
      .then({ state: 'killed', effects: killed('RUN KILLED: the process ended while it ran'), timers: {} });
    given(watchdogRun, { events: [...events] })
      .when({ type: 'effect.failed', effect, code: 'HF_X', message: 'boom' })
      .then({ state: 'killed', effects: killed(`RUN KILLED: ${effect} failed (HF_X: boom)`), timers: {} });
  }
  t.pass();
});

test('[O13] a deadline that is given for a run is the one that ends it and the one that its report names', (t) => {
  const line = 'DEADLINE EXCEEDED: the run did not end within 3 s';
  given(watchdogRun)
    .when({ ...run, deadlineMs: 3_000, remainingMs: 2_100 })
    .then({
      state: { running: 'checking' },
      effects: [{ type: 'watchdog.check' }],
      timers: { deadline: 2_100 },
    })
    .when(elapsed('deadline'))
    .then({ state: 'killed', effects: [report('killed', [line], 124)], timers: {} })
    .when({ ...run, at: T + 10_000 })
    .then({ state: { running: 'checking' }, effects: [{ type: 'watchdog.check' }], timers: deadline });
  t.pass();
});

test('[O10] a run that is under way is the one that is asked for; after a start the first one waits a moment', (t) => {
  given(watchdogRun, { events: [run] })
    .when({ type: 'RUN', at: T + 1 })
    .then({ state: { running: 'checking' }, ignored: true, timers: deadline })
    .when({ type: 'START', at: T + 2 })
    .then({ state: { running: 'checking' }, ignored: true, timers: deadline });
  given(watchdogRun)
    .when({ type: 'START', at: T })
    .then({ state: 'soon', timers: { warmUp: 10_000 } })
    .when(elapsed('warmUp'))
    .then({ state: { running: 'checking' }, effects: [{ type: 'watchdog.check' }], timers: deadline });
  t.pass();
});

test('[O10] tables that have had rows are remembered, whatever comes later', (t) => {
  const pushed = { type: 'PUSHED', at: T + 50, status: 200 } as const;
  const first = [run, checked({ produced: ['otel_logs'] }), pushed, run];
  const both = [...first, checked({ produced: ['otel_metrics_gauge'] }), pushed, run];
  for (const [events, produced] of [
    [first, ['otel_logs']],
    [both, ['otel_logs', 'otel_metrics_gauge']],
  ] as const) {
    given(watchdogRun, { events: [...events] })
      .when(checked())
      .then({ state: { running: 'pushing' }, effects: [push], timers: deadline, context: { produced } });
  }
  t.pass();
});

const HOUR = 3_600_000;
const pushed = { type: 'PUSHED', at: T, status: 200 } as const;
/** A run at that time, and the age of the newest row, seconds. */
const sees = (at: number, age: number) => [
  { type: 'RUN', at } as const,
  checked({ at, ages: { otel_logs: age } }),
  pushed,
];
const hourly = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, hour) => sees(T + (from + hour) * HOUR, 2)).flat();
/** What is remembered after these runs and one without any row. */
function remembers(events: ReturnType<typeof sees>, since: number, newestAt: number, steady: boolean) {
  given(watchdogRun, { events: [...events, { type: 'RUN', at: T }] })
    .when(checked())
    .then({
      state: { running: 'pushing' },
      effects: [push],
      timers: deadline,
      context: { arrivals: { otel_logs: { since, newestAt, steady } } },
    });
}

test('[O10] a signal is steady once its rows came for a day without a gap of more than an hour', (t) => {
  const first = T - 2_000;
  remembers(hourly(0, 23), first, first + 23 * HOUR, false);
  remembers(hourly(0, 24), first, first + 24 * HOUR, true);
  remembers([...hourly(0, 24), ...sees(T + 24 * HOUR, 400)], first, first + 24 * HOUR, true);
  const late = sees(T + 24 * HOUR + 1, 2);
  remembers([...hourly(0, 23), ...late], first + 24 * HOUR + 1, first + 24 * HOUR + 1, false);
  remembers([...hourly(0, 24), ...sees(T + 90 * HOUR, 2)], first + 90 * HOUR, first + 90 * HOUR, true);
  remembers([...hourly(0, 20), ...sees(T, 2)], first, first, false);
  remembers([...hourly(0, 20), ...sees(T + 30 * HOUR, 36_000 + 2)], first, first + 20 * HOUR, false);
  t.pass();
});

test('[O10] what is not required is told after the verdict, and fails nothing', (t) => {
  const unknown = ['otel_logs: 400 s, more than 300 s; not required yet'];
  const told = `UNKNOWN: ${unknown[0]}`;
  given(watchdogRun, { events: [run] })
    .when(checked({ unknown }))
    .then({ state: { running: 'pushing' }, effects: [push], timers: deadline })
    .when({ type: 'PUSHED', at: T + 50, status: 200 })
    .then({
      state: 'delivered',
      effects: [report('delivered', ['stale=4s drift=0', '{"ok":true}', told], 0)],
      timers: {},
    });
  const failures = [{ check: 'engine', query: 'the engines', found: '1 drifted' }] as const;
  const failed =
    'HEALTH CHECK FAILED: engine: asked the engines, got 1 drifted, since 2026-01-01T00:00:00.000Z';
  given(watchdogRun, { events: [run] })
    .when(checked({ unknown, failures }))
    .then({ state: 'unhealthy', effects: [report('unhealthy', [failed, told], 0)], timers: {} });
  t.pass();
});
