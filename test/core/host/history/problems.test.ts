import test from 'ava';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { logFeatures } from '../../../../src/main.ts';

const raised = (kind: string) => ({ event: { type: 'RAISED', kind, content: { text: 'x' } } });
const ended = (outcome: string) => ({ event: { type: 'CALL_ENDED', outcome } });
const asks = (type: string, params: object) => ({ effects: [{ type, params }] });

/** Records by the type of their actor: what went wrong, and beside it what looks like it and did not. */
const CASES: Readonly<Record<string, { bad: readonly object[]; good: readonly object[] }>> = {
  'alerts.alert': { bad: [raised('firing'), raised('event')], good: [raised('resolved')] },
  'alerts.rule': {
    bad: [{ event: { type: 'EVALUATION_FAILED' } }],
    good: [{ event: { type: 'EVALUATED' } }],
  },
  'alerts.unevaluated': { bad: [{ event: { type: 'FAILED' } }], good: [{ event: { type: 'RECOVERED' } }] },
  'alerts.outbox': { bad: [{ event: { type: 'REFUSED' } }], good: [{ event: { type: 'POSTED' } }] },
  'cluster.host': {
    bad: ['LOST', 'VERSION_REFUSED', 'STREAM_REPLACED', 'MIRROR_BEHIND', 'ISOLATED'].map((type) => ({
      event: { type },
    })),
    good: ['HEARD', 'LEFT', 'FORGOTTEN', 'CONNECTED'].map((type) => ({ event: { type } })),
  },
  'cluster.singleton': {
    bad: [{ event: { type: 'BEGIN_FAILED' } }, { event: { type: 'ORPHANED' } }],
    good: [{ event: { type: 'BEGUN' } }, { event: { type: 'ENDED' } }],
  },
  'console.access': { bad: [{ event: { type: 'LOGIN_REFUSED' } }], good: [{ event: { type: 'LOGGED_IN' } }] },
  'gateway.key': {
    bad: [
      { event: { type: 'CALL' }, ...asks('gateway.answer', { rule: 'revoked' }) },
      ...['tool_error', 'rpc_error', 'http_error', 'unreachable', 'timed_out', 'cut', 'failed'].map(ended),
    ],
    good: [
      { event: { type: 'CALL' }, ...asks('gateway.forward', { rule: 'revoked' }) },
      { event: { type: 'CALL' }, ...asks('gateway.answer', {}) },
      ...['ok', 'cancelled', 'answered', 'gone'].map(ended),
    ],
  },
  'gateway.rejections': {
    bad: [{ event: { type: 'REJECTED', rule: 'unknown_key' } }],
    good: [{ event: { type: 'REJECTED', rule: 'let_in' } }],
  },
  'gateway.routes': { bad: [{ event: { type: 'REFUSED' } }], good: [{ event: { type: 'LOADED' } }] },
  'gateway.route_health': {
    bad: [{ event: { type: 'CALL_FAILED' } }, { event: { type: 'TOKEN_UNUSABLE' } }],
    good: [{ event: { type: 'PROBED' } }],
  },
  'uptime-monitor.monitor': {
    bad: [
      { event: { type: 'BEAT', up: false } },
      { event: { type: 'TROUBLE' } },
      { event: { type: 'xstate.after.lost.monitor.up' } },
    ],
    good: [{ event: { type: 'BEAT', up: true } }, { event: { type: 'xstate.after.overdue.monitor.up' } }],
  },
  'uptime.push': {
    bad: [{ event: { type: 'PUSH_REFUSED' } }, { event: { type: 'PUSH_FAILED' } }],
    good: [{ event: { type: 'PUSHED' } }],
  },
  'restore.drill': {
    bad: [{ event: { type: 'VERIFIED', report: { ok: false } } }, { event: { type: 'REQUESTED' } }],
    good: [
      { event: { type: 'VERIFIED', report: { ok: true } } },
      { event: { type: 'REQUESTED' }, ...asks('restore.choose', {}) },
    ],
  },
  'router.config': {
    bad: [
      { event: { type: 'APPLY_FAILED' } },
      { event: { type: 'xstate.after.window.config.pending' } },
      {
        event: { type: 'SET', request: 'r1' },
        ...asks('http.reply', { to: 'r1', status: 409, body: { errors: ['ncid'] } }),
      },
    ],
    good: [
      {
        event: { type: 'SET', request: 'r1' },
        ...asks('http.reply', { to: 'r1', status: 200, body: { errors: [] } }),
      },
    ],
  },
  'router.store': { bad: [{ event: { type: 'LOST' } }], good: [{ event: { type: 'CONNECTED' } }] },
  'reconciler.leg': {
    bad: ['LEG_REFUSED', 'LEG_ABSENT', 'UNREACHABLE', 'REFUSED', 'UNKNOWN'].map((type) => ({
      event: { type },
    })),
    good: [{ event: { type: 'LEG_READ' } }, { event: { type: 'CONFLICT' } }],
  },
  'reconciler.reapply': {
    bad: [{ event: { type: 'NOT_REAPPLIED' } }],
    good: [{ event: { type: 'REAPPLIED' } }],
  },
  'columnar.connection': { bad: [{ event: { type: 'LOST' } }], good: [{ event: { type: 'CONNECTED' } }] },
  'memory.backups': { bad: [{ event: { type: 'NOTHING_TO_BACK_UP' } }], good: [{ event: { type: 'MADE' } }] },
  'otlp.intake': {
    bad: ['OVERLOADED', 'SPOOL_BLOCKED', 'DATABASE_UNAVAILABLE'].map((type) => ({ event: { type } })),
    good: [{ event: { type: 'RELIEVED' } }],
  },
  'watchdog.run': {
    bad: [
      { event: { type: 'PUSH_FAILED' } },
      { event: { type: 'PUSH_REFUSED' } },
      { event: { type: 'CHECKED' }, ...asks('watchdog.report', { outcome: 'unhealthy' }) },
    ],
    good: [{ event: { type: 'CHECKED' }, ...asks('watchdog.report', { outcome: 'delivered' }) }],
  },
};

test('[C15] what failed or was refused is known by its record, and by a text that its record has', async (t) => {
  const loaded = await Promise.all([...logFeatures().words.values()].map((load) => load()));
  const words = Object.assign({}, ...loaded) as Awaited<(typeof loaded)[number]>;
  const tested = Object.keys(words).filter((type) => words[type]?.problem);
  t.deepEqual(tested.sort(), Object.keys(CASES).sort(), 'every type that has such records is tested');
  for (const [type, { bad, good }] of Object.entries(CASES)) {
    const problem = words[type]?.problem;
    const given = (one: object) =>
      ({ actor: `${type}/x`, effects: [], to: {}, ...one }) as unknown as LogRecord;
    for (const one of good) t.false(problem?.is(given(one)), `${type} ${JSON.stringify(one)}`);
    for (const one of bad) {
      const text = JSON.stringify(one);
      t.true(problem?.is(given(one)), `${type} ${text}`);
      t.true(
        problem?.marks.some((mark) => text.includes(mark)),
        `marks of ${type} for ${text}`,
      );
    }
  }
});
