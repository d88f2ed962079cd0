import test from 'ava';
import { degradedBy, healthStatus, notReady, type Vitals } from '../../../src/plugins/console/health.ts';

const log = { state: 'open', seq: 9, durableSeq: 9, queued: 0, queuedBytes: 0 } as const;
const well: Vitals = { log, accepting: true, plugins: [{ name: 'a', state: 'started' }] };

test('[C14] the status is the worst of what is seen', (t) => {
  t.is(healthStatus(well), 'ok');
  const degraded: Vitals = { ...well, plugins: [...well.plugins, { name: 'b', state: 'failed' }] };
  t.is(healthStatus(degraded), 'degraded');
  t.is(healthStatus({ ...degraded, accepting: false }), 'failing');
  t.is(healthStatus({ ...well, reports: { store: { ok: false }, legs: [], note: 'x' } }), 'degraded');
  t.is(healthStatus({ ...well, reports: { store: { ok: true }, transaction: { transID: 't' } } }), 'ok');
  t.is(healthStatus({ ...degraded, log: { ...log, state: 'frozen', reason: 'disk full' } }), 'failing');
  t.is(healthStatus({ ...well, log: { ...log, state: 'closed' } }), 'failing');
});

test('[C14] what degrades it is named, with its reason', (t) => {
  t.deepEqual(degradedBy(well), []);
  const failed = { name: 'b', state: 'failed', reason: 'no port' } as const;
  const reports = {
    reconciler: { ok: false, reason: 'eth1.40 (Lab) is not in the config' },
    store: { ok: false, fault: 'no config' },
    other: { ok: false },
    well: { ok: true },
  };
  t.deepEqual(degradedBy({ ...well, plugins: [failed], reports }), [
    'plugin b failed: no port',
    'reconciler: eth1.40 (Lab) is not in the config',
    'store: no config',
    'other is not as it should be',
  ]);
});

test('[C14] readiness asks only whether requests can be decided, and says why not', (t) => {
  t.deepEqual(notReady(well), []);
  t.deepEqual(notReady({ ...well, plugins: [{ name: 'b', state: 'failed' }] }), []);
  t.deepEqual(notReady({ ...well, log: { ...log, state: 'frozen', reason: 'disk full' } }), [
    'the log is frozen: disk full',
  ]);
  t.deepEqual(notReady({ ...well, accepting: false }), ['more waits for the log than it can take']);
});

test('[C13,C14] a plugin says that calls should go elsewhere by `ready: false` in its fact, which is not failing', (t) => {
  const reports = {
    cluster: { ok: false, ready: false, reason: 'cut off' },
    other: { ready: false },
    legs: [],
  };
  t.deepEqual(notReady({ ...well, reports }), ['cluster: cut off', 'other is not ready']);
  t.deepEqual(notReady({ ...well, reports: { cluster: { ok: false }, store: { ready: true } } }), []);
  t.is(healthStatus({ ...well, reports }), 'degraded');
});
