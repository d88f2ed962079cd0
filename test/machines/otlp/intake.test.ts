import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { type TelemetryIntakeEvent, telemetryIntake } from '../../../src/machines/otlp/intake.ts';

const place = 'clickhouse:8123';
const there: TelemetryIntakeEvent = { type: 'DATABASE_THERE', place };
const away: TelemetryIntakeEvent = { type: 'DATABASE_AWAY', place, reason: 'it is gone', since: 7 };

test('[O1] a database that is away for a minute is told to a person once, and its return too', (t) => {
  t.notThrows(() =>
    given(telemetryIntake, { events: [there] })
      .when(away)
      .then({ state: { door: 'open', database: 'away' }, context: { away: 'it is gone', awaySince: 7 } })
      .when(elapsed('patience'))
      .then({
        state: { door: 'open', database: 'missed' },
        effects: [
          {
            type: 'alert.raise',
            params: {
              name: 'otlp.database_away',
              severity: 'warning',
              text: 'Telemetry is kept on disk: the columnar database takes nothing.',
              labels: { state: 'firing', place, reason: 'it is gone' },
            },
          },
        ],
      })
      .when(there)
      .then({
        state: { door: 'open', database: 'there' },
        context: { away: undefined, awaySince: undefined },
        effects: [
          {
            type: 'alert.raise',
            params: {
              name: 'otlp.database_away',
              severity: 'info',
              text: 'The columnar database takes telemetry again.',
              labels: { state: 'resolved', place },
            },
          },
        ],
      }),
  );
});

test('[O1] one that is back within the minute is told to nobody', (t) => {
  t.notThrows(() =>
    given(telemetryIntake, { events: [there, away] })
      .when(there)
      .then({ state: { door: 'open', database: 'there' }, effects: [] }),
  );
});

test('[O4] a full spool shuts the door whatever the press, and tells a person why', (t) => {
  t.notThrows(() =>
    given(telemetryIntake, { events: [there] })
      .when({ type: 'PRESSED' })
      .then({ state: { door: 'pressed', database: 'there' } })
      .when({ type: 'SPOOL_STUCK', reason: 'the spool is full' })
      .then({
        state: { door: 'shut', database: 'there' },
        context: { shut: 'the spool is full' },
        effects: [
          {
            type: 'alert.raise',
            params: {
              name: 'otlp.refusing',
              severity: 'critical',
              text: 'Telemetry is refused: what is received can be neither inserted nor kept.',
              labels: { state: 'firing', reason: 'the spool is full' },
            },
          },
        ],
      })
      .when({ type: 'SPOOL_STUCK', reason: 'ENOSPC' })
      .then({ state: { door: 'shut', database: 'there' }, context: { shut: 'ENOSPC' }, effects: [] })
      .when({ type: 'SPOOL_FREE' })
      .then({
        state: { door: 'open', database: 'there' },
        context: { shut: undefined },
        effects: [
          {
            type: 'alert.raise',
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

test('[O4] a press ends with the number of those it cost', (t) => {
  t.notThrows(() =>
    given(telemetryIntake)
      .when({ type: 'PRESSED' })
      .then({ state: { door: 'pressed', database: 'unknown' }, context: { refused: 0 } })
      .when({ type: 'RELIEVED', refused: 12 })
      .then({ state: { door: 'open', database: 'unknown' }, context: { refused: 12 } }),
  );
});
