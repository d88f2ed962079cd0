import test from 'ava';
import { MachineStepper } from '../../../src/core/kernel/actors/xstate.ts';
import type { LogEvent } from '../../../src/core/kernel/log/record.ts';
import { routerConfig } from '../../../src/machines/router/config.ts';
import type {
  ConfigContext,
  ConfigInput,
  ReplyParams,
  SetEvent,
} from '../../../src/machines/router/config-shapes.ts';
import { RouterError } from '../../../src/plugins/router/errors.ts';

const WINDOW = 'xstate.after.window.router-config.pending';
const RETRY = 'xstate.after.retry.router-config.expired.retrying';
const RECHECK = 'xstate.after.retry.router-config.free.busy.verifying';
const PENDING_TEXT =
  'A config change transaction context is in progress, reject non-transaction change request';
const NONE_TEXT = 'No ongoing config change transaction context, cannot commit or revert';

let requests = 0;

/** A request as the surface makes it; a fresh id unless one is given. */
function set(fields: Partial<SetEvent> = {}): LogEvent {
  requests += 1;
  const request = fields.request ?? `r${requests}`;
  return {
    type: 'SET',
    request,
    correlation: request,
    who: 'app',
    ncid: 'n0',
    fingerprint: 'fp_b',
    ...fields,
  };
}

const append = (transID: string, fields: Partial<SetEvent> = {}) => set({ op: 'append', transID, ...fields });
const loaded = (ncid: string, fingerprint: string): LogEvent => ({ type: 'LOADED', ncid, fingerprint });
const applied = (ncid: string, fingerprint = 'fp_b', reapplied: string[] = []): LogEvent => {
  return { type: 'APPLIED', ncid, fingerprint, reapplied };
};
const failed: LogEvent = {
  type: 'APPLY_FAILED',
  errors: ['Invalid gateway'],
  code: 'HF_ROUTER_APPLY_FAILED',
  status: 500,
};

/** Runs events through the machine. Effects are those of the last event; replies are of all of them, in order. */
function after(events: readonly LogEvent[], input: ConfigInput = {}) {
  const stepper = new MachineStepper(routerConfig);
  let step = stepper.initial({ ...input });
  const replies: ReplyParams[] = [];
  for (const event of events) {
    step = stepper.next(step.snapshot, event);
    for (const { type, params } of step.effects)
      if (type === 'http.reply') replies.push(params as unknown as ReplyParams);
  }
  // A reply to nobody, which the end of a window makes, has no effect.
  const heard = replies.filter(({ to }) => to !== '');
  const context = step.context as ConfigContext;
  return { value: step.value, context, effects: step.effects, replies: heard, last: heard.at(-1) };
}

const ready = [loaded('n0', 'fp_a')];
const idle = { free: 'idle' };
const applying = { free: { busy: 'applying' } };
/** Transaction t1 is pending: n1/fp_b is active, n0/fp_a is what a revert restores. */
const pending = [...ready, append('t1', { request: 'open' }), applied('n1')];

test('[R8] an accepted save is applied, published and answered with its new ncid', (t) => {
  const begun = after([...ready, set({ request: 'r', correlation: 's', who: 'app' })]);
  t.deepEqual(begun.value, applying);
  t.deepEqual(begun.effects, [
    {
      type: 'router.apply',
      params: { op: 'save', expected: 'n0', before: 'fp_a', fingerprint: 'fp_b', who: 'app' },
    },
  ]);

  const done = after([
    ...ready,
    set({ request: 'r', correlation: 's' }),
    applied('n1', 'fp_b', ['interface.vlan.eth1.10']),
  ]);
  t.deepEqual(done.value, idle);
  t.deepEqual(done.effects, [
    {
      type: 'router.publish',
      params: { ncid: 'n1', reapplied: ['interface.vlan.eth1.10'], correlation: 's' },
    },
    { type: 'http.reply', params: { to: 'r', status: 200, body: { errors: [], ncid: 'n1' } } },
  ]);
  t.deepEqual(done.context.active, { ncid: 'n1', fingerprint: 'fp_b' });
});

test('[R3] of two writers that race with one ncid the first wins, the other is told that it does not match', (t) => {
  const { replies, context, value } = after([
    ...ready,
    set({ request: 'first' }),
    set({ request: 'second', fingerprint: 'fp_c' }),
    applied('n1'),
  ]);
  t.deepEqual(replies, [
    { to: 'first', status: 200, body: { errors: [], ncid: 'n1' } },
    {
      to: 'second',
      status: 400,
      body: { errors: ['ncid not match'], code: 'HF_ROUTER_NCID_MISMATCH' },
    },
  ]);
  t.is(context.active.ncid, 'n1');
  t.deepEqual(value, idle);
});

test('[R3] a queued request with the ncid that is current by then is carried out', (t) => {
  const { effects, value } = after([
    ...ready,
    set(),
    set({ ncid: 'n1', fingerprint: 'fp_c' }),
    applied('n1'),
  ]);
  t.deepEqual(value, applying);
  t.like(effects.at(-1), {
    type: 'router.apply',
    params: { op: 'save', expected: 'n1', before: 'fp_b', fingerprint: 'fp_c' },
  });
});

test('[R3] a request for which the store has moved on already is refused at once, ahead of what waits', (t) => {
  const late = set({ request: 'late', ncid: 'n0', current: 'n7' });
  const refused = {
    to: 'late',
    status: 400,
    body: { errors: ['ncid not match'], code: 'HF_ROUTER_NCID_MISMATCH' },
  };
  const before = after([...ready, late]);
  t.deepEqual(
    [before.value, before.replies],
    [idle, [refused]],
    'although the machine knows of nothing newer',
  );
  const meanwhile = after([...ready, set(), set({ fingerprint: 'fp_c' }), late], { queueLimit: 1 });
  t.deepEqual([meanwhile.value, meanwhile.replies], [applying, [refused]]);
  t.is(meanwhile.context.queue.length, 1);
  const unread = after([late, loaded('n0', 'fp_a')]);
  t.deepEqual(
    [unread.value, unread.replies],
    [idle, [refused]],
    'a store that has gone back changes nothing',
  );
  const { ncid: _, ...bare } = late;
  t.is(after([...ready, bare as LogEvent]).last?.body.code, 'HF_ROUTER_NCID_REQUIRED');
  const current = after([...ready, set({ ncid: 'n0', current: 'n0' })]);
  t.deepEqual(current.value, applying, 'one that is not late is carried out');
  const bypass = after([...ready, set({ ncid: 'n0', current: 'n7', ignoreNcid: true })]);
  t.deepEqual(bypass.value, applying, 'and so is one that bypasses the check');
});

test('[R10] while a transaction is pending, a request that comes too late hears of the transaction first', (t) => {
  const save = after([...pending, set({ ncid: 'n0', current: 'n1' })]);
  t.deepEqual(save.last?.body.errors, [PENDING_TEXT]);
  const more = after([...pending, append('t1', { ncid: 'n1', current: 'n2' })]);
  t.is(more.last?.body.code, 'HF_ROUTER_NCID_MISMATCH');
  t.deepEqual(more.value, { pending: 'idle' });
});

test('[R3] a body without ncid is refused', (t) => {
  const { ncid: _, ...bare } = set() as LogEvent & { ncid: string };
  const { last, value } = after([...ready, bare as LogEvent]);
  t.like(last, {
    status: 400,
    body: { errors: ['ncid is required'], code: 'HF_ROUTER_NCID_REQUIRED' },
  });
  t.deepEqual(value, idle);
});

test('[R4] ignoreNcid bypasses the check, also without an ncid, and raises an alert', (t) => {
  const { effects, value } = after([...ready, set({ ncid: 'old', ignoreNcid: true, who: 'curl' })]);
  t.deepEqual(value, applying);
  t.like(effects[0], {
    type: 'alerts.raise',
    params: {
      name: 'router.ncid_bypassed',
      severity: 'warning',
      labels: { who: 'curl', posted: 'old', current: 'n0' },
    },
  });
});

test('[R5] set, append, revert and auto-revert bring the ncid of their apply; commit and reapply keep theirs', (t) => {
  t.is(after(pending).context.active.ncid, 'n1');
  t.is(after([...pending, set({ op: 'commit', transID: 't1' })]).context.active.ncid, 'n1');
  t.is(
    after([...pending, set({ op: 'revert', transID: 't1' }), applied('n2', 'fp_a')]).context.active.ncid,
    'n2',
  );
  const reapply = { type: 'APPLY_CURRENT', request: 'r', correlation: 'r', who: 'app' };
  t.is(after([...ready, reapply, applied('n0', 'fp_a')]).context.active.ncid, 'n0');
});

test('[R6] append opens a transaction and its window; commit keeps the change and publishes nothing', (t) => {
  const opened = after(pending);
  t.deepEqual(opened.value, { pending: 'idle' });
  t.deepEqual(opened.context.pending, {
    transID: 't1',
    who: 'app',
    previous: { ncid: 'n0', fingerprint: 'fp_a' },
  });
  t.deepEqual(opened.effects.at(-1), {
    type: 'timer.start',
    params: { timer: WINDOW, delayMs: 120_000 },
  });

  const { effects, value, context } = after([...pending, set({ request: 'c', op: 'commit', transID: 't1' })]);
  t.deepEqual(value, idle);
  t.deepEqual(effects, [
    { type: 'timer.cancel', params: { timer: WINDOW } },
    { type: 'http.reply', params: { to: 'c', status: 200, body: { errors: [], ncid: 'n1' } } },
  ]);
  t.deepEqual(context.last, { outcome: 'committed', transID: 't1' });
});

test('[R6] revert applies what was before the transaction', (t) => {
  const begun = after([...pending, set({ request: 'v', op: 'revert', transID: 't1' })]);
  t.like(begun.effects[0], {
    type: 'router.apply',
    params: { op: 'revert', expected: 'n1', before: 'fp_b', fingerprint: 'fp_a', transID: 't1' },
  });
  const done = after([
    ...pending,
    set({ request: 'v', op: 'revert', transID: 't1' }),
    applied('n2', 'fp_a', ['interface.vlan.eth1.10']),
  ]);
  t.deepEqual(done.value, idle);
  t.deepEqual(done.last, { to: 'v', status: 200, body: { errors: [], ncid: 'n2' } });
  t.deepEqual(done.context.last, { outcome: 'reverted', transID: 't1' });
  t.deepEqual(done.effects[0], { type: 'timer.cancel', params: { timer: WINDOW } });
});

test('[R6] the window runs out without commit: the previous config is applied, and nobody is answered', (t) => {
  const begun = after([...pending, { type: WINDOW }]);
  t.deepEqual(begun.value, { expired: { busy: 'applying' } });
  t.like(begun.effects.at(-1), { type: 'router.apply', params: { op: 'revert', fingerprint: 'fp_a' } });
  const { value, effects, context, replies } = after([
    ...pending,
    { type: WINDOW },
    applied('n2', 'fp_a', ['interface.phy.eth1']),
  ]);
  t.deepEqual(value, idle);
  t.deepEqual(
    effects.map(({ type }) => type),
    ['router.publish', 'http.reply'],
  );
  t.like(effects[1], { params: { to: '' } }, 'the reply reaches nobody');
  t.deepEqual(context.last, { outcome: 'reverted', transID: 't1' });
  t.is(replies.length, 1);
});

test('[R6] a second append of the same transaction starts the window anew and keeps what a revert restores', (t) => {
  const again = append('t1', { ncid: 'n1', fingerprint: 'fp_c' });
  const { effects, context } = after([...pending, again, applied('n2', 'fp_c')]);
  t.deepEqual(
    effects.map(({ type }) => type),
    ['timer.cancel', 'router.publish', 'http.reply', 'timer.start'],
  );
  t.deepEqual(context.pending, {
    transID: 't1',
    who: 'app',
    previous: { ncid: 'n0', fingerprint: 'fp_a' },
  });
});

test('[R7] a second append that fails leaves the pending config and the original deadline', (t) => {
  const again = append('t1', { request: 'again', ncid: 'n1', fingerprint: 'fp_c' });
  const { effects, value, context } = after([...pending, again, failed]);
  t.deepEqual(value, { pending: 'idle' });
  t.deepEqual(effects, [
    {
      type: 'http.reply',
      params: {
        to: 'again',
        status: 500,
        body: { errors: ['Invalid gateway'], code: 'HF_ROUTER_APPLY_FAILED' },
      },
    },
  ]);
  t.deepEqual(context.active, { ncid: 'n1', fingerprint: 'fp_b' });
});

test('[R7] a save whose apply fails changes nothing', (t) => {
  const { value, context, last } = after([...ready, set(), failed]);
  t.deepEqual(value, idle);
  t.deepEqual(context.active, { ncid: 'n0', fingerprint: 'fp_a' });
  t.is(last?.status, 500);
  t.is(context.job, undefined);
});

test('[R6] a window that runs out while an append of the same transaction is applied still reverts', (t) => {
  const again = append('t1', { request: 'again', ncid: 'n1', fingerprint: 'fp_c' });
  const midway = after([...pending, again, { type: WINDOW }, applied('n2', 'fp_c')]);
  t.deepEqual(midway.value, { expired: { busy: 'applying' } });
  t.like(midway.effects.at(-1), {
    type: 'router.apply',
    params: { op: 'revert', expected: 'n2', fingerprint: 'fp_a' },
  });
  t.is(midway.replies.length, 1, 'the append is not answered before the revert stands');

  const { last, value } = after([
    ...pending,
    again,
    { type: WINDOW },
    applied('n2', 'fp_c'),
    applied('n3', 'fp_a'),
  ]);
  t.deepEqual(value, idle);
  t.like(last, { to: 'again', status: 400, body: { code: 'HF_ROUTER_TRANSACTION_NONE' } });
});

test('[R10] a commit that waits behind an append comes too late when the window runs out meanwhile', (t) => {
  const { replies, value } = after([
    ...pending,
    append('t1', { request: 'again', ncid: 'n1', fingerprint: 'fp_c' }),
    set({ request: 'c', op: 'commit', transID: 't1' }),
    { type: WINDOW },
    applied('n2', 'fp_c'),
    applied('n3', 'fp_a'),
  ]);
  t.deepEqual(value, idle);
  t.deepEqual(
    replies.slice(1).map(({ to, status }) => [to, status]),
    [
      ['again', 400],
      ['c', 400],
    ],
  );
});

const answers: [string, LogEvent[], LogEvent, string, keyof typeof RouterError.table][] = [
  [
    'a plain save while one is pending',
    pending,
    set({ ncid: 'n1' }),
    PENDING_TEXT,
    'HF_ROUTER_TRANSACTION_PENDING',
  ],
  [
    'apply_current_config while one is pending',
    pending,
    { type: 'APPLY_CURRENT', request: 'x', correlation: 'x', who: 'app' },
    PENDING_TEXT,
    'HF_ROUTER_TRANSACTION_PENDING',
  ],
  [
    'an append under another transID',
    pending,
    append('t2', { ncid: 'n1' }),
    'transID t2 does not match current transaction ID',
    'HF_ROUTER_TRANSACTION_OTHER',
  ],
  [
    'a second append with the ncid from before the transaction',
    pending,
    append('t1', { ncid: 'n0' }),
    'ncid not match',
    'HF_ROUTER_NCID_MISMATCH',
  ],
  [
    'a commit under another transID',
    pending,
    set({ op: 'commit', transID: 't2' }),
    'transID t2 does not match current transaction ID',
    'HF_ROUTER_TRANSACTION_OTHER',
  ],
  [
    'a revert under another transID',
    pending,
    set({ op: 'revert', transID: 't2' }),
    'transID t2 does not match current transaction ID',
    'HF_ROUTER_TRANSACTION_OTHER',
  ],
  [
    'a commit with none pending',
    ready,
    set({ op: 'commit', transID: 't1' }),
    NONE_TEXT,
    'HF_ROUTER_TRANSACTION_NONE',
  ],
  [
    'a revert with none pending',
    ready,
    set({ op: 'revert', transID: 't1' }),
    NONE_TEXT,
    'HF_ROUTER_TRANSACTION_NONE',
  ],
  [
    'a commit after the deadline',
    [...pending, { type: WINDOW }, applied('n2', 'fp_a')],
    set({ op: 'commit', transID: 't1' }),
    NONE_TEXT,
    'HF_ROUTER_TRANSACTION_NONE',
  ],
  [
    'an append under a transID that was committed',
    [...pending, set({ op: 'commit', transID: 't1' })],
    append('t1', { ncid: 'n1' }),
    'transID t1 has been used, a transaction needs a fresh one',
    'HF_ROUTER_TRANSACTION_USED',
  ],
];
for (const [what, given, when, text, code] of answers) {
  test(`[R10] ${what} is refused and changes nothing`, (t) => {
    const before = after(given);
    const { last, effects, value, context } = after([...given, when]);
    t.deepEqual(last, { to: when.request as string, status: 400, body: { errors: [text], code } });
    t.is(RouterError.table[code].status, 400);
    t.is(effects.length, 1);
    t.deepEqual(value, before.value);
    t.deepEqual(context, before.context);
  });
}

test('[R6,R10] a revert that fails after the deadline is alerted and tried again until it stands', (t) => {
  const stuck = after([...pending, { type: WINDOW }, failed]);
  t.deepEqual(stuck.value, { expired: 'retrying' });
  t.like(stuck.effects[0], { type: 'http.reply', params: { to: '' } });
  t.like(stuck.effects[1], {
    type: 'alerts.raise',
    params: { name: 'router.revert_failed', labels: { transID: 't1', reason: 'Invalid gateway' } },
  });
  t.deepEqual(stuck.effects.slice(2), [{ type: 'timer.start', params: { timer: RETRY, delayMs: 10_000 } }]);
  const asked = after([...pending, { type: WINDOW }, failed, set({ op: 'commit', transID: 't1' })]);
  t.is(asked.last?.body.code, 'HF_ROUTER_TRANSACTION_NONE', 'meanwhile every request is answered');

  const again = after([...pending, { type: WINDOW }, failed, { type: RETRY }]);
  t.like(again.effects.at(-1), { type: 'router.apply', params: { op: 'revert', fingerprint: 'fp_a' } });
  t.deepEqual(
    after([...pending, { type: WINDOW }, failed, { type: RETRY }, applied('n2', 'fp_a')]).value,
    idle,
  );
});

test('[R6] a revert that was asked for and fails inside the window leaves the transaction pending', (t) => {
  const { value, last, context } = after([...pending, set({ op: 'revert', transID: 't1' }), failed]);
  t.deepEqual(value, { pending: 'idle' });
  t.is(last?.status, 500);
  t.is(context.pending?.transID, 't1');
});

const timedOut = {
  type: 'effect.failed',
  effect: 'router.apply',
  code: 'HF_EFFECT_TIMEOUT',
  message: 'too slow',
};

test('[R7] an apply without an answer is looked up in the store: it had come about', (t) => {
  const { effects, value } = after([...ready, set({ request: 'r' }), timedOut]);
  t.deepEqual(value, { free: { busy: 'verifying' } });
  t.deepEqual(effects[0], {
    type: 'router.verify',
    params: {
      op: 'save',
      expected: 'n0',
      before: 'fp_a',
      fingerprint: 'fp_b',
      who: 'app',
      fault: 'too slow',
    },
  });
  const done = after([...ready, set({ request: 'r' }), timedOut, applied('n1', 'fp_b')]);
  t.deepEqual(done.value, idle);
  t.deepEqual(done.last, { to: 'r', status: 200, body: { errors: [], ncid: 'n1' } });
});

test('[R7] an apply without an answer is looked up in the store: it had not come about', (t) => {
  const notSaved = { ...failed, errors: ['too slow'] };
  const done = after([...ready, set({ request: 'r' }), timedOut, notSaved]);
  t.deepEqual(done.value, idle);
  t.deepEqual(done.last, {
    to: 'r',
    status: 500,
    body: { errors: ['too slow'], code: 'HF_ROUTER_APPLY_FAILED' },
  });
  t.is(done.context.active.ncid, 'n0');
});

test('[R7] a store that cannot be read is read again later', (t) => {
  const unread = { type: 'effect.failed', effect: 'router.verify', code: 'HF_INTERNAL', message: 'no' };
  const { effects } = after([...ready, set(), timedOut, unread, { type: RECHECK }]);
  t.true(effects.some(({ type }) => type === 'router.verify'));
});

test('[R36] a store that was changed behind the API is taken as it is, and alerted', (t) => {
  const { effects, context } = after([...ready, loaded('hand', 'fp_x')]);
  t.deepEqual(context.active, { ncid: 'hand', fingerprint: 'fp_x' });
  t.is(effects.length, 1);
  t.like(effects[0], {
    type: 'alerts.raise',
    params: { name: 'router.store_changed', labels: { expected: 'n0', found: 'hand' } },
  });
});

test('[R3] a writer that overtook us in the store wins, and ours is told that its ncid does not match', (t) => {
  const { last, context, value } = after([
    ...ready,
    set({ request: 'r' }),
    { type: 'OVERTAKEN', ncid: 'theirs', fingerprint: 'fp_x' },
  ]);
  t.deepEqual(last, {
    to: 'r',
    status: 400,
    body: { errors: ['ncid not match'], code: 'HF_ROUTER_NCID_MISMATCH' },
  });
  t.deepEqual(context.active, { ncid: 'theirs', fingerprint: 'fp_x' });
  t.deepEqual(value, idle);
});

test('requests before the store has been read wait for it', (t) => {
  const { effects, value } = after([set(), loaded('n0', 'fp_a')]);
  t.deepEqual(value, applying);
  t.is(effects[0]?.type, 'router.apply');
});

test('one request more than the queue holds is answered 503 at once', (t) => {
  const { last, context } = after([...ready, set(), set(), set(), set({ request: 'extra' })], {
    queueLimit: 2,
  });
  t.like(last, { to: 'extra', status: 503, body: { code: 'HF_ROUTER_BUSY' } });
  t.is(context.queue.length, 2);
});

test('[R10] the memory of used transIDs is bounded', (t) => {
  const events = [...ready];
  for (let i = 1; i <= 100; i += 1) {
    events.push(
      append(`t${i}`, { ignoreNcid: true }),
      applied(`n${i}`),
      set({ op: 'commit', transID: `t${i}` }),
    );
  }
  const { used } = after(events).context;
  t.is(used.length, 64);
  t.is(used.at(-1), 't100');
});

test('the context factory works without input', (t) => {
  t.notThrows(() => new MachineStepper(routerConfig).initial());
});

test('[R6] settings may change at a start; an open window stays as long as it was, nonsense changes nothing', (t) => {
  const configure = { type: 'CONFIGURE', windowMs: 30_000, retryMs: 1_000, queueLimit: 8 };
  const open = after([...pending, configure]);
  t.deepEqual(open.effects, []);
  t.like(open.context, { windowMs: 30_000, retryMs: 1_000, queueLimit: 8 });
  const nonsense = after([...ready, { type: 'CONFIGURE', windowMs: -1 }]);
  t.like(nonsense.context, { windowMs: 120_000, retryMs: 10_000, queueLimit: 64 });
});

const shared = (ncid: string, fingerprint: string, transaction?: object): LogEvent => {
  return { ...loaded(ncid, fingerprint), shared: true, ...(transaction && { transaction }) } as LogEvent;
};
const theirs = { transID: 'x1', who: 'other', previous: { ncid: 'n0', fingerprint: 'fp_a' }, leftMs: 60_000 };

test('[R10] a transaction of another router on the same store is held to, for what is left of its window', (t) => {
  const joined = after([shared('n0', 'fp_a'), shared('x1', 'fp_x', theirs)]);
  t.deepEqual(joined.value, { pending: 'idle' });
  t.deepEqual(joined.effects.at(-1), { type: 'timer.start', params: { timer: WINDOW, delayMs: 60_000 } });
  const refused = after([shared('n0', 'fp_a'), shared('x1', 'fp_x', theirs), set({ ncid: 'x1' })]);
  t.is(refused.last?.body.code, 'HF_ROUTER_TRANSACTION_PENDING');
  const committed = after([shared('n0', 'fp_a'), shared('x1', 'fp_x', theirs), shared('x1', 'fp_x')]);
  t.deepEqual(committed.value, idle);
  t.deepEqual(committed.context.last, { outcome: 'committed', transID: 'x1' });
  const reverted = after([shared('n0', 'fp_a'), shared('x1', 'fp_x', theirs), shared('x2', 'fp_a')]);
  t.deepEqual(reverted.context.last, { outcome: 'reverted', transID: 'x1' });
});

test('[R6] an append to a transaction of another router begins a window of our own, as long as ours are', (t) => {
  const joined = [shared('n0', 'fp_a'), shared('x1', 'fp_x', theirs)];
  const { effects, context } = after([...joined, append('x1', { ncid: 'x1' }), applied('n2')]);
  t.deepEqual(
    effects.find(({ type }) => type === 'timer.start'),
    {
      type: 'timer.start',
      params: { timer: WINDOW, delayMs: 120_000 },
    },
  );
  t.deepEqual(context.pending, { transID: 'x1', who: 'other', previous: theirs.previous });
});

test('[R6] on a shared store a commit is carried out there, and published nowhere', (t) => {
  const opened = [shared('n0', 'fp_a'), append('t1'), applied('n1')];
  const asked = after([...opened, set({ request: 'c', op: 'commit', transID: 't1' })]);
  t.deepEqual(asked.value, { pending: { busy: 'applying' } });
  t.like(asked.effects.at(-1), { type: 'router.apply', params: { op: 'commit', transID: 't1' } });
  const done = after([...opened, set({ request: 'c', op: 'commit', transID: 't1' }), applied('n1')]);
  t.deepEqual(done.value, idle);
  t.false(done.effects.some(({ type }) => type === 'router.publish'));
  t.deepEqual(done.last, { to: 'c', status: 200, body: { errors: [], ncid: 'n1' } });
  t.deepEqual(done.context.last, { outcome: 'committed', transID: 't1' });
});

test('a store that somebody else wrote during a transaction leaves its deadline', (t) => {
  const { value, effects, context } = after([
    ...pending,
    append('t1', { ncid: 'n1' }),
    { type: 'OVERTAKEN', ncid: 'hand', fingerprint: 'fp_x' },
  ]);
  t.deepEqual(value, { pending: 'idle' });
  t.false(effects.some(({ type }) => type.startsWith('timer.')));
  t.is(context.pending?.transID, 't1');
});

test('[C13] of more singletons than are remembered those with the oldest fencing tokens are forgotten', (t) => {
  const fenced = (number: number, singleton = `s${number}`) => set({ fence: { singleton, number } });
  const many = Array.from({ length: 17 }, (_, i) => fenced(i + 1));
  const { fences = {} } = after([...ready, ...many], { queueLimit: 100 }).context;
  t.is(Object.keys(fences).length, 16);
  t.like(fences, { s1: undefined, s17: 17 });
  const { last } = after([
    ...ready,
    fenced(17),
    set({ fence: { singleton: 's17', number: 16 } }),
    applied('n1'),
  ]);
  t.like(last, { status: 409, body: { code: 'HF_ROUTER_FENCED' } });
});
