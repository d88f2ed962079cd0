import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { accessPoints } from '../../../src/machines/router/access-points.ts';
import { type WanChange, wan } from '../../../src/machines/router/wan.ts';

const input = { wan: 'eth0' };
const asked = (change: WanChange) => ({ type: 'CHANGED' as const, ...change });
const delegated = asked({ kind: 'pd-change', prefix: '2001:db8:7::/56' });
const applied = (...reapplied: string[]) => ({ type: 'WAN_APPLIED' as const, ncid: 'n1', reapplied });
/** The answer to who simulated it; `''` where nobody did. */
const reply = (to: string, ...reapplied: string[]) => ({
  type: 'http.reply',
  params: { to, status: 200, body: { wan: 'eth0', ncid: 'n1', reapplied } },
});
const change = (params: object) => ({ type: 'router.change_wan', params: params as never });

test('[R17] another prefix reapplies the legs and publishes them, under the ncid that stands', (t) => {
  given(wan, { input })
    .when(delegated)
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: true, prefix: '2001:db8:7::/56' })] })
    .when(applied('eth1.10', 'eth1.20'))
    .then({
      state: 'steady',
      effects: [
        { type: 'router.publish', params: { ncid: 'n1', reapplied: ['eth1.10', 'eth1.20'] } },
        reply('', 'eth1.10', 'eth1.20'),
      ],
      context: { prefix: '2001:db8:7::/56', job: undefined },
    });
  t.pass();
});

test('[R39] a WAN that goes down and comes up publishes its channels, keeps its prefix and answers who asked', (t) => {
  const publish = (up: boolean) => ({ type: 'router.publish_wan', params: { wan: 'eth0', up, ncid: 'n1' } });
  given(wan, { input, events: [delegated, applied()] })
    .when(asked({ kind: 'down', request: 'r1' }))
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: false, prefix: '2001:db8:7::/56' })] })
    .when(applied())
    .then({ state: 'steady', effects: [publish(false), reply('r1')], context: { up: false } })
    .when(asked({ kind: 'up', request: 'r2' }))
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: true, prefix: '2001:db8:7::/56' })] })
    .when(applied())
    .then({ state: 'steady', effects: [publish(true), reply('r2')], context: { up: true } });
  t.pass();
});

test('[R17] what comes while the kernel follows waits its turn', (t) => {
  given(wan, { input, events: [delegated] })
    .when(asked({ kind: 'down' }))
    .then({ state: 'changing', effects: [] })
    .when(applied('eth1.10'))
    .then({
      state: 'changing',
      effects: [
        { type: 'router.publish', params: { ncid: 'n1', reapplied: ['eth1.10'] } },
        reply('', 'eth1.10'),
        change({ wan: 'eth0', up: false, prefix: '2001:db8:7::/56' }),
      ],
    });
  t.pass();
});

test('[R17] a kernel that does not follow is reported to who asked, and alerted, and what was known stands', (t) => {
  const alert = {
    type: 'alerts.raise',
    params: {
      name: 'router.wan_change_failed',
      severity: 'critical',
      text: 'The kernel did not follow a change of a WAN. Legs may hold addresses of a prefix that is gone.',
      labels: { wan: 'eth0', reason: 'no' },
    },
  };
  const refused = (to: string) => ({
    type: 'http.reply',
    params: { to, status: 409, body: { code: 'HF_ROUTER_SIMULATION', reason: 'no' } },
  });
  given(wan, { input, events: [asked({ kind: 'down', request: 'r1' })] })
    .when({ type: 'WAN_REFUSED', reason: 'no' })
    .then({
      state: 'steady',
      effects: [refused('r1'), alert],
      context: { up: true },
    })
    .when(delegated)
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: true, prefix: '2001:db8:7::/56' })] })
    .when({ type: 'effect.failed', effect: 'router.change_wan', message: 'no' })
    .then({ state: 'steady', effects: [refused(''), alert], context: { prefix: undefined } });
  t.pass();
});

test('[R39] a change that the access-point controller took is published and answered', (t) => {
  given(accessPoints)
    .when({ type: 'CHANGED', request: 'r1' })
    .then({
      state: 'steady',
      effects: [
        { type: 'router.publish_apc' },
        { type: 'http.reply', params: { to: 'r1', status: 200, body: {} } },
      ],
      context: { changes: 1 },
    });
  t.pass();
});

test('[R18] what the kernel did by itself is published and not applied again', (t) => {
  const publish = (up: boolean) => ({ type: 'router.publish_wan', params: { wan: 'eth0', up, ncid: 'n1' } });
  given(wan, { input })
    .when(asked({ kind: 'lost' }))
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: true, observed: [] })] })
    .when(applied())
    .then({ state: 'steady', effects: [publish(false), reply('')], context: { up: true, connected: false } })
    .when(asked({ kind: 'readdressed' }))
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: true, observed: [] })] })
    .when(applied())
    .then({ state: 'steady', effects: [publish(false), reply('')], context: { connected: false } })
    .when(asked({ kind: 'connected' }))
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: true, observed: [] })] })
    .when(applied())
    .then({ state: 'steady', effects: [publish(true), reply('')], context: { connected: true } })
    .when(asked({ kind: 'readdressed', legs: ['eth1.10'] }))
    .then({ state: 'changing', effects: [change({ wan: 'eth0', up: true, observed: ['eth1.10'] })] })
    .when(applied('eth1.10'))
    .then({
      state: 'steady',
      effects: [
        { type: 'router.publish', params: { ncid: 'n1', reapplied: ['eth1.10'] } },
        reply('', 'eth1.10'),
      ],
    });
  t.pass();
});
