import { QdrantClient } from '@qdrant/js-client-rest';
import test from 'ava';
import { type MemoryRig, rest, startMemory } from './rig.ts';

const POINTS = '/collections/memory/points';
const UUID = '0b3f6c1e-52ad-4c1d-9a8e-0e4fd8f4f001';

let rig: MemoryRig;
const stopping: (() => unknown)[] = [];
test.before(async (t) => {
  rig = await startMemory({ teardown: (end: () => unknown) => void stopping.push(end), log: t.log });
  await rest(rig.url, 'PUT', '/collections/memory', { vectors: { size: 2, distance: 'Cosine' } });
  const payloads = [
    { kind: 'fact', nested: [{ k: 'v', deep: [{ n: 1 }, { n: 2 }] }, { k: 'w' }], 'a.b': 'literal' },
    {
      kind: 'fact',
      nested: [{ k: 'x' }],
      a: { b: 'inner' },
      list: ['one', 'two'],
      lists: [['three'], 'four'],
    },
    { kind: 'person', nested: { k: 'v' }, list: 'one', flag: true, 'with space': 7 },
  ];
  const points = payloads.map((payload, index) => ({ id: index + 1, vector: [1, index], payload }));
  points.push({ id: UUID as never, vector: [0, 1], payload: {} as never });
  const stored = await rest(rig.url, 'PUT', POINTS, { points });
  if (stored.status !== 200) throw new Error(JSON.stringify(stored.body));
});
test.after.always(async () => {
  for (const end of stopping.reverse()) await end();
});

/** Ids of the points that a filter lets pass, as the official client gets them. */
async function found(filter: object): Promise<unknown[]> {
  const client = new QdrantClient({ url: rig.url, checkCompatibility: false });
  const { points } = await client.scroll('memory', { filter: filter as any, limit: 10 });
  const { count } = await client.count('memory', { filter: filter as any });
  const queried = await client.query('memory', { query: [1, 1], filter: filter as any, limit: 10 });
  const ids = points.map(({ id }) => id);
  if (count !== ids.length || queried.points.length !== count) throw new Error('the answers differ');
  return ids;
}

const matching = (key: string, value: unknown) => found({ must: [{ key, match: { value } }] });

test('a key leads into objects by a dot, and into lists by [] or an index, as in the real store', async (t) => {
  t.deepEqual(await matching('nested[].k', 'v'), [1]);
  t.deepEqual(await matching('nested[].k', 'w'), [1]);
  t.deepEqual(await matching('nested[0].k', 'x'), [2]);
  t.deepEqual(await matching('nested[1].k', 'v'), []);
  t.deepEqual(await matching('nested[].deep[].n', 2), [1]);
  t.deepEqual(await matching('nested.k', 'v'), [3], 'a list is not entered without []');
  t.deepEqual(await matching('a.b', 'inner'), [2]);
  t.deepEqual(await matching('"a.b"', 'literal'), [1]);
  t.deepEqual(await matching('a."b"', 'inner'), [2]);
  t.deepEqual(await matching('list', 'one'), [2, 3], 'a list at the end matches by any element');
  t.deepEqual(await matching('list[]', 'two'), [2]);
  t.deepEqual(await matching('lists[]', 'three'), [2]);
  t.deepEqual(await matching('with space', 7), [3]);
  t.deepEqual(await matching('flag', true), [3]);
  t.deepEqual(await matching('toString', 'v'), []);
});

test('filters stand in filters, and one condition needs no list', async (t) => {
  const kind = (value: string) => ({ key: 'kind', match: { value } });
  t.deepEqual(
    await found({ must: kind('fact'), must_not: { key: 'nested[].k', match: { any: ['x', 'y'] } } }),
    [1],
  );
  t.deepEqual(await found({ should: [{ must: [kind('fact'), { has_id: [2] }] }, kind('person')] }), [2, 3]);
  t.deepEqual(await found({ must: [{ must_not: [kind('fact')] }] }), [3, UUID]);
  t.deepEqual(await found({ must: [{ has_id: [UUID.toUpperCase(), 1] }] }), [1, UUID]);
  t.deepEqual(await found({}), [1, 2, 3, UUID]);
});

test('what a filter or a choice of fields means beyond this store is refused by its name, never answered', async (t) => {
  const refused = async (filter: unknown, text: RegExp) => {
    for (const call of ['scroll', 'count', 'query', 'search', 'delete']) {
      const body = {
        filter,
        ...(call === 'query' && { query: [1, 1] }),
        ...(call === 'search' && { vector: [1, 1] }),
      };
      const { status, body: answer } = await rest(rig.url, 'POST', `${POINTS}/${call}`, body);
      t.is(status, 400, `${call} ${JSON.stringify(filter)}`);
      t.regex(answer.status.error, text, `${call} ${JSON.stringify(filter)}`);
      t.notRegex(answer.status.error, /expected array|Invalid input|Unrecognized/);
    }
  };
  const match = { value: 1 };
  await refused(
    { must: [{ key: 'n', range: { gt: 1 } }] },
    /filter\.must\.0: condition `range` is not supported/,
  );
  await refused({ must: { key: 'n', range: { gt: 1 } } }, /filter\.must: condition `range` is not supported/);
  for (const name of ['is_empty', 'is_null', 'has_vector', 'nested', 'geo_radius', 'values_count']) {
    await refused({ should: [{ [name]: { key: 'n' } }] }, new RegExp(`\`${name}\` is not supported`));
  }
  for (const name of ['text', 'text_any', 'phrase', 'except']) {
    await refused(
      { must: [{ key: 'n', match: { [name]: ['x'] } }] },
      new RegExp(`match \`${name}\` is not supported`),
    );
  }
  await refused({ min_should: { conditions: [], min_count: 1 } }, /`min_should` is not supported/);
  await refused(
    { must: [{ must: [{ key: 'n', geo_polygon: {} }] }] },
    /filter\.must\.0\.must\.0: condition `geo_polygon`/,
  );
  await refused({ must: [{ key: 'n' }] }, /filter\.must\.0\.match: it is missing/);
  await refused({ must: [{ match }] }, /filter\.must\.0\.key: a condition names the payload key/);
  await refused({ must: [{ key: 'n', match: {} }] }, /match: it is empty/);
  await refused({ must: [{ key: 'n', match: { value: 1, any: [1] } }] }, /both `value` and `any`/);
  for (const wrong of [0.5, -1.25, 1e-7]) {
    await refused({ must: [{ key: 'n', match: { value: wrong } }] }, /must\.0\.match\.value: .*no fraction/);
    await refused({ must: [{ key: 'n', match: { any: [1, wrong] } }] }, /must\.0\.match\.any: .*no fraction/);
  }
  // JSON.parse rounds such integers: 2^53 + 1 would match a point that has 2^53.
  for (const wrong of [2 ** 53, -(2 ** 53), 1e300]) {
    await refused({ must: [{ key: 'n', match: { value: wrong } }] }, /beyond ±\(2\^53 − 1\)/);
    await refused({ must_not: { key: 'n', match: { any: [wrong] } } }, /beyond ±\(2\^53 − 1\)/);
  }
  await refused(
    { must: [{ key: 'n', match: { value: null } }] },
    /`value` takes a text, a number or a boolean/,
  );
  await refused({ must: [{ key: 'n', match: { any: 'x' } }] }, /`any` takes a list/);
  await refused({ must: [{ has_id: 'x' }] }, /has_id: it is a list of point ids/);
  await refused({ must: [{ has_id: [1], key: 'n', match }] }, /`has_id` stands alone/);
  await refused({ must: ['n'] }, /filter\.must\.0: a condition is an object/);
  await refused([], /filter: a filter is an object/);
  for (const key of [
    '',
    '.',
    'a..b',
    'a.',
    '.a',
    'a[',
    'a[x]',
    'a[-1]',
    '[].a',
    'a[]b',
    '"a',
    'a"b"',
    'a.[0]',
  ]) {
    await refused({ must: [{ key, match }] }, /key: `.*` is no path into a payload/);
  }
  t.is((await rest(rig.url, 'POST', `${POINTS}/count`, {})).body.result.count, 4, 'nothing was deleted');
});

test('fields that cannot be chosen are refused, not left out of the answer', async (t) => {
  const chosen = async (with_payload: unknown) =>
    rest(rig.url, 'POST', `${POINTS}/scroll`, { limit: 1, with_payload });
  t.deepEqual((await chosen(['kind'])).body.result.points[0].payload, { kind: 'fact' });
  for (const [given, text] of [
    [['nested[].k'], /with_payload: it is .* fields at the top/],
    [['a.b'], /with_payload: it is .* fields at the top/],
    [{ include: ['kind'] }, /with_payload: `include` is not supported/],
    ['kind', /with_payload: it is true, false or a list/],
  ] as const) {
    const { status, body } = await chosen(given);
    t.is(status, 400);
    t.regex(body.status.error, text);
  }
  for (const [given, text] of [
    [{}, /either `points` or a `filter`/],
    [{ filter: null }, /either `points` or a `filter`/],
    [{ points: [1], filter: {} }, /either `points` or a `filter`/],
  ] as const) {
    const { status, body } = await rest(rig.url, 'POST', `${POINTS}/delete`, given);
    t.is(status, 400);
    t.regex(body.status.error, text);
  }
});
