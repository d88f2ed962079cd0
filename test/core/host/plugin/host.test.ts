import test from 'ava';
import { z } from 'zod';
import { defineTopic } from '../../../../src/bus/topic.ts';
import { alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { defineToken } from '../../../../src/core/contracts/token.ts';
import {
  definePlugin,
  type PluginContext,
  type PluginDefinition,
} from '../../../../src/core/host/plugin/definition.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import type { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { RouterError } from '../../../../src/plugins/router/errors.ts';
import { plugin, services } from './fixture.ts';

interface Store {
  kind: string;
}
const Store = defineToken<Store>('test.store');
const optional = { onFailure: 'continue' } as const;
const hang = () => new Promise<void>(() => {});
const states = (host: PluginHost) => host.status().map(({ name, state }) => `${name} ${state}`);

const failing = (reason: string) => () => Promise.reject(new Error(reason));

/** A plugin that notes its start and stop in `seen`. */
const noting = (
  seen: string[],
  name: string,
  definition: Parameters<typeof plugin>[2] = {},
  register: (ctx: PluginContext) => void = () => {},
) =>
  plugin(
    name,
    (ctx) => {
      register(ctx);
      ctx.onStop((_, reason) => void seen.push(`stop ${name} ${reason}`));
    },
    { start: () => void seen.push(`start ${name}`), ...definition },
  );

test('[C12] plugins start after what they need and stop before it', async (t) => {
  const seen: string[] = [];
  const host = new PluginHost([
    noting(seen, 'user', { requires: [Store] }),
    noting(seen, 'store', { provides: [Store] }, (ctx) => ctx.provide(Store, () => ({ kind: 'memory' }))),
    noting(seen, 'last', {}, (ctx) => ctx.onStop(() => void seen.push('stop last, declared first'))),
  ]);
  await host.start(services().given);
  t.deepEqual(states(host), ['store started', 'user started', 'last started']);
  t.deepEqual(await host.stop('SIGTERM'), []);
  t.deepEqual(seen, [
    'start store',
    'start user',
    'start last',
    'stop last SIGTERM',
    'stop last, declared first',
    'stop user SIGTERM',
    'stop store SIGTERM',
  ]);
  t.deepEqual(states(host), ['store stopped', 'user stopped', 'last stopped']);
});

test('[C11] an adapter is replaced by enabling another plugin that provides the same token', async (t) => {
  const used: string[] = [];
  const user = () =>
    plugin('user', () => {}, {
      requires: [Store],
      start: ({ get }) => void used.push(get(Store).kind),
    });
  const store = (name: string) =>
    plugin(name, (ctx) => ctx.provide(Store, () => ({ kind: name })), { provides: [Store] });
  for (const name of ['embedded', 'remote']) {
    const host = new PluginHost([user(), store(name)]);
    await host.start(services().given);
    await host.stop('test');
  }
  t.deepEqual(used, ['embedded', 'remote']);
});

test('[C11] a token that a plugin does not list cannot be read through its services', async (t) => {
  const sneaky = plugin('sneaky', () => {}, { start: ({ get }) => void get(Store) });
  const store = plugin('store', (ctx) => ctx.provide(Store, () => ({ kind: 'memory' })), {
    provides: [Store],
  });
  await t.throwsAsync(new PluginHost([store, sneaky]).start(services().given), {
    code: 'HF_PLUGIN_CONTRACT',
  });
});

test('[C12] a plugin that must not fail stops what had started, in reverse, and names itself and the reason', async (t) => {
  const seen: string[] = [];
  const host = new PluginHost([
    noting(seen, 'a'),
    noting(seen, 'b'),
    noting(seen, 'bad', {
      start() {
        throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: 'ECONNREFUSED' });
      },
    }),
    noting(seen, 'never'),
  ]);
  const error = await t.throwsAsync<HoldfastError>(host.start(services().given));
  t.is(error.code, 'HF_PLUGIN_FAILED');
  t.regex(
    error.message,
    /Plugin bad failed in its start: HF_ROUTER_UNREACHABLE: .*ECONNREFUSED\. Check that/,
  );
  t.deepEqual(
    seen.map((line) => line.split(' ').slice(0, 2).join(' ')),
    ['start a', 'start b', 'stop b', 'stop a'],
  );
  t.deepEqual(states(host), ['a stopped', 'b stopped', 'bad failed', 'never registered']);
});

test('[C12] an optional plugin that fails leaves the rest running, visible in status, log, report and alert', async (t) => {
  const { given, bus, lines, clock } = services();
  const alerts: string[] = [];
  bus.subscribe(alertRaised, 'test', ({ payload }) =>
    alerts.push(`${payload.name} ${payload.labels.plugin}`),
  );
  const host = new PluginHost(
    [
      plugin('fine', () => {}, { start: () => new Promise<void>((resolve) => void clock.after(7, resolve)) }),
      plugin('bad', (ctx) => ctx.provide(Store, () => ({ kind: 'memory' })), {
        ...optional,
        provides: [Store],
        start: failing('disk full.'),
      }),
      plugin('dependent', () => {}, { ...optional, requires: [Store] }),
      plugin('also-fine'),
    ],
    { clock },
  );
  const starting = host.start(given);
  await clock.advance(7);
  await starting;

  t.deepEqual(states(host), ['fine started', 'bad failed', 'dependent failed', 'also-fine started']);
  t.is(host.status()[1]?.reason, 'HF_PLUGIN_FAILED: Plugin bad failed in its start: disk full.');
  t.deepEqual(alerts, ['plugin.failed bad', 'plugin.failed dependent']);
  t.deepEqual(
    lines.filter(({ msg }) => msg === 'plugin.failed').map(({ plugin, code }) => `${plugin} ${code}`),
    ['bad HF_PLUGIN_FAILED', 'dependent HF_PLUGIN_FAILED'],
  );
  t.deepEqual(host.report(), [
    'plugins 2/4 started in 7 ms',
    '├── fine 7 ms',
    '├── bad failed after 0 ms: HF_PLUGIN_FAILED: Plugin bad failed in its start: disk full.',
    '│   └── dependent failed: HF_PLUGIN_FAILED: Plugin dependent failed in its start: ' +
      'it needs test.store, and bad failed: Plugin bad failed in its start: disk full.',
    '└── also-fine 0 ms',
  ]);
  t.is(clock.armed, 0);
  await host.stop('test');
});

test('[C12] a plugin that must not fail and needs a failed optional one ends the boot', async (t) => {
  const host = new PluginHost([
    plugin(
      'bad',
      (ctx) =>
        ctx.provide(Store, () => {
          throw new Error('no disk');
        }),
      { ...optional, provides: [Store] },
    ),
    plugin('needs', () => {}, { requires: [Store] }),
  ]);
  const error = await t.throwsAsync(host.start(services().given), { code: 'HF_PLUGIN_FAILED' });
  t.regex(error?.message ?? '', /needs failed in its start: it needs test\.store, and bad failed: .*no disk/);
});

test('[C12] a start that hangs ends at its deadline, with the plugin and the phase named', async (t) => {
  const { given, clock } = services();
  const seen: string[] = [];
  let aborted = false;
  const host = new PluginHost(
    [
      noting(seen, 'a'),
      plugin('hangs', () => {}, {
        start(_services, _options, signal) {
          signal.addEventListener('abort', () => {
            aborted = true;
          });
          return hang();
        },
      }),
    ],
    { clock },
  );
  const starting = t.throwsAsync<HoldfastError>(host.start(given));
  await clock.advance(9_999);
  t.false(aborted);
  await clock.advance(1);
  const error = await starting;
  t.is(error?.message, 'HF_PLUGIN_DEADLINE: Plugin hangs did not finish its start within 10000 ms.');
  t.true(aborted);
  t.deepEqual(seen, ['start a', 'stop a start of hangs failed']);
  t.is(clock.armed, 0);
});

test('[C12] an optional plugin that starts after its deadline is stopped, and its subscriptions end', async (t) => {
  const { given, clock, bus } = services();
  const noise = defineTopic('test.noise', z.object({}), 'Noise.');
  const seen: string[] = [];
  const host = new PluginHost(
    [
      noting(seen, 'late', {
        ...optional,
        async start() {
          await new Promise<void>((resolve) => void clock.after(25_000, resolve));
          bus.subscribe(noise, 'late', () => seen.push('heard'));
          seen.push('start late');
        },
      }),
      noting(seen, 'fine'),
    ],
    { clock },
  );
  const starting = host.start(given);
  await clock.advance(10_000);
  await starting;
  t.deepEqual(states(host), ['late failed', 'fine started']);
  t.deepEqual(seen, ['start fine']);
  await clock.advance(15_000);
  bus.publish(noise, {});
  t.deepEqual(
    seen.map((line) => line.split(' ').slice(0, 2).join(' ')),
    ['start fine', 'start late', 'stop late'],
  );
  t.deepEqual(states(host), ['late failed', 'fine started']);
  await host.stop('test');
  t.is(seen.filter((line) => line.startsWith('stop late')).length, 1);
});

test('[C12] neither a failure nor a hanging stop of one plugin keeps the others from stopping', async (t) => {
  const { given, clock, lines } = services();
  const seen: string[] = [];
  const host = new PluginHost(
    [
      noting(seen, 'a'),
      plugin('throws', (ctx) => {
        ctx.onStop(() => void seen.push('second of throws'));
        ctx.onStop(() => {
          throw new Error('socket gone');
        });
      }),
      plugin('hangs', (ctx) => ctx.onStop(hang)),
      noting(seen, 'b'),
    ],
    { clock },
  );
  await host.start(given);
  const stopping = host.stop('SIGTERM');
  t.is(host.stop('again'), stopping);
  await clock.advance(10_000);
  const failures = await stopping;
  t.deepEqual(
    failures.map(({ message }) => message),
    [
      'HF_PLUGIN_DEADLINE: Plugin hangs did not finish its stop within 10000 ms.',
      'HF_PLUGIN_FAILED: Plugin throws failed in its stop: socket gone.',
    ],
  );
  t.deepEqual(seen, ['start a', 'start b', 'stop b SIGTERM', 'second of throws', 'stop a SIGTERM']);
  t.is(lines.filter(({ msg }) => msg === 'plugin.stop_failed').length, 2);
  t.true(states(host).every((line) => line.endsWith('stopped')));
});

test('[C12] a stop during the start interrupts it, starts nothing more and stops what had started', async (t) => {
  const { given, clock } = services();
  const seen: string[] = [];
  const host = new PluginHost(
    [
      noting(seen, 'a'),
      plugin('slow', () => {}, {
        start: (_services, _options, signal) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
      }),
      noting(seen, 'never'),
    ],
    { clock },
  );
  const starting = t.throwsAsync(host.start(given), { code: 'HF_PLUGIN_INTERRUPTED' });
  await clock.advance(5);
  t.deepEqual(await host.stop('SIGINT'), []);
  await starting;
  t.deepEqual(seen, ['start a', 'stop a SIGINT']);
});

test('[C12] the effect of a plugin that failed to start fails with its reason instead of running', async (t) => {
  const ran: string[] = [];
  const host = new PluginHost([
    plugin('bad', (ctx) => ctx.effect('bad.do', () => void ran.push('bad.do'), { onRecovery: 'retry' }), {
      ...optional,
      start: failing('no licence'),
    }),
  ]);
  const [effect] = host.register().effects;
  await host.start(services().given);
  t.throws(() => effect?.handler({} as never, {} as never), {
    message: /bad failed in its start: no licence/,
  });
  t.deepEqual(ran, []);
});

test('[C12] an effect that waits for the start of its plugin fails when that start does', async (t) => {
  const start = Promise.withResolvers<void>();
  const bad = plugin('bad', (ctx) => ctx.effect('bad.do', () => {}, { onRecovery: 'retry' }), {
    ...optional,
    start: () => start.promise,
  });
  const host = new PluginHost([bad]);
  const [effect] = host.register().effects;
  const starting = host.start(services().given);
  const asked = t.throwsAsync(async () => effect?.handler({} as never, {} as never), {
    message: /bad failed in its start: no licence/,
  });
  start.reject(new Error('no licence'));
  await starting;
  await asked;
});

test('health facts come from running plugins only, and one that throws harms no other', async (t) => {
  const host = new PluginHost([
    plugin('a', (ctx) => {
      ctx.health('pending', () => ({ transID: 'x' }));
      ctx.health('nothing', () => undefined);
      ctx.health('broken', () => {
        throw new Error('oh');
      });
    }),
    plugin('bad', (ctx) => ctx.health('bad', () => 1), { ...optional, start: failing('no') }),
  ]);
  t.deepEqual(host.health(), {});
  await host.start(services().given);
  t.deepEqual(host.health(), { pending: { transID: 'x' }, broken: { error: 'Error: oh' } });
  await host.stop('test');
  t.deepEqual(host.health(), {});
});

test('[C12] surfaces and schedules of a plugin that failed to start are told apart from those to serve', async (t) => {
  const surface = (name: string, start: PluginDefinition['start']) =>
    plugin(name, (ctx) => ctx.http({ name } as never, () => {}), { ...optional, ...(start && { start }) });
  const host = new PluginHost([surface('a', undefined), surface('b', failing('no'))]);
  const { surfaces } = host.register();
  t.deepEqual(host.started(surfaces), []);
  await host.start(services().given);
  t.deepEqual(
    host.started(surfaces).map(({ owner }) => owner),
    ['a'],
  );
  await host.stop('test');
});

test('[C12] the boot report hangs each plugin under the last one it waited for', async (t) => {
  const Other = defineToken<number>('test.other');
  const { given, clock } = services();
  const host = new PluginHost(
    [
      plugin('store', (ctx) => ctx.provide(Store, () => ({ kind: 'x' })), { provides: [Store] }),
      plugin('other', (ctx) => ctx.provide(Other, () => 1), { provides: [Other], requires: [Store] }),
      plugin('both', () => {}, { requires: [Store, Other] }),
      plugin('one', () => {}, { requires: [Store] }),
    ],
    { clock },
  );
  await host.start(given);
  t.deepEqual(host.report(), [
    'plugins 4/4 started in 0 ms',
    '└── store 0 ms · provides test.store',
    '    ├── other 0 ms · provides test.other',
    '    │   └── both 0 ms',
    '    └── one 0 ms',
  ]);
  await host.stop('test');
});

test('[C11] what start returns reaches every handler, and an effect asked for meanwhile waits for it', async (t) => {
  const seen: string[] = [];
  const begun = Promise.withResolvers<void>();
  const defined = definePlugin({
    name: 'lamp',
    options: z.strictObject({ watts: z.number().default(5) }),
    provides: [Store],
    async start({ dataDir: _ }, { watts }) {
      await begun.promise;
      return { lamp: `lamp of ${watts} W` };
    },
    register(ctx) {
      ctx.effect('lamp.on', (_, __, { lamp }) => void seen.push(`on: ${lamp}`), { onRecovery: 'retry' });
      ctx.provide(Store, ({ lamp }) => ({ kind: lamp }));
      ctx.health('lamp', ({ lamp }) => lamp);
      ctx.onStop(({ lamp }, reason) => void seen.push(`off: ${lamp}, ${reason}`));
    },
  });
  const host = new PluginHost([{ definition: defined.definition, options: { watts: 5 } }]);
  const [effect] = host.register().effects;
  const starting = host.start(services().given);
  const asked = effect?.handler({} as never, {} as never);
  t.deepEqual(seen, []);
  begun.resolve();
  await starting;
  await asked;
  t.deepEqual(seen, ['on: lamp of 5 W']);
  t.deepEqual(host.health(), { lamp: 'lamp of 5 W' });
  await host.stop('test');
  t.deepEqual(seen.slice(1), ['off: lamp of 5 W, test']);
});

test('[C12] a start that throws leaves nothing to stop', async (t) => {
  const seen: string[] = [];
  const { definition } = definePlugin({
    name: 'broken',
    options: z.strictObject({}),
    onFailure: 'continue',
    start: () => Promise.reject(new Error('no lamp')),
    register: (ctx) => ctx.onStop(() => void seen.push('stopped')),
  });
  const host = new PluginHost([{ definition, options: {} }]);
  await host.start(services().given);
  await host.stop('test');
  t.deepEqual(seen, []);
  t.deepEqual(states(host), ['broken failed']);
});
