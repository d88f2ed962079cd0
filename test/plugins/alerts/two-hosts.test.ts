import test from 'ava';
import { setup } from 'xstate';
import { z } from 'zod';
import { defineTopic } from '../../../src/bus/topic.ts';
import { alertRaised } from '../../../src/core/contracts/alerts.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { defineActor } from '../../../src/core/kernel/actors/definition.ts';
import { type Alert, effect } from '../../../src/machines/effect.ts';
import { alertActor } from '../../../src/plugins/alerts/actors.ts';
import { alerts } from '../../../src/plugins/alerts/index.ts';
import { MemoryCluster, startHost, type TestHost } from '../../support/two-hosts.ts';
import { until } from '../../support/until.ts';

/** Says that something is full, or empty again. */
const full = setup({
  types: { events: {} as { readonly type: 'FULL' | 'EMPTY' } },
  actions: { 'alerts.raise': effect<Alert>() },
}).createMachine({
  id: 'test-full',
  on: {
    FULL: {
      actions: {
        type: 'alerts.raise',
        params: { name: 'disk.full', severity: 'critical', text: 'full', labels: { state: 'firing' } },
      },
    },
    EMPTY: {
      actions: {
        type: 'alerts.raise',
        params: { name: 'disk.full', severity: 'info', text: 'empty', labels: { state: 'resolved' } },
      },
    },
  },
});

const actor = defineActor({ type: 'test.full', machine: full, version: 1, hear: () => undefined });
const measured = defineTopic('test.measured', z.object({ isFull: z.boolean() }), 'How full it is.');

/** @param place whose it is: each host's own, or work that one host does */
function plugin(place: { singleton?: string; everyHost?: true }): PluginEntry {
  const defined = definePlugin({
    name: 'full',
    options: z.strictObject({}),
    start: () => undefined,
    register(context) {
      const { singleton, everyHost } = place;
      context.actor(actor, singleton === undefined ? {} : { singleton });
      context.route(
        measured,
        actor,
        ({ payload: { isFull } }) => [{ key: 'it', event: { type: isFull ? 'FULL' : 'EMPTY' } as const }],
        everyHost ? { everyHost } : {},
      );
    },
  });
  return defined();
}

const firing = ({ runtime }: TestHost) =>
  runtime.services.actors
    .list(alertActor)
    .filter(({ value }) => typeof value === 'object')
    .map(({ key }) => key)
    .sort();
const counted = ({ runtime }: TestHost, count: number) =>
  until(`${count} records of alerts`, async () => {
    const records = await Array.fromAsync(runtime.services.log.read({}));
    return (
      records.filter(({ actor: ref, event }) => ref.startsWith('alerts.alert/') && event.type === 'RAISED')
        .length >= count
    );
  });

test('[C13,O17] what is well on one host does not end the alert of another one about itself', async (t) => {
  const hosts = new MemoryCluster();
  const a = await startHost(t, hosts, 'a', [alerts(), plugin({})]);
  const b = await startHost(t, hosts, 'b', [alerts(), plugin({})]);
  await until('a holds the alerts', () => hosts.holders.get('alerts')?.member.host === 'a');
  const measure = ({ runtime }: TestHost, isFull: boolean) =>
    runtime.services.bus.publish(measured, { isFull });
  measure(b, true);
  await counted(a, 1);
  measure(a, false);
  await counted(a, 2);
  t.deepEqual(firing(a), ['disk.full{host=b}']);
  measure(a, true);
  await counted(a, 3);
  t.deepEqual(firing(a), ['disk.full{host=a}', 'disk.full{host=b}']);
  measure(b, false);
  await counted(a, 4);
  t.deepEqual(firing(a), ['disk.full{host=a}']);
});

for (const place of [{ singleton: 'fullness' }, { everyHost: true }] as const) {
  test(`[C13,O17] an alert about what is one for all hosts names none of them: ${Object.keys(place)}`, async (t) => {
    const hosts = new MemoryCluster();
    const a = await startHost(t, hosts, 'a', [alerts(), plugin(place)]);
    const b = await startHost(t, hosts, 'b', [alerts(), plugin(place)]);
    await until('a holds the alerts', () => hosts.holders.get('alerts')?.member.host === 'a');
    a.runtime.services.bus.publish(measured, { isFull: true });
    await counted(a, 1);
    t.deepEqual(firing(a), ['disk.full']);
    if ('singleton' in place) await hosts.move('fullness', 'b');
    b.runtime.services.bus.publish(measured, { isFull: false });
    await until('it has ended', () => firing(a).length === 0);
    t.pass();
  });
}

test('[C13,O17] what a host says of its own log names that host, also where it has the rules', async (t) => {
  const hosts = new MemoryCluster();
  const failing = definePlugin({
    name: 'failing',
    options: z.strictObject({}),
    onFailure: 'continue',
    start() {
      throw new Error('no');
    },
    register() {},
  });
  const raised: string[] = [];
  const listening = definePlugin({
    name: 'listening',
    options: z.strictObject({}),
    start({ bus }) {
      bus.subscribe(alertRaised, 'listening', ({ payload }) =>
        raised.push(`${payload.name} ${payload.labels.host}`),
      );
    },
    register() {},
  });
  await startHost(t, hosts, 'a', [listening(), failing()]);
  t.deepEqual(raised, ['plugin.failed a']);
});
