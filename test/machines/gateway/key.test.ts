import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import type { CallRequest } from '../../../src/machines/gateway/call-shapes.ts';
import { virtualKey } from '../../../src/machines/gateway/key.ts';
import type { KeyTerms } from '../../../src/machines/gateway/key-shapes.ts';

const terms: KeyTerms = { alias: 'laptop', owner: 'ann', servers: ['memory'] };
const made = (more: Partial<KeyTerms> = {}) =>
  ({ type: 'KEY_CREATED', at: 1_000, presented: 'k_1', terms: { ...terms, ...more } }) as const;
const call = (more: Partial<CallRequest> = {}): CallRequest => ({
  type: 'CALL',
  at: 2_000,
  presented: 'k_1',
  routes: ['memory'],
  table: 1,
  method: 'tools/call',
  tool: 'memory-find',
  ...more,
});
const whose = { alias: 'laptop', owner: 'ann' };
const forward = (more: object = {}) => ({
  type: 'gateway.forward',
  params: { routes: ['memory'], revision: 1, ...whose, ...more },
});
const answer = (rule: string, more: object = {}) => ({
  type: 'gateway.answer',
  params: { rule, revision: 1, ...whose, ...more },
});
const reply = (status: number, revision: number) => ({
  type: 'http.reply',
  params: { status, body: { revision } },
});

test('[G5,G6] a key reaches the servers it names and no other, whatever is called there', (t) => {
  const key = given(virtualKey, { events: [made()] });
  key.when(call()).then({ state: 'active', effects: [forward()], context: { calls: 1, lastSeenAt: 2_000 } });
  key
    .when(call({ routes: ['columnar_rw'], tool: 'columnar_rw-drop', writes: true }))
    .then({ state: 'active', effects: [answer('not_entitled')], context: { calls: 0, refused: 1 } });
  given(virtualKey, { events: [made({ servers: [] })] })
    .when(call({ method: 'tools/list' }))
    .then({ state: 'active', effects: [answer('not_entitled')] });
  t.pass();
});

test('[G27] a list of tools binds at the call, and goes with every list', (t) => {
  const key = given(virtualKey, { events: [made({ tools: ['memory-find'] })] });
  key.when(call()).then({ state: 'active', effects: [forward({ tools: ['memory-find'] })] });
  key
    .when(call({ method: 'tools/list' }))
    .then({ state: 'active', effects: [forward({ tools: ['memory-find'] })] });
  key.when(call({ tool: 'memory-store' })).then({ state: 'active', effects: [answer('tool_not_allowed')] });
  t.pass();
});

test('[G16] the limit counts calls of tools in a minute, and says truly how much of it is left', (t) => {
  given(virtualKey, {
    events: [made({ rpmLimit: 1 }), call({ method: 'tools/list' }), call({ at: 110_000 })],
  })
    .when(call({ at: 125_000 }))
    .then({
      state: 'active',
      effects: [answer('rate_limited', { retryAfterMs: 45_000 })],
      context: { refused: 1 },
    })
    .when(call({ at: 130_000, method: 'tools/list' }))
    .then({ state: 'active', effects: [forward()] })
    .when(call({ at: 169_999 }))
    .then({ state: 'active', effects: [answer('rate_limited', { retryAfterMs: 1 })] })
    .when(call({ at: 170_000 }))
    .then({ state: 'active', effects: [forward()], context: { window: { at: 170_000, calls: 1 } } });
  t.pass();
});

test('[G16] a clock that is set back neither locks a key for hours nor gives it calls', (t) => {
  const hour = 3_600_000;
  given(virtualKey, { events: [made({ rpmLimit: 1 }), call({ at: hour })] })
    .when(call({ at: 10_000 }))
    .then({ state: 'active', effects: [answer('rate_limited', { retryAfterMs: 60_000 })] })
    .when(call({ at: 40_000 }))
    .then({ state: 'active', effects: [answer('rate_limited', { retryAfterMs: 30_000 })] })
    .when(call({ at: 70_000 }))
    .then({ state: 'active', effects: [forward()] });
  t.pass();
});

test('[G16] a key opens no more at once than its terms say, else the gateway; what ends something is never refused', (t) => {
  const few = given(virtualKey, { events: [made({ maxParallel: 2, maxStreams: 1, rpmLimit: 1 })] });
  const defaultLimit = { defaultLimit: 1_000 };
  few.when(call({ ...defaultLimit, openCount: 1 })).then({ state: 'active', effects: [forward()] });
  few
    .when(call({ ...defaultLimit, openCount: 2 }))
    .then({ state: 'active', effects: [answer('too_many_calls', { retryAfterMs: 1_000 })] })
    .when(call(defaultLimit))
    .then({ state: 'active', effects: [forward()], context: { calls: 1, window: { at: 0, calls: 1 } } });
  for (const method of ['stream', 'subscriptions/listen']) {
    few
      .when(call({ ...defaultLimit, method, openCount: 1 }))
      .then({ state: 'active', effects: [answer('too_many_streams', { retryAfterMs: 1_000 })] });
  }
  for (const method of ['close', 'reply', 'notifications/cancelled']) {
    few.when(call({ ...defaultLimit, method, openCount: 5 })).then({ state: 'active', effects: [forward()] });
  }
  given(virtualKey, { events: [made()] })
    .when(call({ method: 'tools/list', openCount: 999, ...defaultLimit }))
    .then({ state: 'active', effects: [forward()] })
    .when(call({ method: 'tools/list', openCount: 1_000, ...defaultLimit }))
    .then({ state: 'active', effects: [answer('too_many_calls', { retryAfterMs: 1_000 })] })
    .when(call({ method: 'tools/list', openCount: 1_000, ...defaultLimit, routes: ['cluster'] }))
    .then({ state: 'active', effects: [answer('not_entitled')] });
  t.pass();
});

test('[G16] a budget is charged when a call is admitted, and given back what never reached an upstream', (t) => {
  const ended = (outcome: 'ok' | 'unreachable' | 'gone' | 'timed_out' | 'tool_error') =>
    ({ type: 'CALL_ENDED', outcome, ms: 1, cost: 0.1 }) as const;
  const charged = given(virtualKey, {
    events: [made({ maxBudget: 0.3 }), call({ cost: 0.1 }), call({ cost: 0.1 }), call({ cost: 0.1 })],
  });
  charged
    .when(call({ cost: 0.1 }))
    .then({ state: 'active', effects: [answer('over_budget')], context: { spend: 0.3 } });
  charged.when(call()).then({ state: 'active', effects: [forward()], context: { spend: 0.3 } });
  for (const outcome of ['ok', 'tool_error', 'timed_out'] as const) {
    charged.when(ended(outcome)).then({ state: 'active', context: { spend: 0.3 } });
  }
  for (const outcome of ['unreachable', 'gone'] as const) {
    charged
      .when(ended(outcome))
      .then({ state: 'active', context: { spend: 0.2 } })
      .when(call({ cost: 0.1 }))
      .then({ state: 'active', effects: [forward({ cost: 0.1 })], context: { spend: 0.3 } });
  }
  t.pass();
});

test('[G14] a revoked key admits nothing any more, ends what is open, and stays revoked', (t) => {
  given(virtualKey, { events: [made()] })
    .when({ type: 'KEY_REVOKED', at: 3_000 })
    .then({
      state: 'revoked',
      effects: [{ type: 'gateway.confine', params: { servers: [] } }, reply(200, 2)],
      context: { revokedAt: 3_000 },
    })
    .when(call())
    .then({ state: 'revoked', effects: [answer('revoked', { revision: 2 })] })
    .when({ type: 'KEY_UPDATED', at: 4_000, set: { servers: ['memory'] } })
    .then({ state: 'revoked', effects: [reply(409, 2)] })
    .when(made())
    .then({ state: 'revoked', effects: [reply(409, 2)] });
  t.pass();
});

test('[G24] a rotated value is good for the overlap and no longer, the new one at once', (t) => {
  given(virtualKey, { events: [made()] })
    .when({ type: 'KEY_ROTATED', at: 3_000, presented: 'k_2', overlapMs: 5_000 })
    .then({
      state: 'active',
      effects: [{ type: 'gateway.confine', params: { servers: ['memory'], until: 8_000 } }, reply(200, 2)],
    })
    .when(call({ at: 7_999 }))
    .then({ state: 'active', effects: [forward({ revision: 2, until: 8_000 })] })
    .when(call({ at: 8_000 }))
    .then({ state: 'active', effects: [answer('rotated_out', { revision: 2 })] })
    .when(call({ at: 8_000, presented: 'k_2' }))
    .then({ state: 'active', effects: [forward({ revision: 2 })] });
  t.pass();
});

test('[C13,G24] a value that is rotated out at once is good nowhere, also where the clock is behind', (t) => {
  const key = given(virtualKey, { events: [made()] })
    .when({ type: 'KEY_ROTATED', at: 900_000, presented: 'k_2' })
    .then({
      state: 'active',
      effects: [{ type: 'gateway.confine', params: { servers: ['memory'], until: 0 } }, reply(200, 2)],
      context: { presents: { k_1: { until: 900_000, hasEnded: true }, k_2: {} } },
    });
  key
    .when(call({ at: 600_000 }))
    .then({ state: 'active', effects: [answer('rotated_out', { revision: 2 })] })
    .when({ type: 'KEY_ROTATED', at: 950_000, presented: 'k_3', overlapMs: 60_000 })
    .then({
      state: 'active',
      effects: [
        { type: 'gateway.confine', params: { servers: ['memory'], until: 1_010_000 } },
        reply(200, 3),
      ],
    })
    .when(call({ at: 650_000 }))
    .then({ state: 'active', effects: [answer('rotated_out', { revision: 3 })] });
  t.pass();
});

test('[G14] what an update names is changed or taken away, the rest stays', (t) => {
  given(virtualKey, { events: [made({ rpmLimit: 5, expiresAt: 9_000 })] })
    .when({ type: 'KEY_UPDATED', at: 3_000, set: { servers: ['cluster'] }, clear: ['rpmLimit'] })
    .then({
      state: 'active',
      effects: [{ type: 'gateway.confine', params: { servers: ['cluster'], until: 9_000 } }, reply(200, 2)],
      context: { terms: { alias: 'laptop', owner: 'ann', servers: ['cluster'], expiresAt: 9_000 } },
    })
    .when(call({ at: 9_000, routes: ['cluster'] }))
    .then({ state: 'active', effects: [answer('expired', { revision: 2 })] });
  t.pass();
});

test('[G9] an identity route wants a token of its own, and no key in its place', (t) => {
  const key = given(virtualKey, { events: [made()] });
  key.when(call({ relay: true })).then({ state: 'active', effects: [answer('identity_required')] });
  key.when(call({ relay: true, authorization: 'bearer' })).then({ state: 'active', effects: [forward()] });
  const alert = (what: string, where = 'header authorization') => ({
    type: 'alerts.raise',
    params: {
      name: 'gateway.key_misplaced',
      severity: 'critical',
      text: `${what} came where it does not belong (${where}) and may have been read. It was not forwarded; rotate it.`,
      labels: { alias: 'laptop', routes: 'memory', where },
    },
  });
  key
    .when(call({ relay: true, authorization: 'virtual_key' }))
    .then({ state: 'active', effects: [answer('key_misplaced'), alert('A virtual key')] });
  key
    .when(call({ authorization: 'virtual_key' }))
    .then({ state: 'active', effects: [forward(), alert('A virtual key')] });
  key
    .when(call({ authorization: 'master_key' }))
    .then({ state: 'active', effects: [answer('master_key_misplaced'), alert('The master key')] });
  const cookie = { key: 'virtual_key', where: 'header cookie' } as const;
  key
    .when(call({ misplaced: cookie }))
    .then({ state: 'active', effects: [forward(), alert('A virtual key', 'header cookie')] })
    .when(call({ at: 61_999, misplaced: cookie }))
    .then({ state: 'active', effects: [forward()] })
    .when(call({ at: 61_999, misplaced: { key: 'master_key', where: 'query' } }))
    .then({ state: 'active', effects: [answer('master_key_misplaced')] })
    .when(call({ at: 62_000, misplaced: cookie }))
    .then({ state: 'active', effects: [forward(), alert('A virtual key', 'header cookie')] })
    .when(call({ at: 1_000, misplaced: cookie }))
    .then({ state: 'active', effects: [forward(), alert('A virtual key', 'header cookie')] });
  t.pass();
});

test('[G14,G16] a key reads about itself while it is good, not restricted and within its limits', (t) => {
  const read = (at: number) => ({ type: 'KEY_READ', at, presented: 'k_1' }) as const;
  const told = (status: number, body: object) => ({
    type: 'http.reply',
    params: { status, body: { revision: 1, ...body } },
  });
  const good = given(virtualKey, { events: [made({ rpmLimit: 1, maxBudget: 1, expiresAt: 199_000 })] });
  good.when(read(2_000)).then({ state: 'active', effects: [told(200, { rule: 'admitted' })] });
  good.when(read(199_000)).then({ state: 'active', effects: [told(401, { rule: 'expired' })] });
  const used = good
    .when(call({ at: 102_000, cost: 1 }))
    .then({ state: 'active', effects: [forward({ cost: 1, until: 199_000 })] });
  used
    .when(read(112_000))
    .then({ state: 'active', effects: [told(429, { rule: 'rate_limited', retryAfterMs: 50_000 })] });
  used.when(read(162_000)).then({ state: 'active', effects: [told(429, { rule: 'over_budget' })] });
  given(virtualKey, { events: [made({ restriction: 'llm_api_routes' })] })
    .when(read(2_000))
    .then({ state: 'active', effects: [told(401, { rule: 'restricted' })] });
  t.pass();
});

test('[C13,G6] a host that is cut off refuses at once what may write, and all after its grace; nothing that ends a session', (t) => {
  const cluster = (isolatedMs?: number) => ({
    cluster: { host: 'a', hosts: 3, ...(isolatedMs !== undefined && { isolatedMs, graceMs: 300_000 }) },
  });
  const isolated = answer('host_isolated', { retryAfterMs: 2_000 });
  const key = given(virtualKey, { events: [made()] });
  const is = (more: Partial<CallRequest>, effect: ReturnType<typeof forward | typeof answer>) =>
    key.when(call(more)).then({ state: 'active', effects: [effect] });
  is({ ...cluster(), writes: true }, forward());
  is({ ...cluster(2_001), writes: true }, isolated);
  is({ ...cluster(2_001), writes: true, method: 'initialize' }, isolated);
  is({ ...cluster(2_001), writes: true, method: 'reply' }, isolated);
  is({ ...cluster(2_001), writes: true, method: 'close' }, forward());
  is(cluster(299_999), forward());
  is(cluster(300_000), isolated);
  is({ ...cluster(300_000), method: 'tools/list' }, isolated);
  const behind = { cluster: { host: 'a', hosts: 3, isolatedMs: 100, graceMs: 0, isBehind: true } as const };
  is(behind, answer('host_behind', { retryAfterMs: 2_000 }));
  is({ ...behind, method: 'close' }, forward());
  // What is wrong with the call itself is said first.
  is({ ...cluster(300_000), routes: ['cluster'] }, answer('not_entitled'));
  is({ ...cluster(300_000), presented: 'k_2' }, answer('rotated_out'));
  t.pass();
});

test('[C13,G16] a limit of what is open holds for all hosts, as they last said of each other; the own limit of a gateway for each', (t) => {
  const cluster = { host: 'a', hosts: 3 };
  const key = given(virtualKey, { events: [made({ maxParallel: 6 })] });
  const open = (openCount: number, openAtBeat: number, openElsewhere: number) =>
    key.when(call({ openCount, defaultLimit: 2, cluster: { ...cluster, openAtBeat, openElsewhere } }));
  const refused = { state: 'active', effects: [answer('too_many_calls', { retryAfterMs: 1_000 })] } as const;
  const admitted = { state: 'active', effects: [forward()] } as const;
  open(1, 0, 0).then(admitted); // a third of six, until the others have heard
  open(2, 0, 0).then(refused);
  open(3, 2, 0).then(admitted);
  open(4, 2, 0).then(refused);
  open(5, 5, 0).then(admitted);
  open(0, 0, 6).then(refused);
  open(0, 0, 5).then(admitted);
  given(virtualKey, { events: [made()] })
    .when(call({ openCount: 1, defaultLimit: 2, cluster }))
    .then(admitted)
    .when(call({ openCount: 2, defaultLimit: 2, cluster }))
    .then(refused);
  t.pass();
});

test('[C13,G16] a change that came to every host is taken once, and one that comes behind it in turn', (t) => {
  const revoked = { type: 'KEY_REVOKED', at: 3_000, order: 8 } as const;
  given(virtualKey, { events: [{ ...made(), order: 5 }] })
    .when({ ...made({ alias: 'again' }), order: 5 })
    .then({ state: 'active', effects: [], context: { revision: 1, order: 5 } })
    .when({ type: 'KEY_UPDATED', at: 2_000, set: { alias: 'desk' }, order: 7 })
    .then({
      state: 'active',
      effects: [{ type: 'gateway.confine', params: { servers: ['memory'] } }, reply(200, 2)],
      context: { order: 7 },
    })
    .when({ type: 'KEY_UPDATED', at: 1_500, set: { alias: 'laptop' }, order: 6 })
    .then({ state: 'active', effects: [], context: { revision: 2 } })
    .when(revoked)
    .then({
      state: 'revoked',
      effects: [{ type: 'gateway.confine', params: { servers: [] } }, reply(200, 3)],
    })
    .when(revoked)
    .then({ state: 'revoked', effects: [] });
  t.pass();
});

test('[C13,G16] the first call of a minute waits for no slice, and asks for one; a limit of one host alone needs none', (t) => {
  const cluster = { host: 'a', hosts: 2 };
  const want = (wants: readonly Readonly<Record<string, string | number>>[]) => ({
    type: 'gateway.want_slice',
    params: { host: 'a', hosts: 2, wants },
  });
  given(virtualKey, { events: [made({ rpmLimit: 8, maxBudget: 4 })] })
    .when(call({ cost: 1, cluster }))
    .then({
      state: 'active',
      effects: [
        forward({ cost: 1 }),
        want([
          { name: 'rpm', used: 1, need: 1 },
          { name: 'budget', used: 1, need: 1, base: 0 },
        ]),
      ],
    })
    .when({
      type: 'SLICE_WANTED',
      at: 2_010,
      order: 4,
      sentAt: 9_000,
      host: 'a',
      here: 'a',
      hosts: 2,
      wants: [
        { name: 'rpm', used: 1, need: 1 },
        { name: 'budget', used: 1, need: 1, base: 0 },
      ],
    })
    .then({ state: 'active', effects: [] })
    .when(call({ at: 2_020, cluster }))
    .then({ state: 'active', effects: [forward(), want([{ name: 'rpm', used: 2, need: 1, began: 0 }])] });
  given(virtualKey, { events: [made({ rpmLimit: 8 })] })
    .when(call())
    .then({ state: 'active', effects: [forward()] });
  t.pass();
});
