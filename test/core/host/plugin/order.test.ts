import test from 'ava';
import fc from 'fast-check';
import { defineToken } from '../../../../src/core/contracts/token.ts';
import type { TokenUser } from '../../../../src/core/host/plugin/container.ts';
import { startOrder } from '../../../../src/core/host/plugin/order.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';

const token = (name: string) => defineToken<unknown>(name);
const plugin = (name: string, requires: string[], provides: string[]): TokenUser => ({
  name,
  requires: requires.map(token),
  provides: provides.map(token),
});

/** Plugins p0…pn, each providing its own token, each requiring tokens of lower ones only, in any order. */
const acyclic = fc
  .integer({ min: 1, max: 12 })
  .chain((size) =>
    fc.record({
      needs: fc.tuple(
        ...Array.from({ length: size }, (_, index) =>
          fc.subarray(Array.from({ length: index }, (_, lower) => lower)),
        ),
      ),
      shuffled: fc.shuffledSubarray(
        Array.from({ length: size }, (_, index) => index),
        { minLength: size },
      ),
    }),
  )
  .map(({ needs, shuffled }) =>
    shuffled.map((index) =>
      plugin(
        `p${index}`,
        (needs[index] ?? []).map((lower) => `t${lower}`),
        [`t${index}`],
      ),
    ),
  );

test('[C12] any acyclic set of plugins is ordered so that providers come before those who need them', (t) => {
  fc.assert(
    fc.property(acyclic, (plugins) => {
      const ordered = startOrder(plugins);
      const given = new Set<string>();
      for (const { requires = [], provides = [] } of ordered) {
        for (const { name } of requires) if (!given.has(name)) return false;
        for (const { name } of provides) given.add(name);
      }
      return ordered.length === plugins.length && plugins.every((entry) => ordered.includes(entry));
    }),
  );
  t.pass();
});

test('[C12] an added requirement that closes a circle is refused, and the names given are that circle', (t) => {
  fc.assert(
    fc.property(acyclic, fc.nat(), fc.nat(), (plugins, first, second) => {
      const from = plugins[first % plugins.length];
      const to = plugins[second % plugins.length];
      if (!from || !to || !reaches(plugins, to, from)) return;
      const closed = plugins.map((entry) =>
        entry === from ? { ...entry, requires: [...(entry.requires ?? []), ...(to.provides ?? [])] } : entry,
      );
      const error = t.throws(() => startOrder(closed));
      if (!isCoded(error, 'HF_PLUGIN_CYCLE')) throw error;
      const names = String(error.details.cycle).split(' → ');
      const byName = new Map(closed.map((entry) => [entry.name, entry]));
      const linked = names.slice(1).every((name, index) => {
        const tokens = byName.get(name)?.provides ?? [];
        const needs = byName.get(names[index] ?? '')?.requires ?? [];
        return needs.some((need) => tokens.some((given) => given.name === need.name));
      });
      if (names[0] !== names.at(-1) || !linked) throw new Error(`not a circle: ${names.join(' ')}`);
    }),
  );
  t.pass();
});

test('[C12] plugins that need nothing of each other keep the order of the configuration', (t) => {
  const plugins = [plugin('c', [], []), plugin('a', [], ['x']), plugin('b', ['x'], [])];
  t.deepEqual(startOrder(plugins), plugins);
});

test('[C12] a missing provider is an error that names the plugin and the token', (t) => {
  const error = t.throws(() => startOrder([plugin('reconciler', ['router.api'], [])]));
  t.true(isCoded(error, 'HF_PLUGIN_MISSING'));
  t.regex(String(error?.message), /Plugin reconciler needs router\.api/);
});

test('[C11] two providers of one token are an error that names the token and both plugins', (t) => {
  const error = t.throws(() =>
    startOrder([plugin('router', [], ['router.api']), plugin('fake-router', [], ['router.api'])]),
  );
  t.true(isCoded(error, 'HF_PLUGIN_CONFLICT'));
  t.regex(String(error?.message), /Token router\.api is declared by both router and fake-router/);
});

test('[C11] a plugin that is enabled twice is an error that names both entries', (t) => {
  const error = t.throws(() => startOrder([plugin('a', [], []), plugin('b', [], []), plugin('a', [], [])]));
  t.true(isCoded(error, 'HF_PLUGIN_CONFLICT'));
  t.regex(String(error?.message), /Plugin a is declared by both entry 1 and entry 3/);
});

function reaches(plugins: readonly TokenUser[], from: TokenUser, to: TokenUser): boolean {
  if (from === to) return true;
  const needs = new Set((from.requires ?? []).map(({ name }) => name));
  return plugins.some(
    (entry) => (entry.provides ?? []).some(({ name }) => needs.has(name)) && reaches(plugins, entry, to),
  );
}

test('[C11,C12] a wanted token is provided first where somebody provides it, and missed by nobody', (t) => {
  const wanting = { name: 'wanting', wants: [token('a'), token('nobody')] };
  const giving = plugin('giving', [], ['a']);
  t.deepEqual(startOrder([wanting, giving]), [giving, wanting]);
  t.deepEqual(startOrder([wanting]), [wanting]);
});
