import test from 'ava';
import { given } from '../../src/core/host/testing/index.ts';
import { type ConnectionEvent, connection } from '../../src/machines/connection.ts';

const alert = { name: 'router.store_lost', text: 'The store cannot be reached.' };
const store = 'redis://127.0.0.1:6379';
const there: ConnectionEvent = { type: 'CONNECTED', store };
const away: ConnectionEvent = { type: 'LOST', store, reason: 'the connection was lost' };

test('a loss is an alert, and refused writes are counted until the store is back', (t) => {
  t.notThrows(() =>
    given(connection, { input: { alert }, events: [there] })
      .when(away)
      .then({
        state: 'lost',
        context: { reason: away.reason, missed: 0 },
        effects: [
          {
            type: 'alerts.raise',
            params: {
              name: 'router.store_lost',
              severity: 'critical',
              text: 'The store cannot be reached.',
              labels: { store, reason: away.reason },
            },
          },
        ],
      })
      .when({ type: 'MISSED', who: 'app' })
      .then({ state: 'lost', context: { missed: 1 } })
      .when(there)
      .then({ state: 'connected', context: { reason: undefined, missed: 0 } }),
  );
});
