import test from 'ava';
import { z } from 'zod';
import { defineTopic } from '../../../../src/bus/topic.ts';
import { defineToken } from '../../../../src/core/contracts/token.ts';
import type { PluginContext } from '../../../../src/core/host/plugin/definition.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import { type HoldfastError, isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { idleMachine, machineAsking, plugin, services } from './fixture.ts';

const tick = defineTopic('test.tick', z.object({}), 'A tick.');
const Clockwork = defineToken<{ kind: string }>('test.clockwork');

const coded = (error: unknown) => error as HoldfastError;
const actor = (type: string, machine = idleMachine as never) => ({ type, machine, version: 1 });
const effect = (ctx: PluginContext, type: string) => ctx.effect(type, () => {}, { onRecovery: 'retry' });

test('[C11] all declarations are one frozen value with their owners, usable without starting anything', (t) => {
  let ran = 0;
  const run = () => {
    ran += 1;
  };
  const host = new PluginHost([
    plugin('clock', (ctx) => {
      ctx.actor(actor('clock.hand', machineAsking('clock.strike') as never));
      ctx.effect('clock.strike', run, { onRecovery: 'retry', adapter: 'bell' });
      ctx.route(tick, actor('clock.hand'), () => [{ key: '1', event: { type: 'go' } as never }]);
      ctx.http({ name: 'clock' } as never, run);
      ctx.listener({ name: 'chime' } as never);
      ctx.control(run);
      ctx.command({ name: 'clock show', summary: 'Shows it.', example: 'holdfast clock show', run: () => 0 });
      ctx.health('clock', () => ({ hands: 2 }));
      ctx.check({ name: 'clock.hands', run: () => ({ state: 'ok', lookedAt: 'the hands', found: 'two' }) });
      ctx.schedule('*/5 * * * *', tick);
      ctx.contribute({ name: 'test.bells' }, run);
      ctx.overwrites('clock/face');
      ctx.onReady(run);
      ctx.onStop(run);
    }),
  ]);
  const registrations = host.register();
  const { plugins, ...declared } = registrations;

  for (const [kind, items] of Object.entries(declared)) {
    t.deepEqual(
      items.map(({ owner }) => owner).filter((owner) => owner !== 'core'),
      ['clock'],
      kind,
    );
    t.true(Object.isFrozen(items) && items.every(Object.isFrozen), kind);
  }
  t.is(registrations.actors.at(-1)?.type, 'clock.hand');
  t.is(registrations.effects[0]?.adapter, 'bell');
  t.is(registrations.routes.at(-1)?.topic.name, 'test.tick');
  t.is(registrations.schedules[0]?.cron, '*/5 * * * *');
  t.deepEqual(plugins, [{ name: 'clock', requires: [], wants: [], provides: [], onFailure: 'abort' }]);
  t.is(host.register(), registrations);
  t.is(ran, 0);
});

test('[C11] an effect that a machine may ask for must have a handler; those of core need none', (t) => {
  const asking = (...types: string[]) =>
    plugin('asker', (ctx) => ctx.actor(actor('asker', machineAsking(...types) as never)));
  const error = coded(t.throws(() => new PluginHost([asking('bell.ring')]).register()));
  t.is(error.code, 'HF_EFFECT_UNHANDLED');
  t.regex(error.message, /Actor type asker asks for effect bell\.ring/);
  t.notThrows(() => new PluginHost([asking('http.reply', 'timer.start')]).register());
  const handler = plugin('bell', (ctx) => effect(ctx, 'bell.ring'));
  t.notThrows(() => new PluginHost([asking('bell.ring'), handler]).register());
});

test('[C2] only the decisions on calls may be batched: another actor type that asks for it is refused', (t) => {
  for (const durability of ['batched', () => 'batched' as const] as const) {
    const hasty = plugin('hasty', (ctx) => ctx.actor({ ...actor('hasty'), durability }));
    const error = coded(t.throws(() => new PluginHost([hasty]).register()));
    t.is(error.code, 'HF_ACTOR_BATCHED');
    t.regex(error.message, /hasty/);
  }
  const patient = plugin('patient', (ctx) => ctx.actor({ ...actor('patient'), durability: 'sync' }));
  t.notThrows(() => new PluginHost([patient]).register());
});

test('[C11] a route to an actor type that nobody registers is refused by plugin, topic and type', (t) => {
  const lost = plugin('lost', (ctx) => ctx.route(tick, actor('nowhere'), () => []));
  const error = coded(t.throws(() => new PluginHost([lost]).register()));
  t.is(error.code, 'HF_ROUTE_TARGET');
  t.regex(error.message, /plugin lost sends test\.tick to actor type nowhere/);
});

const twice: Record<string, (ctx: PluginContext) => void> = {
  'Actor type shared': (ctx) => ctx.actor(actor('shared')),
  'Effect shared': (ctx) => effect(ctx, 'shared'),
  'Surface shared': (ctx) => ctx.http({ name: 'shared' } as never, () => {}),
  'Health fact shared': (ctx) => ctx.health('shared', () => 1),
  'Check shared': (ctx) =>
    ctx.check({ name: 'shared', run: () => ({ state: 'ok', lookedAt: '', found: '' }) }),
};
for (const [what, register] of Object.entries(twice)) {
  test(`[C11] two plugins cannot both declare: ${what}`, (t) => {
    const error = coded(
      t.throws(() => new PluginHost([plugin('one', register), plugin('two', register)]).register()),
    );
    t.is(error.code, 'HF_PLUGIN_CONFLICT');
    t.is(error.what, `${what} is declared by both one and two.`);
  });
}

test('[C11] two commands of the same words are one command, whatever their arguments', (t) => {
  const command = (name: string) =>
    plugin(name.length.toString(), (ctx) => ctx.command({ name, summary: '', example: '', run: () => 0 }));
  const error = coded(
    t.throws(() => new PluginHost([command('log show <seq>'), command('log show [a] [b]')]).register()),
  );
  t.is(error.what, 'Command log show is declared by both 14 and 16.');
});

test('[C11] an effect type of core cannot be taken by a plugin', (t) => {
  const thief = plugin('thief', (ctx) => effect(ctx, 'timer.start'));
  const error = coded(t.throws(() => new PluginHost([thief]).register()));
  t.is(error.what, 'Effect timer.start is declared by both core and thief.');
});

test('[C11] whatever is declared after boot is refused by name, and changes nothing', async (t) => {
  let late: PluginContext | undefined;
  const host = new PluginHost([
    plugin(
      'late',
      (ctx) => {
        late = ctx;
        ctx.provide(Clockwork, () => ({ kind: 'spring' }));
      },
      { provides: [Clockwork] },
    ),
  ]);
  const registrations = host.register();
  await host.start(services().given);
  const attempts: [RegExp, () => unknown][] = [
    [/actor x/, () => late?.actor(actor('x'))],
    [/effect x/, () => late && effect(late, 'x')],
    [/route of test\.tick/, () => late?.route(tick, actor('x'), () => [])],
    [/surface x/, () => late?.http({ name: 'x' } as never, () => {})],
    [/command x/, () => late?.command({ name: 'x', summary: '', example: '', run: () => 0 })],
    [/schedule of test\.tick/, () => late?.schedule('* * * * *', tick)],
    [/health fact x/, () => late?.health('x', () => 1)],
    [/work when ready/, () => late?.onReady(() => {})],
    [/work at stop/, () => late?.onStop(() => {})],
    [/token test\.clockwork/, () => late?.provide(Clockwork, () => ({ kind: 'x' }))],
  ];
  for (const [what, attempt] of attempts) {
    const error = t.throws(attempt);
    t.true(isCoded(error, 'HF_PLUGIN_FROZEN'), String(error));
    t.regex(String(error?.message), what);
  }
  const { actors, readyWork } = registrations;
  t.true([...actors, ...readyWork].every(({ owner }) => owner === 'core'));
  await host.stop('test');
});

test('[C11] a definition that lies about what it provides, or registers asynchronously, is refused', (t) => {
  const lies = plugin('lies', () => {}, { provides: [Clockwork] });
  t.regex(
    coded(t.throws(() => new PluginHost([lies]).register())).message,
    /lists test\.clockwork in provides, but register gives no factory/,
  );
  const asynchronous = () => Promise.reject(new Error('not seen'));
  const slow = plugin('slow', asynchronous as never);
  t.is(coded(t.throws(() => new PluginHost([slow]).register())).code, 'HF_PLUGIN_CONTRACT');
});

test('[C11] a cron pattern that cannot be read is refused at registration, with the plugin named', (t) => {
  const bad = plugin('bad', (ctx) => ctx.schedule('61 * * * *', tick));
  const error = coded(t.throws(() => new PluginHost([bad]).register()));
  t.is(error.code, 'HF_PLUGIN_FAILED');
  t.regex(error.message, /Plugin bad failed in its register/);
});

test('[C12] an optional plugin that cannot register takes its declarations and its dependents along, no more', (t) => {
  const optional = { onFailure: 'continue' } as const;
  const host = new PluginHost([
    plugin('fine', (ctx) => ctx.actor(actor('fine'))),
    plugin(
      'broken',
      (ctx) => {
        ctx.actor(actor('half'));
        effect(ctx, 'broken.do');
        throw new Error('no such model');
      },
      { ...optional, provides: [Clockwork] },
    ),
    plugin('needs-token', (ctx) => ctx.actor(actor('needs')), { ...optional, requires: [Clockwork] }),
    plugin('needs-effect', (ctx) => ctx.actor(actor('asks', machineAsking('broken.do') as never)), optional),
    plugin('needs-actor', (ctx) => ctx.route(tick, actor('asks'), () => []), optional),
  ]);
  const registrations = host.register();
  t.deepEqual(
    registrations.actors.filter(({ owner }) => owner !== 'core').map(({ type }) => type),
    ['fine'],
  );
  t.deepEqual(
    registrations.routes.filter(({ owner }) => owner !== 'core'),
    [],
  );
  t.deepEqual(
    host.status().map(({ name, state }) => `${name} ${state}`),
    ['fine registered', 'broken failed', 'needs-token failed', 'needs-effect failed', 'needs-actor failed'],
  );
  t.regex(host.status()[2]?.reason ?? '', /needs test\.clockwork, and broken failed: .*no such model/);
});
