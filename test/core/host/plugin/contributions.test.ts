import test from 'ava';
import { z } from 'zod';
import { defineContributionPoint } from '../../../../src/core/contracts/token.ts';
import {
  definePlugin,
  type PluginDefinition,
  type Services,
} from '../../../../src/core/host/plugin/definition.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import { plugin, services } from './fixture.ts';

const lamps = defineContributionPoint<string>('test.lamps');

/** A plugin that contributes its colour, and the number that its start gave. */
const lamp = (name: string, colour: string) => {
  const { definition } = definePlugin({
    name,
    options: z.strictObject({ colour: z.string() }),
    start: () => 7,
    register: (context, options) => context.contribute(lamps, (started) => `${options.colour} ${started}`),
  });
  return { definition: definition as unknown as PluginDefinition, options: { colour } };
};

const collecting = (seen: { services?: Services }, collects = [lamps]) =>
  plugin('house', () => {}, { collects, start: (given) => Object.assign(seen, { services: given }) });

test('[C11] a plugin that collects hears of all contributions, wherever it stands in the list', async (t) => {
  const seen: { services?: Services } = {};
  const host = new PluginHost([collecting(seen), lamp('hall', 'red'), lamp('kitchen', 'blue')]);
  await host.start(services().given);
  t.deepEqual(
    host.status().map(({ name }) => name),
    ['hall', 'kitchen', 'house'],
  );
  t.deepEqual(seen.services?.contributions(lamps), [
    { owner: 'hall', options: { colour: 'red' }, value: 'red 7' },
    { owner: 'kitchen', options: { colour: 'blue' }, value: 'blue 7' },
  ]);
});

test('[C11] a changed configuration contributes anew, with what the plugins have started', async (t) => {
  const seen: { services?: Services } = {};
  const host = new PluginHost([collecting(seen), lamp('hall', 'red'), lamp('kitchen', 'blue')]);
  await host.start(services().given);
  const changed = [lamp('hall', 'green'), lamp('cellar', 'white')];
  t.deepEqual(
    seen.services?.contributions(lamps, changed),
    [{ owner: 'hall', options: { colour: 'green' }, value: 'green 7' }],
    'the kitchen is gone, and the cellar was never started',
  );
  t.is(seen.services?.contributions(lamps).length, 2, 'what runs is as it was');
});

test('[C11] a plugin that failed contributes nothing, and one that does not list a point reads nothing of it', async (t) => {
  const seen: { services?: Services } = {};
  const broken = plugin('cellar', (context) => context.contribute(lamps, () => 'black'), {
    onFailure: 'continue',
    start: () => Promise.reject(new Error('wet')),
  });
  const host = new PluginHost([collecting(seen), broken]);
  await host.start(services().given);
  t.deepEqual(seen.services?.contributions(lamps), []);
  t.throws(() => seen.services?.contributions(defineContributionPoint('test.doors')), {
    code: 'HF_PLUGIN_CONTRACT',
  });
});

test('[C11] what needs no running plugin is contributed as it is, and known before anything starts', async (t) => {
  const seen: { services?: Services } = {};
  const fixed = plugin('cellar', (context) => context.contribute(lamps, 'black'));
  const host = new PluginHost([collecting(seen), fixed, lamp('hall', 'red')]);
  const { contributions } = host.register();
  t.deepEqual(
    contributions.map(({ owner, value }) => [owner, value]),
    [
      ['cellar', 'black'],
      ['hall', undefined],
    ],
  );
  await host.start(services().given);
  t.deepEqual(
    seen.services?.contributions(lamps).map(({ value }) => value),
    ['black', 'red 7'],
  );
});
