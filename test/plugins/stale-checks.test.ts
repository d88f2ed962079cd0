/** Checks of doctor say `ok` only of what was looked at, and lately: each `ok` becomes something else when that is lost. */
import test from 'ava';
import type { CheckContext } from '../../src/core/host/plugin/diagnosis.ts';
import type { Result } from '../../src/machines/restore/drill-shapes.ts';
import { dataCheck } from '../../src/plugins/alerts/checks.ts';
import type { AlertsView } from '../../src/plugins/alerts/view.ts';
import { configCheck, probeCheck } from '../../src/plugins/collector/checks.ts';
import { judgeBackups } from '../../src/plugins/columnar/backups/schedule.ts';
import { legsCheck } from '../../src/plugins/reconciler/leg-status.ts';
import { drillsCheck, drillsFact, drillsHealth } from '../../src/plugins/restore/doctor.ts';
import { routerChecks } from '../../src/plugins/router/embedded/checks.ts';
import { plaintextCheck, type TelemetryFact, telemetryFact } from '../../src/plugins/telemetry/receiver.ts';
import { tempDir } from '../support/temp.ts';

const { signal } = new AbortController();
const running = (facts: Record<string, unknown>): CheckContext => ({
  dataDir: '/nowhere',
  signal,
  facts,
  running: { surfaces: {}, facts },
});
const stopped: CheckContext = { dataDir: '/nowhere', signal };

test('[O8] a collector whose config is in pods is ok only when the running instance read a key there', (t) => {
  const collectorPods = {
    namespace: 'stack',
    labels: { app: 'collector' },
    file: '/etc/otel/effective.yaml',
    everyMs: 60_000,
  };
  const look = (collector?: object) =>
    configCheck({ collectorPods }, collector ? running({ collector }) : stopped).state;
  const read = { source: 'pods', place: 'pods of stack', keys: ['fp_1'] };
  t.is(look(read), 'ok');
  t.is(look({ ...read, keys: [] }), 'fail');
  t.is(look({ ...read, ok: false, reason: 'it cannot be read' }), 'fail');
  t.is(look({ ...read, source: 'own' }), 'unknown');
  t.is(look(), 'unknown');
});

test('[O27] a probe that arrived more than a day ago is not a probe of now', (t) => {
  const look = (probe: object) => probeCheck(running({ probe })).state;
  const arrived = { end: 'arrived', at: '2026-01-02T12:00:00.000Z', arrivedMs: 20, isOld: false };
  t.is(look(arrived), 'ok');
  t.is(look({ ...arrived, isOld: true }), 'unknown');
  t.is(look({ end: 'arrived' }), 'unknown', 'without a date');
  t.is(look({ ...arrived, end: 'lost' }), 'fail');
});

test('[R24] a reconciler that keeps no leg has not all its legs whole', (t) => {
  const look = (legs: object[]) => legsCheck(running({ reconciler: { legs } })).state;
  t.is(look([{ state: 'whole' }]), 'ok');
  t.is(look([]), 'unknown');
});

test('[O11] rules are ok when there are some, and each was evaluated lately', (t) => {
  const rule: AlertsView['rules'][number] = {
    ...{ rule: 'one', title: 'One', verdict: 'ok', condition: 'above 1', window: '5m', onNoData: 'keep' },
    lookedAt: '2026-01-02T12:00:00.000Z',
  };
  const look = (rules: AlertsView['rules']) => dataCheck('rules', rules).state;
  t.is(look([rule]), 'ok');
  t.is(look([]), 'unknown');
  t.is(look([rule, { ...rule, isOld: true }]), 'unknown');
});

test('[O29] backups of the columnar database are ok while a drill of the last month proved one', (t) => {
  const backups = [{ name: 'columnar-2' }];
  const drill = { name: 'columnar-1', proven: true, at: '2026-01-02T12:00:00.000Z', isOld: false };
  const look = (status: Parameters<typeof judgeBackups>[1]) => judgeBackups('backups', status).state;
  const file = { state: 'ok' } as const;
  t.is(look({ backups, drill, file }), 'ok');
  t.is(look({ backups, drill }), 'unknown', 'its file was not read');
  t.is(look({ backups, drill, file, isAhead: true }), 'fail', 'dated in the future');
  t.is(look({ backups, drill, file: { state: 'unknown', reason: 'too late' } }), 'unknown');
  t.is(look({ backups, drill, file: { state: 'fail', reason: 'gone' } }), 'fail');
  t.is(look({ backups, file: { state: 'fail', reason: 'gone' } }), 'fail');
  t.is(look({ backups, drill: { ...drill, isOld: true }, file }), 'warn');
  t.is(look({ backups, drill: { ...drill, proven: false } }), 'fail');
  t.is(look({ backups }), 'warn');
  t.is(look({ backups: [], drill }), 'warn');
});

test('[B2,B4] drills are ok when the newest one of each path was proven in the last month', async (t) => {
  const day = 86_400_000;
  const result = (path: 'a' | 'b', outcome: 'completed' | 'failed', endedAt: number): Result => ({
    ...{ id: `${path}1`, path, by: 'command', at: endedAt, outcome, endedAt, cleanFailures: 0 },
  });
  const look = async (results: Result[], now: number, paths: ('a' | 'b')[] = ['a', 'b']) =>
    (await drillsCheck.run(running({ restore: { drills: drillsFact(paths, results, now) } }))).state;
  const both = [result('a', 'completed', day), result('b', 'completed', day)];
  t.is(await look(both, 2 * day), 'ok');
  t.is(await look(both.slice(1), 2 * day), 'unknown', 'no drill of path a');
  t.is(await look([], 2 * day), 'unknown');
  t.is(await look([], 2 * day, []), 'unknown');
  t.is(await look(both, 33 * day), 'unknown', 'too long ago');
  t.is(await look([...both, result('b', 'failed', 2 * day)], 2 * day), 'fail');
  t.is(await look([...both, result('b', 'completed', 2 * day)], 2 * day), 'ok');
  t.is(await look([...both, result('b', 'completed', 3 * day)], 2 * day), 'unknown', 'dated in the future');
  t.is((await drillsCheck.run(stopped)).state, 'unknown');

  const health = (results: Result[], now: number, isWrong = false, paths: ('a' | 'b')[] = ['a', 'b']) =>
    drillsHealth(drillsFact(paths, results, now), isWrong);
  t.deepEqual(health(both, 2 * day), { ok: true });
  t.deepEqual(health(both, 2 * day, true), { ok: false });
  t.deepEqual(health([], 2 * day), {
    unknown: 'path a: no backup was ever restored; path b: no backup was ever restored',
  });
  t.deepEqual(health(both.slice(1), 2 * day), { unknown: 'path a: no backup was ever restored' });
  t.deepEqual(health([], 2 * day, false, []), { unknown: 'no path of a drill is configured' });
  const old = 'path a: none was proven lately; path b: none was proven lately';
  t.deepEqual(health(both, 33 * day), { unknown: old });
});

test('[O26] whether the instance sends telemetry in plaintext is told by the instance, and unknown without one', (t) => {
  const check = (fact?: TelemetryFact) => plaintextCheck(running(fact ? { telemetry: fact } : {}));
  t.regex(telemetryFact(undefined, {}).text, /^sends nothing of its own/);
  t.is(telemetryFact('own', {}).text, 'sends its own spans and metrics');
  t.like(check(telemetryFact('own', {})), { state: 'ok', found: 'nothing leaves the host in plaintext' });
  t.like(check(telemetryFact(undefined, {})), { state: 'ok', found: 'it sends nothing: no endpoint is set' });
  t.is(check(telemetryFact('http://10.0.0.7:4318', {})).state, 'warn');
  t.is(check().state, 'unknown');
  t.is(plaintextCheck(stopped).state, 'unknown');
});

test('[R34] of a store that is not there yet nothing is ok', async (t) => {
  const dataDir = tempDir(t);
  const checks = routerChecks({ redisUrl: undefined });
  for (const name of ['router.store', 'router.address_sets']) {
    const check = checks.find((one) => one.name === name)!;
    t.like(await check.run({ dataDir, signal }), { state: 'unknown' });
  }
});
