import test from 'ava';
import fc from 'fast-check';
import { ticksOf, timeTicksOf } from '../../../src/plugins/console/web/components/scale.ts';
import { openNodes, preciseLength, treeOf } from '../../../src/plugins/console/web/components/span-tree.ts';
import { runs } from '../../support/runs.ts';

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const spans = fc.array(
  fc.record(
    {
      id,
      parent: id,
      name: fc.string(),
      by: fc.constantFrom('shop', 'stock'),
      start: fc.integer({ min: 0, max: 1_000 }),
      duration: fc.integer({ min: 0, max: 100 }),
      status: fc.constant('failing' as const),
    },
    { requiredKeys: ['id', 'name', 'by', 'start', 'duration'] },
  ),
  { maxLength: 30 },
);

test('[C15] every span of a trace is drawn once, whatever it says that it is a part of', (t) => {
  fc.assert(
    fc.property(spans, (given) => {
      const tree = treeOf(given);
      t.is(tree.nodes.length, given.length);
      const drawn = new Set(tree.nodes.map(({ span }) => span));
      t.true(given.every((span) => drawn.has(span)));
      t.is(new Set(tree.nodes.map(({ key }) => key)).size, given.length);
      t.is(openNodes(tree, new Set()).length, given.length);
      const roots = tree.nodes.filter(({ parent }) => !parent);
      t.deepEqual(
        openNodes(tree, new Set(tree.nodes.map(({ key }) => key))),
        roots,
        'what is folded hides its parts',
      );
      const failed = given.some(({ status }) => status === 'failing');
      t.is(tree.origins.length > 0, failed, 'a failure began somewhere');
    }),
    { numRuns: runs(200) },
  );
});

test('[C15] spans stand below what they are a part of, those first that began first', (t) => {
  const span = (of: string, start: number, parent?: string) => ({
    ...{ id: of, name: of, by: 'shop', start, duration: 1 },
    ...(parent !== undefined && { parent }),
  });
  const { nodes } = treeOf([
    span('d', 4, 'a'),
    span('b', 2, 'a'),
    span('a', 1),
    span('c', 3, 'b'),
    span('x', 0, 'y'),
  ]);
  t.deepEqual(
    nodes.map(({ span: { name }, depth }) => [name, depth]),
    [
      ['x', 0],
      ['a', 0],
      ['b', 1],
      ['c', 2],
      ['d', 1],
    ],
  );
  t.is(
    treeOf(Array.from({ length: 3_000 }, (_, index) => span(`${index}`, index, `${index - 1}`))).nodes.at(-1)
      ?.depth,
    2_999,
  );
  t.deepEqual([0.34, 1.25, 2_140].map(preciseLength), ['340 µs', '1.25 ms', '2.14 s']);
});

test('[C15] axes have few round numbers within their ends', (t) => {
  t.deepEqual(ticksOf(0, 1_900, 4), [0, 500, 1_000, 1_500]);
  t.deepEqual(ticksOf(3, 3, 4), [3]);
  t.deepEqual(ticksOf(0, Number.NaN, 4), [0]);
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: 1, max: 1e9 }), (low, span) => {
      const ticks = ticksOf(low, low + span, 5);
      t.true(ticks.length >= 1 && ticks.length <= 6);
      t.true(ticks.every((tick) => tick >= low - 1e-3 && tick <= low + span + 1e-3));
    }),
    { numRuns: runs(200) },
  );
  const hour = Date.UTC(2026, 8, 1, 12);
  t.is(timeTicksOf(hour, hour + 3_600_000, 6).length, 7, 'each ten minutes');
});
