import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { alertsUnevaluated } from '../../../src/machines/alerts/unevaluated.ts';

const HOUR = 3_600_000;
const failed = (rule: string, at: number, reason = 'it is away') =>
  ({ type: 'FAILED', at, rule, reason }) as const;
const recovered = (rule: string, at: number) => ({ type: 'RECOVERED', at, rule }) as const;
const alert = (text: string, state = 'firing') => ({
  type: 'alerts.raise',
  params: {
    name: 'alerts.rules_unevaluated',
    severity: state === 'firing' ? 'warning' : 'info',
    text,
    labels: { state },
  },
});
const over = { type: 'xstate.after.overdue.alerts-unevaluated.failing' } as never;

test('[O17] rules that cannot be evaluated for an hour are one alert, which ends with the last of them', (t) => {
  const events = [failed('a', 0), failed('a', 30_000, 'still away'), failed('b', 60_000)];
  given(alertsUnevaluated, { events })
    .when(over)
    .then({
      state: 'reported',
      effects: [alert('The alert rules a, b cannot be evaluated, so they cannot fire: still away.')],
    });
  given(alertsUnevaluated, { events: [...events, over, failed('a', HOUR)] })
    .when(failed('c', HOUR))
    .then({
      state: 'reported',
      effects: [alert('The alert rules a, b cannot be evaluated, so they cannot fire: it is away.')].map(
        ({ params }) => ({
          type: 'alerts.raise',
          params: {
            ...params,
            text: 'The alert rules a, b, c cannot be evaluated, so they cannot fire: it is away.',
          },
        }),
      ),
    });
  given(alertsUnevaluated, { events: [...events, over] })
    .when(recovered('a', HOUR + 1))
    .then({ state: 'reported' });
  given(alertsUnevaluated, { events: [...events, over, recovered('a', HOUR + 1)] })
    .when(recovered('b', HOUR + 2))
    .then({
      state: 'fine',
      effects: [alert('Every alert rule can be evaluated again.', 'resolved')],
      context: { failing: {} },
    });
  t.pass();
});

test('[O17] the hour counts from the first failure of a rule that still fails', (t) => {
  given(alertsUnevaluated, { events: [failed('a', 0), failed('b', 600_000)] })
    .when(recovered('a', 1_200_000))
    .then({ state: 'failing', timers: { overdue: HOUR - 600_000 } });
  given(alertsUnevaluated, { events: [failed('a', 0)] })
    .when(recovered('a', 1_000))
    .then({ state: 'fine', timers: {} });
  t.pass();
});
