import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { type Probed, routeHealth } from '../../../src/machines/gateway/route-health.ts';

const probed = (at: number, found: Probed['found'], more = {}) =>
  ({ type: 'PROBED', at, found, ...more }) as const;
const alert = (severity: string, text: string, labels: object) => ({
  type: 'alerts.raise',
  params: { name: 'gateway.route_down', severity, text, labels: { route: 'wiki', ...labels } },
});
const failed = (at: number) => probed(at, 'failed', { reason: 'does not answer' });
const down = alert('critical', 'The route wiki is down: its upstream does not answer.', {
  state: 'firing',
  found: 'failed',
});
const back = alert('info', 'The upstream of the route wiki answers again.', { state: 'resolved' });

test('[G17] a route is down at its third failure in a row, which is told once; a success in between begins anew', (t) => {
  given(routeHealth, { input: { route: 'wiki' } })
    .when(failed(1))
    .then({ state: 'degraded', context: { failures: 1 } })
    .when(failed(2))
    .then({ state: 'degraded', context: { failures: 2 } })
    .when(probed(3, 'ok', { tools: 4 }))
    .then({ state: 'healthy', context: { failures: 0, tools: 4 } });
  given(routeHealth, { input: { route: 'wiki' }, events: [failed(1), failed(2)] })
    .when(failed(3))
    .then({ state: 'down', effects: [down], context: { failures: 3, alerted: true } })
    .when(failed(4))
    .then({ state: 'down', context: { failures: 4 } })
    .when(probed(5, 'ok'))
    .then({ state: 'healthy', effects: [back], context: { failures: 0, alerted: undefined } })
    .when(probed(6, 'ok'))
    .then({ state: 'healthy' });
  t.pass();
});

test('[G17] the page says since when a route is as it is, and when it was last looked at', (t) => {
  given(routeHealth, { input: { route: 'wiki' } })
    .when(probed(10, 'ok'))
    .then({ state: 'healthy', context: { since: 10, checkedAt: 10 } })
    .when(probed(20, 'ok'))
    .then({ state: 'healthy', context: { since: 10, checkedAt: 20 } })
    .when(probed(30, 'undocumented'))
    .then({ state: 'undocumented', context: { since: 30, checkedAt: 30 } })
    .when({ type: 'RESET', at: 40, reason: 'it was redefined' })
    .then({ state: 'unknown', context: { since: 40, checkedAt: undefined, reason: 'it was redefined' } });
  t.pass();
});

const callFailed = (at: number) => ({ type: 'CALL_FAILED', at, reason: 'does not answer' }) as const;

test('[G17] calls that fail count like probes: three in a row open the circuit, and one good probe closes it', (t) => {
  given(routeHealth, { input: { route: 'wiki' }, events: [probed(1, 'ok'), callFailed(2)] })
    .when(failed(3))
    .then({ state: 'degraded', context: { failures: 2 } })
    .when(callFailed(4))
    .then({ state: 'down', effects: [down], context: { failures: 3 } })
    .when({ type: 'CALL_ANSWERED', at: 5 })
    .then({ state: 'down', context: { failures: 3 } })
    .when(probed(6, 'ok'))
    .then({ state: 'healthy', effects: [back] });
  given(routeHealth, { input: { route: 'wiki' }, events: [callFailed(1), callFailed(2)] })
    .when({ type: 'CALL_ANSWERED', at: 3 })
    .then({ state: 'unknown', context: { failures: 0 } })
    .when(callFailed(4))
    .then({ state: 'degraded', context: { failures: 1 } });
  t.pass();
});

const unusable = (at: number, lastGood: boolean, problem = 'file /t: it is empty') =>
  ({ type: 'TOKEN_UNUSABLE', at, problem, lastGood }) as const;
const tokenAlert = (severity: string, text: string, labels: object) => ({
  type: 'alerts.raise',
  params: { name: 'gateway.route_token', severity, text, labels: { route: 'wiki', ...labels } },
});
const goesOn = tokenAlert(
  'warning',
  'The token of the route wiki can not be used: file /t: it is empty. The last good token goes on until the process ends; after a restart the route answers 503.',
  { state: 'firing', last_good: 'true' },
);
const answers503 = tokenAlert(
  'critical',
  'The token of the route wiki can not be used: file /t: it is empty. The route answers 503 until it is corrected.',
  { state: 'firing', last_good: 'false' },
);
const usable = tokenAlert('info', 'The token of the route wiki can be used again.', { state: 'resolved' });

test('[G7,G17] a token that can not be used is a state, alerted once for each reason, and over when it can', (t) => {
  given(routeHealth, { input: { route: 'wiki' }, events: [probed(1, 'ok', { tools: 2 })] })
    .when(unusable(2, true))
    .then({ state: 'token_unusable', effects: [goesOn] })
    .when(unusable(3, true))
    .then({ state: 'token_unusable', effects: [] })
    .when(probed(4, 'ok', { tools: 2 }))
    .then({ state: 'token_unusable', effects: [] })
    .when(unusable(5, false))
    .then({ state: 'token_unusable', effects: [answers503] })
    .when({ type: 'TOKEN_USABLE', at: 6 })
    .then({ state: 'healthy', effects: [usable], context: { token: undefined } });
  t.pass();
});

test('[G7,G17] an outage while the token can not be used is alerted too, and the route is down when it can', (t) => {
  given(routeHealth, { input: { route: 'wiki' }, events: [unusable(1, true), failed(2), failed(3)] })
    .when(failed(4))
    .then({ state: 'token_unusable', effects: [down] })
    .when({ type: 'TOKEN_USABLE', at: 5 })
    .then({ state: 'down', effects: [usable] });
  given(routeHealth, { input: { route: 'wiki' }, events: [unusable(1, false)] })
    .when({ type: 'RESET', at: 2, reason: 'its definition changed' })
    .then({
      state: 'unknown',
      effects: [
        tokenAlert(
          'info',
          'The token of the route wiki is read again from the beginning: its definition changed.',
          {
            state: 'resolved',
          },
        ),
      ],
    });
  t.pass();
});

test('[G7,G17] a token that no authorization server issues is told with how long the last one goes on', (t) => {
  const unusable = { type: 'TOKEN_UNUSABLE', problem: 'login.example refuses', issued: true } as const;
  const token = (severity: string, text: string, labels: object) => ({
    type: 'alerts.raise',
    params: { name: 'gateway.route_token', severity, text, labels: { route: 'wiki', ...labels } },
  });
  const endsAt = 2 + 4.5 * 60_000;
  given(routeHealth, { input: { route: 'wiki' }, events: [probed(1, 'ok')] })
    .when({ ...unusable, at: 2, lastGood: true, endsAt })
    .then({
      state: 'token_unusable',
      effects: [
        token(
          'warning',
          'No token is issued for the route wiki: login.example refuses. The last one goes on for 5 min at most; then the route answers 503.',
          { state: 'firing', last_good: 'true' },
        ),
      ],
    })
    .when({ ...unusable, at: 3, lastGood: false })
    .then({
      state: 'token_unusable',
      effects: [
        token(
          'critical',
          'No token is issued for the route wiki: login.example refuses. The route answers 503 until there is one; the gateway tries again by itself.',
          { state: 'firing', last_good: 'false' },
        ),
      ],
      context: { token: { problem: 'login.example refuses', issued: true, lastGood: false } },
    })
    .when({ type: 'TOKEN_USABLE', at: 4 })
    .then({
      state: 'healthy',
      effects: [token('info', 'The token of the route wiki can be used again.', { state: 'resolved' })],
    });
  t.pass();
});
