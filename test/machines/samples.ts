import { rotationDefaults } from '../../src/machines/collector/key-rotation-rules.ts';
import { legDefaults } from '../../src/machines/reconciler/leg-shapes.ts';
import type { Samples } from '../support/drive.ts';

const leg = {
  intf: 'eth1.10',
  label: 'Main',
  address: 'fd5e:21aa:90c4:10::1/64',
  ...legDefaults,
  maxTries: 2,
};

const { intf, label, address } = leg;
const listedLeg = { intf, label, address };

const ask = { request: 'r1', correlation: 's1', who: 'test' };
const before = { ncid: 'n1', fingerprint: 'fp_1' };
const after = { ncid: 'n2', fingerprint: 'fp_2' };
const foreign = { transID: 't9', who: 'other', previous: before };
const append = { type: 'SET', ...ask, op: 'append', transID: 't1', ncid: 'n1', fingerprint: 'fp_2' };

const keyTerms = { alias: 'a', owner: 'o', servers: ['memory'], rpmLimit: 2, maxBudget: 10 };
const call = {
  type: 'CALL',
  at: 1_500,
  presented: 'k_1',
  routes: ['memory'],
  table: 1,
  method: 'tools/call',
  tool: 'memory-find',
};

const routeFacts = {
  name: 'memory',
  fingerprint: 'fp_1',
  disposition: 'relay',
  upstream: 'http://memory/mcp',
  settings: { url: 'a' },
};
const otherUrl = { fingerprint: 'fp_2', upstream: 'http://other/mcp', settings: { url: 'b' } };
const rejectedRoute = { name: 'memory', route: 'memory', reason: 'bad' };

const pushSettings = {
  name: 'm',
  title: 'M',
  slug: 's',
  intervalMs: 300_000,
  graceMs: 300_000,
  remindMs: 3_600_000,
};

const rotate = {
  type: 'ROTATE',
  at: 1,
  name: 'otel_ingest_api_key',
  maker: 'own',
  old: 'fp_1',
  producers: [{ producer: 'a', at: 1 }],
  external: ['edge'],
  canForce: false,
  settings: rotationDefaults,
};
const content = {
  name: 'a',
  severity: 'critical',
  title: 'A',
  text: 'a is bad',
  labels: { state: 'firing' },
};
const steps = [
  { to: ['first'], afterMs: 0 },
  { to: ['second'], afterMs: 60_000 },
];
const raised = { type: 'RAISED', at: 1_000, content, steps, remindMs: 600_000 };
const rule = {
  name: 'a',
  title: 'A',
  severity: 'warning',
  condition: { kind: 'above', than: 0 },
  window: '1h',
  windowMs: 3_600,
  everyMs: 60_000,
  forMs: 0,
  onNoData: 'ok',
  expect: 'required',
  freshMs: 3_600_000,
  unseenAfterMs: 3_600,
  metric: 'a.b',
  labels: {},
};
const observedJob = {
  namespace: 'n',
  name: 'watchdog-1',
  phase: 'active',
  createdAt: 60_000,
  pod: { name: 'p', phase: 'Running' },
};
const notice = { ...content, state: 'firing', since: 1_000 };
const report = {
  ok: true,
  verdict: 'as recorded',
  expected: { from: 'record', least: 2, most: 2 },
  restored: { count: 2, approximate: 2 },
  live: { count: 2, approximate: 2 },
  seeds: { checked: 1, missing: [], changed: [] },
  compared: { payloads: 2, vectors: 2 },
  differences: Object.fromEntries(
    ['onlyLive', 'onlyRestored', 'changed', 'moving'].map((name) => [name, { total: 0, ids: [] }]),
  ),
};
const drillSteps = ['choose', 'prepare', 'recover', 'verify', 'clean'].map((step) => `restore.${step}`);

/**
 * Inputs and events that make sense, by machine. A machine without an entry is driven with random events alone,
 * which seldom leads it far.
 */
export const machineSamples: Readonly<Record<string, Samples>> = {
  'memory-backups': {
    input: { kind: 'snapshot', keepNewest: 2, staleMs: 1_000, missed: 'catch-up', retryMs: 500 },
    events: [
      { type: 'REQUESTED', at: 2_000, by: 'schedule' },
      { type: 'REQUESTED', at: 2_000, by: 'command', request: 'r1' },
      { type: 'PRUNE_REQUESTED', at: 2_000, request: 'r2' },
      { type: 'WATCHED', at: 900_000, due: 500 },
      { type: 'SEEDED', ids: [1] },
      { type: 'MADE', backup: { name: 'a', at: 2_000, size: 10, count: 1 } },
      { type: 'NOTHING_THERE', reason: 'empty' },
      { type: 'LISTED', at: 2_000, listed: [{ name: 'a', at: 2_000, size: 10 }] },
      { type: 'PRUNED', deleted: [] },
      { type: 'effect.failed', effect: 'memory.backup', message: 'no' },
      { type: 'effect.lost', effect: 'memory.list_backups' },
    ],
  },
  'cluster-singleton': {
    input: { singleton: 'a' },
    events: [
      { type: 'FOLLOWED', at: 1, holder: 'h1' },
      { type: 'TAKING', at: 1, token: 'i:1', from: 'h1' },
      { type: 'BEGUN', at: 1, host: 'h2', fencedAt: 8 },
      { type: 'TAKING', at: 2, token: 'i:2', software: { release: '0.3.0', machines: { 'test.door': 2 } } },
      { type: 'BEGUN', at: 2, host: 'h2' },
      {
        ...{ type: 'TOOK_OVER', at: 2, by: 4 },
        takeovers: [{ host: 'h1', seq: 8, hash: 'a', by: 'h2', token: 'i:1' }],
      },
      { type: 'TAKEOVER_NOTED', at: 2, host: 'h1', token: 'i:1' },
      { type: 'BEGIN_FAILED', at: 1, reason: 'no disk' },
      { type: 'ENDING', at: 1, reason: 'it ran out' },
      { type: 'ENDED', at: 1 },
      { type: 'ORPHANED', at: 1, from: 5, to: 9, count: 3 },
    ],
  },
  'cluster-host': {
    input: { host: 'h1' },
    events: [
      { type: 'HEARD', at: 1, version: '1' },
      { type: 'LOST', at: 1, silentMs: 10_000 },
      { type: 'FORGOTTEN', at: 1, by: 'a' },
      { type: 'MIRROR_BEHIND', at: 1, records: 10_001, ms: 1 },
      { type: 'ISOLATED', at: 1, silentMs: 2_000 },
      { type: 'VERSION_REFUSED', at: 1, version: '2', ownVersion: '1' },
      { type: 'STREAM_REPLACED', at: 1, to: '2', reason: 'a' },
      { type: 'DRAINED', at: 1, by: 'a', reason: 'b' },
      { type: 'UNDRAINED', at: 1, by: 'a' },
      { type: 'ADOPTED', at: 1, by: 'a', records: 3 },
    ],
  },
  'collector-ingest-key': {
    events: [
      { type: 'RENEWED', order: 1, from: 'first', to: 'a' },
      { type: 'RENEWED', order: 2, from: 'first', to: 'b' },
      { type: 'RENEWED', order: 3, from: 'a', to: 'b' },
      { type: 'RETIRED', order: 4, current: 'a' },
      { type: 'RETIRED', order: 5, current: 'b' },
      { type: 'HEARD', from: 'a', keys: { order: 6, current: 'd', previous: 'c', retired: 'b' } },
      { type: 'HEARD', from: 'a', keys: { order: 6, current: 'd' } },
      { type: 'HEARD', from: 'a', keys: { order: 7, current: 'd', retired: 'c' } },
    ],
  },
  'collector-finding': {
    events: [
      { type: 'FOUND', code: 'no_token', severity: 'critical', place: '/c', text: 'a', remedy: 'b' },
      { type: 'FOUND', code: 'no_token', severity: 'critical', place: '/c', text: 'c', remedy: 'b' },
      { type: 'GONE' },
    ],
  },
  'columnar-backups': {
    input: { staleMs: 1_000 },
    events: [
      { type: 'MADE', backup: { name: 'a', at: 500, size: 10, sha256: 'x', tables: [] } },
      { type: 'FAILED', at: 600, reason: 'no room' },
      { type: 'GONE', names: ['a'] },
      { type: 'DRILLED', at: 700, name: 'a', proven: false, reasons: ['its file is gone'] },
      { type: 'DRILLED', at: 800, name: 'a', proven: true, reasons: [] },
      { type: 'CHECKED', at: 100 },
      { type: 'CHECKED', at: 9_000 },
    ],
  },
  'collector-probe': {
    events: [
      { type: 'PROBED', at: 1, end: 'arrived', endpoint: 'http://r', service: 's', arrivedMs: 9 },
      { type: 'PROBED', at: 2, end: 'lost', endpoint: 'http://r', service: 's' },
    ],
  },
  'reconciler-heartbeat': {
    events: [
      { type: 'START', settings: { monitor: 'm', idleMs: 240_000, batchMs: 250, retryMs: 15_000 } },
      { type: 'HEARD' },
      { type: 'PUSHED', at: 2_200, status: 200 },
      { type: 'PUSH_REFUSED', at: 2_200, status: 404, msg: 'paused', body: '{}', exitStatus: 8 },
      { type: 'PUSH_FAILED', at: 2_200, reason: 'nothing listens there', exitStatus: 4 },
      { type: 'effect.lost', effect: 'reconciler.push_heartbeat' },
    ],
  },
  'console-access': {
    events: [
      { type: 'LOGGED_IN', at: 1_000, by: 'ann', from: 'loopback', until: 9_000 },
      { type: 'LOGIN_REFUSED', at: 2_000, from: 'loopback' },
      { type: 'ACTED', at: 3_000, by: 'ann', action: 'commit' },
      { type: 'LOGGED_OUT', at: 4_000, by: 'ann' },
    ],
  },
  'watchdog-run': {
    events: [
      { type: 'START', at: 1_000 },
      { type: 'RUN', at: 2_000 },
      { type: 'CHECKED', at: 2_100, time: 'now', tookMs: 100, stale: 4, drift: 0, failures: [] },
      {
        type: 'CHECKED',
        at: 2_100,
        time: 'now',
        tookMs: 100,
        stale: 0,
        drift: 1,
        failures: [{ check: 'engine', query: 'a', found: 'b' }],
      },
      { type: 'PUSHED', at: 2_200, status: 200 },
      { type: 'PUSH_REFUSED', at: 2_200, status: 404, msg: 'paused', body: '{}', exitStatus: 8 },
      { type: 'PUSH_FAILED', at: 2_200, reason: 'nothing listens there', exitStatus: 4 },
      { type: 'effect.failed', effect: 'watchdog.check', code: 'HF_X', message: 'x' },
      { type: 'effect.lost', effect: 'watchdog.push' },
    ],
  },
  'uptime-monitor-monitor': {
    input: pushSettings,
    events: [
      { type: 'WATCH', at: 1_000, settings: pushSettings },
      { type: 'BEAT', at: 2_000, up: true, msg: 'OK', ping: 3 },
      { type: 'BEAT', at: 3_000, up: false, msg: 'disk' },
      { type: 'TROUBLE', trouble: { at: 2_500, outcome: 'unhealthy', text: 'database' } },
      { type: 'ACK', at: 4_000, by: 'ann', note: 'on it', forMs: 60_000 },
      { type: 'PAUSE', at: 5_000, by: 'ann' },
      { type: 'UNPAUSE', at: 6_000, by: 'ann' },
      { type: 'RELEASE', at: 7_000 },
    ],
  },
  'collector-key-rotation': {
    events: [
      rotate,
      { ...rotate, maker: 'api', canForce: true },
      { ...rotate, name: 'otel_ingest_token' },
      { type: 'REGENERATED', at: 2 },
      { type: 'BY_HAND', at: 2, text: 'do it' },
      { type: 'CONFIG_READ', at: 3, fingerprint: 'fp_1' },
      { type: 'CONFIG_READ', at: 3, fingerprint: 'fp_2' },
      { type: 'STORED', at: 4, place: 'there' },
      { type: 'SIGHTINGS_READ', at: 5, old: [{ producer: 'a', at: 1 }], fresh: [] },
      { type: 'SIGHTINGS_READ', at: 6, old: [{ producer: 'a', at: 1 }], fresh: [{ producer: 'a', at: 6 }] },
      { type: 'SIGHTINGS_READ', at: 9e8, old: [], fresh: [] },
      { type: 'CHECKED', at: 6, checks: [{ check: 'pods', result: 'ok', text: 'well' }] },
      { type: 'CHECKED', at: 9e8, checks: [{ check: 'pods', result: 'not', text: 'old' }] },
      { type: 'ADOPT', at: 6, fingerprint: 'fp_1', replace: false },
      { type: 'ADOPT', at: 6, fingerprint: 'fp_1', stored: 'fp_3', replace: false },
      { type: 'MOVED', at: 6, producer: 'a' },
      { type: 'FORCE', at: 6 },
      { type: 'FORCED', at: 7, what: ['restarted'] },
      { type: 'EXTERNAL_DONE', at: 8 },
      { type: 'RETIRED', at: 9 },
      { type: 'RESUME', at: 9 },
      { type: 'ABANDON', at: 9 },
      { type: 'effect.failed', effect: 'collector.store_key', code: 'HF_INTERNAL', message: 'no' },
      { type: 'effect.failed', effect: 'collector.retire_key', code: 'HF_INTERNAL', message: 'no' },
      { type: 'effect.failed', effect: 'collector.check_refresh', code: 'HF_INTERNAL', message: 'no' },
    ],
  },
  'alerts-alert': {
    events: [
      { ...raised, kind: 'firing', cause: 's:1' },
      { ...raised, kind: 'firing', cause: 's:2', again: true },
      { ...raised, kind: 'firing', cause: 's:3', silentUntil: 9_000 },
      { ...raised, kind: 'resolved', cause: 's:4' },
      { ...raised, kind: 'event', cause: 's:5' },
      { type: 'ACKNOWLEDGE', at: 2_000, by: 'o', forMs: 60_000 },
      { type: 'SILENCE', at: 2_000, until: 9_000 },
      { type: 'UNSILENCE', at: 3_000 },
      { type: 'TAKEN', at: 3_000, receiver: 'first' },
    ],
  },
  'jobs-job': {
    events: [
      { type: 'STARTED', at: 60_000, job: 'watchdog' },
      { type: 'ENDED', at: 61_000, job: 'watchdog', outcome: 'succeeded' },
      { type: 'ENDED', at: 61_000, job: 'watchdog', outcome: 'failed', cause: 'exit', text: 'no' },
      { type: 'ORPHANED', at: 62_000 },
      { type: 'OBSERVED', at: 63_000, facts: observedJob },
      { type: 'OBSERVED', at: 64_000, facts: { ...observedJob, phase: 'failed', endedAt: 63_500 } },
      {
        type: 'OBSERVED',
        at: 64_000,
        facts: { ...observedJob, phase: 'failed', endedAt: 63_500, ttlSeconds: 300 },
      },
      { type: 'OBSERVED', at: 65_000, facts: { ...observedJob, phase: 'succeeded', endedAt: 64_500 } },
      { type: 'GONE', at: 66_000 },
    ],
  },
  'reconciler-adoption': {
    events: [
      { type: 'LISTED', place: 'http://192.168.1.1:8837', legs: [listedLeg] },
      { type: 'LISTED', place: 'http://192.168.1.1:8837', legs: [{ ...listedLeg, label: 'Parlour' }] },
      { type: 'LISTED', place: 'http://192.168.2.1:8837', legs: [listedLeg] },
      { type: 'LISTED', place: 'http://192.168.1.1:8837', legs: [{ ...listedLeg, address: 'fd00::2/64' }] },
      { type: 'LISTED', place: 'http://192.168.1.1:8837', legs: [] },
      { type: 'ADOPT', by: 'o', how: 'operator', at: 1_000 },
      { type: 'ADOPT', by: 'configuration', how: 'option', at: 2_000 },
    ],
  },
  'reconciler-reapply': {
    events: [
      { type: 'WANTED', intf: 'eth1.10', everyMs: 60_000, waitMs: 100 },
      { type: 'WANTED', intf: 'eth1.20', everyMs: 60_000, waitMs: 100 },
      { type: 'SETTLED', intf: 'eth1.10' },
      { type: 'SETTLED', intf: 'eth1.20' },
      { type: 'REAPPLIED' },
      { type: 'PENDING' },
      { type: 'NOT_REAPPLIED', reason: 'no' },
      { type: 'effect.failed', effect: 'reconciler.reapply', code: 'HF_X', message: 'late' },
      { type: 'effect.lost', effect: 'reconciler.reapply' },
    ],
  },
  'reconciler-app-save': {
    events: [
      { type: 'BEGIN', at: 1_000, by: 'o', ...listedLeg, waitMs: 60_000 },
      { type: 'SAVED', run: 1_000, at: 2_000, name: 'Main (drill)' },
      { type: 'RETURNED', run: 1_000, at: 3_000, configMs: 400, linkMs: 900 },
      { type: 'RETURNED', run: 1_000, at: 3_000, configMs: 400 },
      { type: 'RETURNED', run: 5, at: 3_000, configMs: 400 },
      { type: 'NOT_SAVED', run: 1_000, at: 2_000, reason: 'a transaction is pending', sent: false },
      { type: 'NOT_SAVED', run: 1_000, at: 2_000, reason: 'no answer', sent: true },
      { type: 'NOT_RETURNED', run: 1_000, at: 63_000, reason: 'not in the config' },
      { type: 'RESTORED', run: 1_000, at: 64_000, changed: true },
      { type: 'NOT_RESTORED', run: 1_000, at: 64_000, reason: 'conflict' },
      { type: 'ABORT', at: 2_500, by: 'o' },
      { type: 'effect.failed', effect: 'reconciler.drill_save', code: 'HF_EFFECT_TIMEOUT', message: 'late' },
      { type: 'effect.failed', effect: 'reconciler.drill_watch', code: 'HF_EFFECT_TIMEOUT', message: 'late' },
      { type: 'effect.lost', effect: 'reconciler.drill_restore' },
    ],
  },
  'reconciler-saves': {
    events: [
      { type: 'DROPPED', at: 1, ncid: 'n1', paths: ['dhcp6'], count: 1, alerted: ['dhcp6'] },
      { type: 'DROPPED', at: 2, ncid: 'n2', paths: ['a', 'dhcp6'], count: 2, alerted: ['dhcp6'] },
      { type: 'DROPPED', at: 3, ncid: 'n3', paths: ['a'], count: 1, alerted: [] },
    ],
  },
  'reconciler-unit': {
    events: [
      { type: 'PAUSE', at: 1_000, by: 'o', forMs: 60_000 },
      { type: 'RESUME', by: 'o' },
    ],
  },
  'alerts-rule': {
    input: rule,
    events: [
      { type: 'DEFINE', at: 1, settings: { ...rule, onNoData: 'fire', expect: 'steady', forMs: 1_000 } },
      { type: 'DEFINE', at: 1, settings: rule },
      { type: 'REMOVE', at: 2 },
      { type: 'EVALUATE', at: 2 },
      { type: 'WATCH', at: 2 },
      { type: 'EVALUATED', at: 3, value: 0 },
      { type: 'EVALUATED', at: 4, value: 2, finding: 'source a' },
      { type: 'EVALUATED', at: 9_000 },
      { type: 'EVALUATED', at: 90_000_000, value: 1, newestAt: 80_000_000, places: ['nas'] },
      { type: 'EVALUATION_FAILED', at: 5, reason: 'away' },
    ],
  },
  'alerts-silences': {
    events: [
      { type: 'ADD', at: 1, silence: { id: 's1', pattern: 'rule.*', by: 'o', until: 9_000 } },
      { type: 'ADD', at: 2, silence: { id: 's2', pattern: 'a', by: 'o', until: 3 } },
      { type: 'REMOVE', at: 5, id: 's1' },
    ],
  },
  'alerts-unevaluated': {
    events: [
      { type: 'FAILED', at: 1, rule: 'a', reason: 'away' },
      { type: 'FAILED', at: 2, rule: 'b', reason: 'away' },
      { type: 'RECOVERED', at: 3, rule: 'a' },
      { type: 'RECOVERED', at: 4, rule: 'b' },
    ],
  },
  'alerts-outbox': {
    input: { receiver: 'first' },
    events: [
      { type: 'QUEUE', item: { id: '1.0', at: 1, notice } },
      { type: 'QUEUE', item: { id: '2.0', at: 2, notice } },
      { type: 'POSTED', at: 3, answer: { status: 200, body: '' } },
      { type: 'REFUSED', at: 3, reason: 'answered 500' },
      { type: 'REFUSED', at: 90_000_000, reason: 'answered 429', retryAfterMs: 9_000 },
      { type: 'RETRY', at: 3 },
      { type: 'CONFIGURE', batchMs: 0 },
      { type: 'CONFIGURE', batchMs: 0, repeatMs: 60_000 },
      { type: 'REPOSTED', at: 9, count: 1, answer: { status: 200, body: '' } },
      { type: 'REPOSTED', at: 9, count: 0 },
    ],
  },
  'router-config': {
    events: [
      { type: 'LOADED', ...before },
      { type: 'LOADED', ...after, origin: 'store' },
      { type: 'LOADED', ...after, shared: true },
      { type: 'LOADED', ...after, shared: true, transaction: { ...foreign, leftMs: 60_000 } },
      { type: 'OVERTAKEN', ...after, shared: true, transaction: { ...foreign, transID: 't1', leftMs: 0 } },
      { type: 'SET', ...ask, ncid: 'n1', fingerprint: 'fp_2', changed: ['interface.vlan'] },
      { type: 'SET', ...ask, ncid: 'n0', ignoreNcid: true, fingerprint: 'fp_2' },
      append,
      { ...append, transID: 't2' },
      { type: 'SET', ...ask, op: 'commit', transID: 't1' },
      { type: 'SET', ...ask, op: 'revert', transID: 't1' },
      { type: 'APPLY_CURRENT', ...ask },
      { type: 'APPLIED', ...after, reapplied: ['eth1.10'] },
      { type: 'APPLIED', ...before, reapplied: [] },
      { type: 'APPLY_FAILED', errors: ['no'], code: 'HF_ROUTER_APPLY_FAILED', status: 500 },
      { type: 'OVERTAKEN', ...after },
      { type: 'effect.failed', effect: 'router.apply', message: 'late' },
      { type: 'effect.lost', effect: 'router.apply' },
    ],
  },
  connection: {
    input: { alert: { name: 'a.lost', text: 'It is lost.' } },
    events: [
      { type: 'CONNECTED', store: 'redis://127.0.0.1:6379' },
      { type: 'LOST', store: 'redis://127.0.0.1:6379', reason: 'the connection was lost' },
      { type: 'MISSED', who: '127.0.0.1 app' },
    ],
  },
  'router-access-points': { events: [{ type: 'CHANGED', request: 'r1' }] },
  'router-observed-config': {
    events: [
      {
        type: 'SEEN',
        ncid: `${'a'.repeat(19)}1800000001000`,
        fingerprint: 'fp_1',
        request: 'fp_r',
        heldMs: 0,
      },
      { type: 'SEEN', ncid: `${'a'.repeat(19)}1800000001000`, fingerprint: 'fp_2', heldMs: 0 },
      {
        type: 'SEEN',
        ncid: `${'b'.repeat(19)}1800000002000`,
        fingerprint: 'fp_2',
        request: 'fp_r',
        heldMs: 10,
      },
      { type: 'SEEN', ncid: `${'c'.repeat(19)}1800000000000`, fingerprint: 'fp_3', heldMs: 900_000 },
      { type: 'SEEN', ncid: 'by hand', fingerprint: 'fp_4', heldMs: 0 },
      { type: 'WRITTEN', ncid: `${'b'.repeat(19)}1800000002000`, posted: `${'c'.repeat(19)}1800000000000` },
      { type: 'WRITTEN', ncid: `${'a'.repeat(19)}1800000001000`, ignoreNcid: true },
    ],
  },
  'router-address-sets': {
    events: [
      { type: 'ADDRESSES', sets: { c_net_a_set6: ['fd00::/64'] } },
      { type: 'ADDRESSES', sets: { c_net_a_set6: ['fd00::/64', 'fd01::/64'], c_net_b_set6: [] } },
      { type: 'ADDRESSES', sets: {} },
      { type: 'POPULATED', at: 1_767_225_600_000, sets: { c_net_a_set6: ['fd00::/64'] } },
      { type: 'POPULATED', at: 1_767_225_660_000, sets: {} },
      { type: 'effect.failed', effect: 'router.populate_sets' },
      { type: 'effect.lost', effect: 'router.populate_sets' },
    ],
  },
  'gateway-key': {
    events: [
      { type: 'KEY_CREATED', at: 1_000, presented: 'k_1', terms: keyTerms },
      { type: 'KEY_UPDATED', at: 2_000, set: { servers: [] } },
      {
        type: 'KEY_UPDATED',
        at: 2_000,
        set: { tools: ['memory-find'], expiresAt: 90_000 },
        clear: ['rpmLimit'],
      },
      { type: 'KEY_READ', at: 2_500, presented: 'k_1' },
      { type: 'KEY_ROTATED', at: 3_000, presented: 'k_2', overlapMs: 1_000 },
      { type: 'KEY_REVOKED', at: 4_000, order: 9 },
      {
        type: 'SLICE_WANTED',
        at: 2_100,
        order: 3,
        sentAt: 2_000,
        host: 'a',
        here: 'b',
        hosts: 2,
        wants: [
          { name: 'rpm', used: 1, need: 1 },
          { name: 'budget', used: 2, need: 2, base: 1 },
        ],
      },
      { ...call, cost: 6, cluster: { host: 'b', hosts: 2 } },
      { ...call, writes: true, cluster: { host: 'b', hosts: 2, isolatedMs: 3_000, graceMs: 300_000 } },
      { ...call, cost: 6 },
      { ...call, presented: 'k_2', at: 70_000 },
      { ...call, method: 'tools/list' },
      { ...call, authorization: 'master_key' },
      { ...call, authorization: 'virtual_key' },
      { ...call, relay: true },
      { type: 'CALL_ENDED', outcome: 'unreachable', ms: 1, cost: 6 },
      { type: 'CALL_ENDED', outcome: 'ok', status: 200, ms: 1 },
    ],
  },
  'gateway-ended-sessions': {
    events: [
      { type: 'ENDED', at: 1, sessions: ['a'] },
      { type: 'ENDED', at: 2, sessions: ['b', 'a'] },
      { type: 'HEARD', from: 'x', ended: { a: 1, c: 3 } },
    ],
  },
  'gateway-approval': {
    input: { place: '1' },
    events: [
      {
        type: 'ASKED',
        at: 1_000,
        until: 901_000,
        request: { id: 'r1', key: 'k_1', alias: 'a', route: 'memory', tool: 'wipe', digest: 'fp_1' },
      },
      { type: 'DECIDED', at: 2_000, id: 'r1', verdict: 'approved', by: 'ann', why: 'x' },
      { type: 'DECIDED', at: 2_000, id: 'r1', verdict: 'denied', by: 'ann', why: 'x' },
      { type: 'CLAIMED', at: 3_000, id: 'r1', call: 'c1' },
      { type: 'RETURNED', at: 4_000, id: 'r1', call: 'c1' },
      { type: 'WITHDRAWN', at: 5_000, id: 'r1', reason: 'x' },
    ],
  },
  'gateway-route-health': {
    input: { route: 'memory' },
    events: [
      { type: 'PROBED', at: 1_000, found: 'ok', tools: 3 },
      { type: 'PROBED', at: 2_000, found: 'undocumented', reason: 'none' },
      { type: 'PROBED', at: 3_000, found: 'empty', reason: 'none', tools: 0 },
      { type: 'PROBED', at: 4_000, found: 'failed', reason: 'late' },
      { type: 'PROBED', at: 5_000, found: 'refused', reason: '401' },
      { type: 'RESET', at: 6_000, reason: 'changed' },
    ],
  },
  'gateway-routes': {
    events: [
      { type: 'LOADED', at: 1_000, origin: 'start', routes: [routeFacts], rejected: [] },
      {
        type: 'LOADED',
        at: 2_000,
        origin: 'changed',
        routes: [{ ...routeFacts, ...otherUrl }],
        rejected: [],
      },
      { type: 'LOADED', at: 3_000, origin: 'asked', routes: [], rejected: [rejectedRoute] },
      { type: 'LOADED', at: 4_000, origin: 'asked', routes: [], rejected: [] },
      { type: 'REFUSED', at: 5_000, origin: 'changed', reason: 'no' },
      { type: 'REFUSED', at: 5_000, origin: 'asked', reason: 'no' },
      { type: 'ROLLBACK', at: 6_000, route: 'memory' },
      { type: 'ROLLBACK', at: 6_000, route: 'memory', to: 1 },
      { type: 'ROLLBACK', at: 6_000, route: 'nobody' },
      { type: 'ROLLBACK', at: 6_000, route: 'memory', order: 1, source: 'fp_2', fingerprint: 'fp_1' },
      { type: 'ROLLBACK', at: 6_000, route: 'memory', order: 2, source: 'fp_2', fingerprint: 'fp_3' },
      {
        ...{ type: 'ROLLBACKS_HEARD', at: 6_000, from: 'a' },
        rollbacks: { memory: { order: 3, source: 'fp_2', fingerprint: 'fp_1' } },
      },
      { type: 'SERVED', revision: 1 },
      { type: 'effect.failed', effect: 'gateway.serve_routes', message: 'no' },
    ],
  },
  'gateway-rejections': {
    events: [
      { type: 'REJECTED', at: 1_000, rule: 'no_key', source: '127.0.0.1', path: '/memory/mcp' },
      { type: 'REJECTED', at: 1_000, rule: 'master_key_presented', source: '::1', path: '/memory/mcp' },
      { type: 'REJECTED', at: 90_000, rule: 'master_key_presented', source: '::1', path: '/memory/mcp' },
      {
        type: 'REJECTED',
        at: 9_000,
        rule: 'malformed_key',
        source: '::1',
        path: '/m/mcp',
        misplaced: 'master_key',
      },
      {
        type: 'REJECTED',
        at: 10_000,
        rule: 'no_key',
        source: '::1',
        path: '/key/list',
        misplaced: 'master_key',
        where: 'header x-gateway-api-key',
        rest: true,
      },
    ],
  },
  'router-dhcp': {
    events: [
      { type: 'REWRITTEN', legs: ['eth1.10'], ncid: 'n1' },
      { type: 'REWRITTEN', legs: ['eth1.20', 'eth1.10'] },
      {
        type: 'RESTARTED',
        at: 1_767_225_600_000,
        files: ['eth1.10_v6.conf', 'own.conf'],
        adopted: ['own.conf'],
      },
      { type: 'effect.failed', effect: 'router.restart_dhcp', message: 'no' },
      { type: 'effect.lost', effect: 'router.restart_dhcp' },
    ],
  },
  'router-wan': {
    input: { wan: 'eth0' },
    events: [
      { type: 'CHANGED', kind: 'pd-change', prefix: '2001:db8:7::/56', request: 'r1' },
      { type: 'CHANGED', kind: 'pd-change', prefix: '2001:db8:8::/56' },
      { type: 'CHANGED', kind: 'down', request: 'r2' },
      { type: 'CHANGED', kind: 'up' },
      { type: 'WAN_APPLIED', ncid: 'n1', reapplied: ['eth1.10'] },
      { type: 'WAN_REFUSED', reason: 'no such interface' },
      { type: 'effect.failed', effect: 'router.change_wan', message: 'late' },
      { type: 'effect.lost', effect: 'router.change_wan' },
    ],
  },
  'reconciler-leg': {
    input: leg,
    events: [
      { type: 'CHANGED', channel: 'router.iface_change_applied', intf: 'eth1.10', at: 1_767_225_600_000 },
      { type: 'CHANGED' },
      { type: 'RESYNC', reason: 'connected' },
      { type: 'CONFIGURE', leg: { ...leg, label: 'Parlour', settleMs: 50 } },
      { type: 'CONFIGURE', leg },
      { type: 'CONFIGURE', leg: { ...leg, observes: true } },
      { type: 'RELEASE' },
      { type: 'LEG_READ', ncid: 'n1', addresses: [leg.address], at: 1_767_225_600_100 },
      { type: 'LEG_READ', ncid: 'n5', addresses: ['fd00::1/64', leg.address], at: 1_767_225_680_000 },
      { type: 'LEG_READ', ncid: 'n2', addresses: [], at: 1_767_225_600_200 },
      { type: 'LEG_READ', ncid: 'n3', addresses: ['fd00::1/64'], at: 1_767_225_670_000 },
      { type: 'LEG_ABSENT', ncid: 'n1' },
      { type: 'LEG_REFUSED', ncid: 'n1', name: 'Guest' },
      { type: 'LINK_READ', present: true, at: 1_767_225_601_000 },
      { type: 'LINK_READ', present: false, at: 1_767_225_602_000 },
      { type: 'LINK_READ', present: false, at: 1_767_225_622_000 },
      { type: 'LINK_UNKNOWN', reason: 'the link is down' },
      { type: 'UNREACHABLE', reason: 'connection refused', jitter: 0.5, at: 1_767_225_600_300 },
      { type: 'ADDED', ncid: 'n4', posted: ['eth1.10 fd5e:21aa:90c4:10::1/64'] },
      { type: 'CONFLICT', jitter: 0.25 },
      { type: 'PENDING' },
      { type: 'REFUSED', errors: ['Invalid ipv6 address'], jitter: 0.75 },
      { type: 'UNKNOWN', reason: 'no answer', jitter: 0 },
      { type: 'effect.failed', effect: 'reconciler.read_leg', code: 'HF_EFFECT_TIMEOUT', message: 'late' },
      { type: 'effect.failed', effect: 'reconciler.add_address', code: 'HF_EFFECT_TIMEOUT', message: 'late' },
      { type: 'effect.lost', effect: 'reconciler.add_address' },
      { type: 'effect.failed', effect: 'reconciler.read_link', code: 'HF_EFFECT_TIMEOUT', message: 'late' },
      { type: 'effect.failed', effect: 'alerts.raise', code: 'HF_INTERNAL', message: 'no' },
    ],
  },
  'restore-overdue': {
    input: { path: 'a' },
    events: [
      { type: 'WATCH', at: 1_000, overdueMs: 60_000 },
      { type: 'WATCH', at: 2_000, overdueMs: 90_000 },
      { type: 'WATCH', at: 2_000 },
      { type: 'DRILLED', at: 3_000 },
    ],
  },
  'restore-drill': {
    input: { retryMs: 100 },
    events: [
      { type: 'ASKED', id: 'd1', path: 'a', by: 'command', at: 1_000 },
      { type: 'CHOSEN', source: { kind: 'snapshot', name: 's1', count: 2 } },
      { type: 'PREPARED', place: 'here', url: 'http://127.0.0.1:1' },
      { type: 'RECOVERED', url: 'http://127.0.0.1:1' },
      { type: 'VERIFIED', report },
      { type: 'VERIFIED', report: { ...report, ok: false } },
      { type: 'CLEANED', at: 2_000, removed: ['d1'] },
      { type: 'STARTED', leftovers: [] },
      { type: 'STARTED', leftovers: ['d0'], retryMs: 200 },
      { type: 'CANCEL', reason: 'no' },
      ...drillSteps.map((effect) => ({ type: 'effect.failed', effect, code: 'HF_X', message: 'no' })),
      ...drillSteps.map((effect) => ({ type: 'effect.lost', effect })),
    ],
  },
};
