import test from 'ava';
import { z } from 'zod';
import { defineTopic } from '../../../../src/bus/topic.ts';
import { ClusterToken } from '../../../../src/core/contracts/cluster.ts';
import { defineToken } from '../../../../src/core/contracts/token.ts';
import type {
  PluginContext,
  PluginDefinition,
  RouteOptions,
} from '../../../../src/core/host/plugin/definition.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import { defineActor } from '../../../../src/core/kernel/actors/definition.ts';
import { idleMachine, plugin } from './fixture.ts';

const Store = defineToken<string>('test.store');
const View = defineToken<string>('test.view');
const cluster = plugin('cluster', (context) => context.provide(ClusterToken, () => fail()), {
  provides: [ClusterToken],
});
const idle = defineActor({ type: 'test.idle', machine: idleMachine, version: 1, hear: () => undefined });

function fail(): never {
  throw new Error('nothing is started here');
}

type Placed = Pick<PluginDefinition, 'requires' | 'wants' | 'provides' | 'singleton' | 'hostBound'>;
const one = (name: string, placed: Placed, register: (context: PluginContext) => void = () => {}) =>
  plugin(
    name,
    (context) => {
      for (const token of placed.provides ?? []) context.provide(token, () => fail());
      register(context);
    },
    placed,
  );
const movable = (...plugins: ReturnType<typeof plugin>[]) =>
  Object.fromEntries(new PluginHost([...plugins, cluster]).movable());

const store = (hostBound: boolean) => one('store', { provides: [Store], hostBound });
const view = one('view', { requires: [Store], provides: [View] });

test('[C13] a singleton can be on another host unless it needs what is bound to this one', (t) => {
  const clerk = (placed: Placed) => one('clerk', { singleton: 'clerks', ...placed });
  const free = { clerks: ['clerk'] };
  t.deepEqual(movable(clerk({})), free);
  t.deepEqual(movable(clerk({ hostBound: true })), {});
  t.deepEqual(movable(store(false), clerk({ requires: [Store] })), free);
  t.deepEqual(movable(store(true), clerk({ requires: [Store] })), {});
  t.deepEqual(movable(store(true), clerk({ wants: [Store] })), {});
  t.deepEqual(movable(store(true), view, clerk({ wants: [View] })), {}, 'through a plugin that requires it');
  t.deepEqual(movable(store(false), view, clerk({ wants: [View] })), free);
  const other = one('other', { singleton: 'clerks', hostBound: true });
  t.deepEqual(movable(clerk({}), other), {}, 'plugins of one singleton stay together');
  t.deepEqual(movable(clerk({}), one('other', { singleton: 'clerks' })), { clerks: ['clerk', 'other'] });
});

test('[C13] whether a plugin is bound to its host can depend on its options', (t) => {
  const bound = (embedded: boolean) => {
    const { definition } = one('store', {
      provides: [Store],
      hostBound: (options) => options.embedded === true,
    });
    return { definition, options: { embedded } };
  };
  const clerk = one('clerk', { singleton: 'clerks', requires: [Store] });
  t.deepEqual(movable(bound(true), clerk), {});
  t.deepEqual(movable(bound(false), clerk), { clerks: ['clerk'] });
});

test('[C13] without a cluster no singleton can be on another host', (t) => {
  t.is(new PluginHost([one('clerk', { singleton: 'clerks' })]).movable().size, 0);
});

test('[C13] what others cannot do without is no part of a singleton', (t) => {
  const provider = one('store', { provides: [Store], singleton: 'stores' });
  const refused = (...plugins: ReturnType<typeof plugin>[]) =>
    t.throws(() => new PluginHost(plugins).register(), { code: 'HF_PLUGIN_SINGLETON' })?.message;
  t.regex(
    refused(provider, one('clerk', { requires: [Store] })) ?? '',
    /clerk.*stores: it requires test.store/,
  );
  t.regex(refused(provider, one('clerk', { requires: [Store], singleton: 'clerks' })) ?? '', /stores/);
  t.notThrows(() => new PluginHost([provider, one('clerk', { wants: [Store] })]).register());
  t.notThrows(() =>
    new PluginHost([provider, one('clerk', { requires: [Store], singleton: 'stores' })]).register(),
  );
  const surface = one('clerk', { singleton: 'clerks' }, (context) =>
    context.http({ name: 'desk', port: 0, portVariable: 'NONE' }, () => {}),
  );
  t.regex(refused(surface) ?? '', /its listener desk would be gone/);
  const topic = defineTopic('test.bell', z.object({}), 'It rings.');
  const everywhere = one('clerk', { singleton: 'clerks' }, (context) => {
    context.actor(idle);
    context.route(topic, idle, () => [], { everyHost: true });
  });
  t.regex(refused(everywhere) ?? '', /test.bell leads to every host/);
});

test('[C13] a route leads to every host only where its actors can hear of what their host missed', (t) => {
  const topic = defineTopic('test.bell', z.object({}), 'It rings.');
  const deaf = defineActor({ type: 'test.deaf', machine: idleMachine, version: 1 });
  const clerk = (actor: typeof deaf, options: RouteOptions) =>
    new PluginHost([
      one('clerk', {}, (context) => {
        context.actor(actor);
        context.route(topic, actor, () => [], options);
      }),
    ]);
  const { message } = t.throws(() => clerk(deaf, { everyHost: true }).register(), {
    code: 'HF_PLUGIN_EVERY_HOST',
  });
  t.regex(message, /route of test\.bell in plugin clerk .* actors of type test\.deaf/);
  t.notThrows(() => clerk(deaf, {}).register());
  t.notThrows(() => clerk(idle, { everyHost: true }).register());
});
