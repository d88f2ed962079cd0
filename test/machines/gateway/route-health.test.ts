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
