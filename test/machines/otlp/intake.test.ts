import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { type IntakeEvent, intake } from '../../../src/machines/otlp/intake.ts';

const place = 'clickhouse:8123';
const there: IntakeEvent = { type: 'DATABASE_AVAILABLE', place };
const away: IntakeEvent = { type: 'DATABASE_UNAVAILABLE', place, reason: 'it is gone', since: 7 };

test('a database that is unavailable for a minute is one alert, which its return resolves', (t) => {
  t.notThrows(() =>
    given(intake, { events: [there] })
      .when(away)
      .then({
        state: { requests: 'taken', database: 'unavailable' },
        context: { unavailable: 'it is gone', unavailableSince: 7 },
        timers: { patience: 60_000 },
      })
      .when(elapsed('patience'))
      .then({
        state: { requests: 'taken', database: 'reported' },
        effects: [
          {
            type: 'alerts.raise',
            params: {
              name: 'otlp.database_unavailable',
              severity: 'warning',
              text: 'Telemetry is kept on disk, because the columnar database takes no rows.',
              labels: { state: 'firing', place, reason: 'it is gone' },
            },
          },
        ],
      })
      .when(there)
      .then({
        state: { requests: 'taken', database: 'available' },
        context: { unavailable: undefined, unavailableSince: undefined },
        effects: [
          {
            type: 'alerts.raise',
            params: {
              name: 'otlp.database_unavailable',
              severity: 'info',
              text: 'The columnar database takes telemetry again.',
              labels: { state: 'resolved', place },
            },
          },
        ],
      }),
  );
});

test('one that is back within the minute is no alert', (t) => {
  t.notThrows(() =>
    given(intake, { events: [there, away] })
      .when(there)
      .then({ state: { requests: 'taken', database: 'available' }, effects: [] }),
  );
});

test('a full spool refuses every request, also during an overload, and an alert says why', (t) => {
  t.notThrows(() =>
    given(intake, { events: [there] })
      .when({ type: 'OVERLOADED' })
      .then({ state: { requests: 'limited', database: 'available' } })
      .when({ type: 'SPOOL_BLOCKED', reason: 'the spool is full' })
      .then({
        state: { requests: 'refused', database: 'available' },
        context: { blocked: 'the spool is full' },
        effects: [
          {
            type: 'alerts.raise',
            params: {
              name: 'otlp.refusing',
              severity: 'critical',
              text: 'Telemetry is refused: it can be neither inserted into the database nor kept on disk.',
              labels: { state: 'firing', reason: 'the spool is full' },
            },
          },
        ],
      })
      .when({ type: 'SPOOL_BLOCKED', reason: 'ENOSPC' })
      .then({
        state: { requests: 'refused', database: 'available' },
        context: { blocked: 'ENOSPC' },
        effects: [],
      })
      .when({ type: 'SPOOL_WRITABLE' })
      .then({
        state: { requests: 'taken', database: 'available' },
        context: { blocked: undefined },
        effects: [
          {
            type: 'alerts.raise',
            params: {
              name: 'otlp.refusing',
              severity: 'info',
              text: 'Telemetry is taken again.',
              labels: { state: 'resolved' },
            },
          },
        ],
      }),
  );
});

test('an overload ends with the number of requests that were refused', (t) => {
  t.notThrows(() =>
    given(intake)
      .when({ type: 'OVERLOADED' })
      .then({ state: { requests: 'limited', database: 'unknown' }, context: { refused: 0 } })
      .when({ type: 'RELIEVED', refused: 12 })
      .then({ state: { requests: 'taken', database: 'unknown' }, context: { refused: 12 } }),
  );
});
