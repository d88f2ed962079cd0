import test from 'ava';
import { Story } from '../../../src/core/host/testing/story.ts';
import { type RouteFacts, type RoutesContext, routes } from '../../../src/machines/gateway/routes.ts';

const facts = (name: string, version: number): RouteFacts => ({
  name,
  fingerprint: `fp_${name}_${version}`,
  disposition: 'overwrite',
  upstream: `https://${name}/${version}`,
  settings: { url: String(version), timeoutMs: 'same' },
});
const loaded = (routes: RouteFacts[], rejected: object[] = [], at = 1_000) => ({
  type: 'LOADED' as const,
  at,
  origin: 'changed' as const,
  routes,
  rejected: rejected as never,
});
const bad = (name: string) => ({ name, route: name.replaceAll('-', '_'), reason: 'it is bad' });
const rollback = (route: string, to?: number) => ({
  type: 'ROLLBACK' as const,
  at: 9_000,
  route,
  ...(to !== undefined && { to }),
});

/** What serves after the events, by name, and what the last one asked for. */
function after(...events: readonly object[]) {
  let story = Story.begin(routes, undefined);
  for (const event of events) story = story.next(event as never);
  const context = story.step.context as unknown as RoutesContext;
  const serving = Object.entries(context.routes).flatMap(([name, state]) =>
    state.serving ? [[name, state.serving.fingerprint]] : [],
  );
  return { context, serving: Object.fromEntries(serving) as Record<string, string>, effects: story.effects };
}

test('[G24] each change raises the revision and is told by the settings that differ; reading the same changes nothing', (t) => {
  const one = after(loaded([facts('a', 1), facts('b', 1)]));
  t.is(one.context.revision, 1);
  const same = after(loaded([facts('a', 1), facts('b', 1)]), loaded([facts('b', 1), facts('a', 1)]));
  t.is(same.context.revision, 1);
  const two = after(loaded([facts('a', 1), facts('b', 1)]), loaded([facts('a', 2), facts('c', 1)]));
  t.is(two.context.revision, 2);
  t.deepEqual(two.context.changes, [
    { name: 'a', what: 'changed', settings: ['url'] },
    { name: 'c', what: 'added' },
    { name: 'b', what: 'removed' },
  ]);
  t.deepEqual(two.serving, { a: 'fp_a_2', c: 'fp_c_1' });
});

test('[G2] a bad entry leaves the last good one of its route serving, with a hyphen or without; a new one is left out', (t) => {
  const { context, serving } = after(
    loaded([facts('library_docs', 1), facts('b', 1)]),
    loaded([facts('b', 2)], [bad('library-docs'), bad('c')]),
  );
  t.deepEqual(serving, { library_docs: 'fp_library_docs_1', b: 'fp_b_2' });
  t.is(context.routes.library_docs?.problem, 'it is bad');
  const fixed = after(loaded([facts('a', 1)]), loaded([], [bad('a')]), loaded([facts('a', 1)]));
  t.is(fixed.context.routes.a?.problem, undefined);
  t.is(fixed.context.revision, 1);
});

test('[G24] a rollback brings back what served before, holds until the entry changes, and can be taken back', (t) => {
  const changed = [loaded([facts('a', 1)]), loaded([facts('a', 2)])];
  const back = after(...changed, rollback('a'));
  t.is(back.serving.a, 'fp_a_1');
  t.is(back.context.revision, 3);
  t.true(back.context.routes.a?.pinned);
  t.deepEqual(back.context.changes, [{ name: 'a', what: 'rolled_back', settings: ['url'] }]);
  const restarted = after(...changed, rollback('a'), loaded([facts('a', 2)]));
  t.is(restarted.serving.a, 'fp_a_1');
  const next = after(...changed, rollback('a'), loaded([facts('a', 3)]));
  t.is(next.serving.a, 'fp_a_3');
  t.is(next.context.routes.a?.pinned, undefined);
  const twice = after(...changed, rollback('a'), rollback('a'));
  t.is(twice.serving.a, 'fp_a_2');
  t.is(twice.context.routes.a?.pinned, undefined);
});

test('[G24] a route that was taken out can be rolled back, and one of several revisions can be named', (t) => {
  const removed = after(loaded([facts('a', 1)]), loaded([]), rollback('a'));
  t.is(removed.serving.a, 'fp_a_1');
  const still = after(loaded([facts('a', 1)]), loaded([]), rollback('a'), loaded([]));
  t.is(still.serving.a, 'fp_a_1');
  const history = [1, 2, 3].map((version) => loaded([facts('a', version)]));
  t.is(after(...history, rollback('a', 1)).serving.a, 'fp_a_1');
  t.is(after(...history, rollback('a', 2)).serving.a, 'fp_a_2');
});

test('[G24] what can not be rolled back is refused with the reason, and changes nothing', (t) => {
  for (const [event, reason] of [
    [rollback('nobody'), 'there is no route nobody'],
    [rollback('constructor'), 'there is no route constructor'],
    [rollback('a'), 'nothing served as a before'],
    [rollback('a', 7), 'a did not change in revision 7'],
  ] as const) {
    const { context, effects } = after(loaded([facts('a', 1)]), event);
    t.is(context.revision, 1);
    t.deepEqual(effects, [{ type: 'http.reply', params: { status: 409, body: { reason, revision: 1 } } }]);
  }
});

test('[G2] a rejected entry is told once, and a refused file each time, without a change of what serves', (t) => {
  const first = after(loaded([facts('a', 1)]), loaded([], [bad('a')]));
  t.deepEqual(
    first.effects.map(({ type }) => type),
    ['alerts.raise', 'gateway.serve_routes'],
  );
  const both = after(loaded([facts('a', 1)]), loaded([], [bad('a'), bad('b')]));
  t.like(both.effects[0]?.params, { name: 'gateway.routes_rejected', labels: { entries: 'a,b' } });
  const again = after(loaded([facts('a', 1)]), loaded([], [bad('a')]), loaded([], [bad('a')]));
  t.deepEqual(
    again.effects.map(({ type }) => type),
    ['gateway.serve_routes'],
  );
  const refused = after(loaded([facts('a', 1)]), { type: 'REFUSED', at: 2, origin: 'changed', reason: 'no' });
  t.deepEqual(refused.serving, { a: 'fp_a_1' });
  t.is(refused.context.refused?.reason, 'no');
  t.is(
    after(
      loaded([facts('a', 1)]),
      { type: 'REFUSED', at: 2, origin: 'changed', reason: 'no' },
      loaded([facts('a', 1)]),
    ).context.refused,
    undefined,
  );
});

/** A rollback as every host takes it, at its place among the messages. */
const everywhere = (order: number, source: number, to: number) => ({
  ...rollback('a'),
  ...{ order, source: `fp_a_${source}`, fingerprint: `fp_a_${to}` },
});
const heardOf = (order: number, source: number, to: number) => ({
  type: 'ROLLBACKS_HEARD' as const,
  ...{ at: 9_000, from: 'attic' },
  rollbacks: { a: { order, source: `fp_a_${source}`, fingerprint: `fp_a_${to}` } },
});
const three = [1, 2, 3].map((version) => loaded([facts('a', version)]));

test('[C13,G24] a rollback that a host hears of serves at once, in a new revision', (t) => {
  const { serving, context, effects } = after(...three, heardOf(4, 3, 1));
  t.is(serving.a, 'fp_a_1');
  t.true(context.routes.a?.pinned);
  t.deepEqual(effects, [{ type: 'gateway.serve_routes', params: { revision: 4 } }]);
});

test('[C13,G24] a rollback that comes or is heard of again after a later one changes nothing', (t) => {
  for (const again of [everywhere(4, 3, 1), heardOf(4, 3, 1)]) {
    const { serving, effects } = after(...three, everywhere(4, 3, 1), everywhere(5, 3, 2), again);
    t.is(serving.a, 'fp_a_2', again.type);
    t.deepEqual(effects, [], again.type);
  }
});

test('[C13,G24] a rollback of an entry that this host does not have changes nothing here, and the operator is told', (t) => {
  const { serving, context, effects } = after(...three, everywhere(4, 9, 1));
  t.is(serving.a, 'fp_a_3');
  t.is(context.revision, 3);
  t.like(effects[0], { type: 'http.reply', params: { status: 409 } });
  const heard = after(...three, everywhere(4, 3, 1), heardOf(5, 9, 2));
  t.is(heard.serving.a, 'fp_a_1');
  t.is(heard.context.routes.a?.rollback?.order, 4, 'its own still holds');
});
