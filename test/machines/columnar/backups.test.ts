import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { type ColumnarBackupsEvent, columnarBackups } from '../../../src/machines/columnar/backups.ts';

const state = 'watched';
const HOUR = 3_600_000;
const input = { staleMs: 26 * HOUR };
const backup = (name: string, at: number) => ({ name, at, size: 10, sha256: 'x', tables: [] });
const made = (name: string, at: number): ColumnarBackupsEvent => ({ type: 'MADE', backup: backup(name, at) });
const failed: ColumnarBackupsEvent = { type: 'FAILED', at: 1, reason: 'the disk is full' };
const checked = (hours: number): ColumnarBackupsEvent => ({ type: 'CHECKED', at: hours * HOUR });
const drilled = (proven: boolean): ColumnarBackupsEvent => ({
  type: 'DRILLED',
  at: 1,
  name: 'a',
  proven,
  reasons: proven ? [] : ['otel_logs is missing'],
});
const alert = (name: string, severity: string, text: string) => ({
  type: 'alerts.raise',
  params: { name, severity, text, labels: { state: severity === 'info' ? 'resolved' : 'firing' } },
});
const again = 'A backup of the columnar database was made again.';

test('[O7] a backup that fails is one alert, which the next good one ends', (t) => {
  t.notThrows(() =>
    given(columnarBackups, { input })
      .when(failed)
      .then({
        state,
        context: { fault: 'the disk is full' },
        effects: [
          alert(
            'columnar.backup_failed',
            'warning',
            'No backup of the columnar database could be made: the disk is full.',
          ),
        ],
      })
      .when(failed)
      .then({ state, effects: [] })
      .when(made('a', HOUR))
      .then({
        state,
        context: { fault: undefined },
        effects: [alert('columnar.backup_failed', 'info', again)],
      })
      .when(made('b', 2 * HOUR))
      .then({ state, context: { good: [backup('b', 2 * HOUR), backup('a', HOUR)] }, effects: [] })
      .when({ type: 'GONE', names: ['a'] })
      .then({ state, context: { good: [backup('b', 2 * HOUR)] } }),
  );
});

test('[O7] no good backup for 26 h is one alert, counted from the first check where there was never one', (t) => {
  const stale = alert(
    'columnar.backup_stale',
    'warning',
    'There was no good backup of the columnar database for 26 h.',
  );
  t.notThrows(() =>
    given(columnarBackups, { input })
      .when(checked(10))
      .then({ state, context: { isStale: false }, effects: [] })
      .when(checked(36))
      .then({ state, context: { isStale: false }, effects: [] })
      .when(checked(37))
      .then({ state, context: { isStale: true }, effects: [stale] })
      .when(checked(38))
      .then({ state, effects: [] })
      .when(made('a', 40 * HOUR))
      .then({ state, context: { isStale: false }, effects: [alert('columnar.backup_stale', 'info', again)] })
      .when(checked(66))
      .then({ state, effects: [] })
      .when(checked(67))
      .then({ state, effects: [stale] })
      .when(failed)
      .then({
        state,
        effects: [
          alert(
            'columnar.backup_failed',
            'warning',
            'No backup of the columnar database could be made: the disk is full.',
          ),
        ],
      })
      .when(made('b', 68 * HOUR))
      .then({
        state,
        effects: [
          alert('columnar.backup_failed', 'info', again),
          alert('columnar.backup_stale', 'info', again),
        ],
      }),
  );
});

test('[O7] a backup that is dated in the future does not count as recent', (t) => {
  const after = (at: number, hours: number, isStale: boolean) =>
    given(columnarBackups, { input, events: [checked(0), made('old', 0), made('a', at)] })
      .when(checked(hours))
      .then({
        state,
        context: { isStale },
        effects: isStale
          ? [
              alert(
                'columnar.backup_stale',
                'warning',
                'There was no good backup of the columnar database for 26 h.',
              ),
            ]
          : [],
      });
  t.notThrows(() => after(900 * HOUR, 27, true));
  t.notThrows(() => after(27 * HOUR + 300_000, 27, false));
  t.notThrows(() => after(27 * HOUR + 300_001, 27, true));
});

test('[O7] a drill that proves nothing is critical, until one proves a backup', (t) => {
  const text = 'The backup a of the columnar database is not proven: otel_logs is missing.';
  t.notThrows(() =>
    given(columnarBackups, { input })
      .when(drilled(true))
      .then({ state, effects: [] })
      .when(drilled(false))
      .then({ state, effects: [alert('columnar.backup_not_proven', 'critical', text)] })
      .when(drilled(true))
      .then({
        state,
        effects: [
          alert(
            'columnar.backup_not_proven',
            'info',
            'A drill has proven a backup of the columnar database.',
          ),
        ],
      })
      .when(drilled(true))
      .then({ state, effects: [] }),
  );
});
