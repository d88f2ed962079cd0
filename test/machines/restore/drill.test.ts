import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { MachineStepper } from '../../../src/core/kernel/actors/xstate.ts';
import { restoreDrill } from '../../../src/machines/restore/drill.ts';
import type { DrillEvent } from '../../../src/machines/restore/drill-shapes.ts';
import { restoreOverdue } from '../../../src/machines/restore/overdue.ts';

const drill = { id: 'd1', path: 'a', by: 'command', at: 1_000 } as const;
const asked: DrillEvent = { type: 'REQUESTED', ...drill };
const source = { kind: 'snapshot', name: 's1' } as const;
const chosen: DrillEvent = { type: 'CHOSEN', source };
const url = 'http://127.0.0.1:1';
const prepared: DrillEvent = { type: 'PREPARED', place: 'here', url };
const recovered: DrillEvent = { type: 'RECOVERED', url };
const none = { total: 0, ids: [] };
const report = {
  ok: true,
  verdict: 'as recorded.',
  expected: { by: 'made', least: 2, most: 2 },
  restored: { count: 2, approximate: 2 },
  live: { count: 2, approximate: 2 },
  seeds: { checked: 0, missing: [], changed: [] },
  points: { same: 2, missing: none, unexpected: none, changed: none, unsettled: none },
  drift: { added: none, deleted: none, changed: none },
  moving: none,
} as const;
const verified: DrillEvent = { type: 'VERIFIED', report };
const cleaned: DrillEvent = { type: 'CLEANED', at: 2_000, removed: ['d1'] };
const failed = (effect: string): DrillEvent => ({
  type: 'effect.failed',
  effect,
  code: 'HF_X',
  message: 'it broke',
});
const clean = (...ids: string[]) => ({ type: 'restore.clean', params: { ids } });
const alert = (phase: string, reason: string) => ({
  type: 'alerts.raise',
  params: {
    name: 'restore.drill_failed',
    severity: 'critical',
    text: `A restore drill of the memory store failed while ${phase}: ${reason}`,
    labels: { drill: 'd1', path: 'a', phase },
  },
});

const upTo = {
  choosing: [asked],
  preparing: [asked, chosen],
  recovering: [asked, chosen, prepared],
  verifying: [asked, chosen, prepared, recovered],
} as const;
const effects = {
  choosing: 'restore.choose',
  preparing: 'restore.prepare',
  recovering: 'restore.recover',
  verifying: 'restore.verify',
} as const;

test('[B6] a drill goes through its phases one after another, each asked for with what is known by then', (t) => {
  given(restoreDrill)
    .when(asked)
    .then({
      state: 'choosing',
      effects: [
        { type: 'http.reply', params: { status: 202, body: { id: 'd1' } } },
        { type: 'restore.choose', params: { drill } },
      ],
    })
    .when(chosen)
    .then({ state: 'preparing', effects: [{ type: 'restore.prepare', params: { drill, source } }] })
    .when(prepared)
    .then({ state: 'recovering', effects: [{ type: 'restore.recover', params: { drill, source, url } }] })
    .when(recovered)
    .then({ state: 'verifying', effects: [{ type: 'restore.verify', params: { drill, source, url } }] })
    .when(verified)
    .then({ state: 'cleaning', effects: [clean('d1')] })
    .when(cleaned)
    .then({
      state: { resting: 'completed' },
      context: {
        drill: undefined,
        results: [
          { ...drill, outcome: 'completed', endedAt: 2_000, cleanFailures: 0, source, place: 'here', report },
        ],
      },
    });
  t.pass();
});

for (const [phase, effect] of Object.entries(effects)) {
  const events = upTo[phase as keyof typeof upTo];
  test(`[B6] a failure, a crash and a person's end while ${phase} all lead to the clean-up`, (t) => {
    const lost = 'it was interrupted by the end of the runtime';
    given(restoreDrill, { events })
      .when(failed(effect))
      .then({ state: 'cleaning', effects: [alert(phase, 'it broke'), clean('d1')] })
      .when(cleaned)
      .then({ state: { resting: 'failed' } });
    given(restoreDrill, { events })
      .when({ type: 'effect.lost', effect })
      .then({ state: 'cleaning', effects: [alert(phase, lost), clean('d1')] });
    given(restoreDrill, { events })
      .when({ type: 'CANCEL', reason: 'by hand' })
      .then({
        state: 'cleaning',
        effects: [clean('d1')],
        context: { failure: { phase, reason: 'by hand' } },
      });
    given(restoreDrill, { events }).when(failed('http.reply')).then({ state: phase, ignored: true });
    t.pass();
  });
}

test('[B6] the result of a drill says in which phase it failed, and why', (t) => {
  const stepper = new MachineStepper(restoreDrill);
  for (const [phase, effect] of Object.entries(effects)) {
    let step = stepper.initial();
    for (const event of [...upTo[phase as keyof typeof upTo], failed(effect), cleaned]) {
      step = stepper.next(step.snapshot, JSON.parse(JSON.stringify(event)));
    }
    t.like(step.context, {
      results: [{ id: 'd1', outcome: 'failed', failure: { phase, reason: 'it broke' } }],
    });
  }
});

test('[B6] a second drill is refused with the id of the first, whatever the first is doing', (t) => {
  const refusal = { type: 'http.reply', params: { status: 409, body: { id: 'd1' } } };
  const second: DrillEvent = { ...asked, id: 'd2' } as DrillEvent;
  const stuck = [asked, { type: 'CANCEL', reason: 'x' }, failed('restore.clean')] as const;
  for (const [phase, events] of [...Object.entries(upTo), ['uncleaned', stuck] as const]) {
    given(restoreDrill, { events })
      .when(second)
      .then({ state: phase, effects: [refusal] });
  }
  t.pass();
});

test('[B6] a clean-up that fails is told once and tried after one, two, four minutes, and after a restart at once', (t) => {
  const events = [asked, { type: 'CANCEL', reason: 'x' }] as const;
  given(restoreDrill, { events })
    .when(failed('restore.clean'))
    .then({
      state: 'uncleaned',
      timers: { retryClean: 60_000 },
      effects: [
        {
          type: 'alerts.raise',
          params: {
            name: 'restore.scratch_left',
            severity: 'warning',
            text: 'A scratch instance of the memory store could not be removed, and is tried again: it broke',
            labels: { scratch: 'd1' },
          },
        },
      ],
    })
    .when(elapsed('retryClean'))
    .then({ state: 'cleaning', effects: [clean('d1')] })
    .when(failed('restore.clean'))
    .then({ state: 'uncleaned', timers: { retryClean: 120_000 } })
    .when({ type: 'STARTED', leftovers: [] })
    .then({ state: 'cleaning', effects: [clean('d1')] })
    .when({ type: 'effect.lost', effect: 'restore.clean' })
    .then({ state: 'uncleaned', timers: { retryClean: 240_000 } });
  t.pass();
});

test('[B6] what a start finds left behind is removed, with or without a drill', (t) => {
  const started: DrillEvent = { type: 'STARTED', leftovers: ['d0'] };
  given(restoreDrill)
    .when(started)
    .then({ state: 'cleaning', effects: [clean('d0')] })
    .when(cleaned)
    .then({ state: { resting: 'idle' }, context: { leftovers: [], results: [] } });
  given(restoreDrill, { events: [...upTo.verifying, started] })
    .when({ type: 'effect.lost', effect: 'restore.verify' })
    .then({
      state: 'cleaning',
      effects: [alert('verifying', 'it was interrupted by the end of the runtime'), clean('d1', 'd0')],
    });
  t.pass();
});

test('[B8] a path without a drill for its time is told of once, over restarts, and its end when one has ended', (t) => {
  const overdue = (state: string, text: string) => ({
    type: 'alerts.raise',
    params: {
      name: 'restore.overdue',
      severity: state === 'firing' ? 'warning' : 'info',
      text,
      labels: { path: 'b', state },
    },
  });
  const input = { path: 'b' };
  const watch = (at: number, overdueMs?: number) =>
    ({ type: 'WATCH', at, ...(overdueMs !== undefined && { overdueMs }) }) as const;
  const HOURS = 3_600_000;
  given(restoreOverdue, { input, events: [watch(0, 2 * HOURS)] })
    .when(watch(HOURS, 2 * HOURS))
    .then({ state: 'waiting', ignored: true })
    .when(elapsed('overdue'))
    .then({
      state: 'overdue',
      effects: [overdue('firing', 'No restore drill of path b of the memory store has ended for 2 h.')],
    })
    .when({ type: 'DRILLED', at: 5 * HOURS })
    .then({
      state: 'waiting',
      timers: { overdue: 2 * HOURS },
      effects: [overdue('resolved', 'A restore drill of path b has ended.')],
    })
    .when(watch(6 * HOURS, 4 * HOURS))
    .then({ state: 'waiting', timers: { overdue: 3 * HOURS } })
    .when(watch(7 * HOURS))
    .then({ state: 'unwatched' });
  t.pass();
});

test('[B4] a comparison that proves nothing is a failed drill, with its verdict', (t) => {
  const verdict = '1 points instead of 2, as recorded when it was made.';
  given(restoreDrill, { events: upTo.verifying })
    .when({ type: 'VERIFIED', report: { ...report, ok: false, verdict } })
    .then({ state: 'cleaning', effects: [alert('verifying', verdict), clean('d1')] })
    .when(cleaned)
    .then({ state: { resting: 'failed' } });
  t.pass();
});
