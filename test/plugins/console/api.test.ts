import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import { newestOfActors } from '../../../src/core/host/history/actor-records.ts';
import { Moments } from '../../../src/core/host/history/moments.ts';
import { shownState } from '../../../src/core/host/history/shown.ts';
import { HOST } from '../../../src/core/host/lifecycle/records.ts';
import { stateName } from '../../../src/core/host/terminal.ts';
import { momentSteps } from '../../../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { busyDoors, CANARY, DOORS, doors, ROUNDS } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';

interface Shared {
  readonly rig: ConsoleRig;
  readonly last: number;
}
const shared: { of?: Shared } = {};
const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };

test.before(async () => {
  const rig = await ConsoleRig.start(scope, { dataDir: tempDir(scope), others: [doors()] });
  await rig.login();
  shared.of = { rig, last: await busyDoors(rig) };
});

test.after.always(async () => {
  for (const end of ends) await end();
});

function of(): Shared {
  if (!shared.of) throw new Error('nothing was started');
  return shared.of;
}

test('[C15] every path of the API answers as its OpenAPI document says', async (t) => {
  const { rig, last } = of();
  const document = await rig.ask('/api/openapi.json');
  t.is(document.openapi, '3.1.1');
  const values: Readonly<Record<string, string>> = {
    seq: String(last - 3),
    id: 'test.door/door-1',
    type: 'test.door',
    name: 'doors',
  };
  const { stories } = await rig.ask('/api/stories?limit=1');
  const queries: Readonly<Record<string, string>> = {
    '/api/records/at': `?time=${Date.now()}`,
    '/api/compare': `?from=3&to=${last}`,
    '/api/changes': '?actor=test.door%2Fdoor-1&path=by',
  };
  const ajv = new Ajv2020({ strict: false, formats: { uuid: true } });
  ajv.addSchema(document, 'api');
  let checked = 0;
  for (const [path, { get }] of Object.entries<any>(document.paths)) {
    if (!get || path === '/api/events') continue;
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      path.includes('/stories/') ? stories[0].id : (values[name] ?? ''),
    );
    const answer = await rig.ask(filled + (queries[path] ?? ''));
    const place = `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/get/responses/200/content/application~1json/schema`;
    const validate = ajv.compile({ $ref: `api#${encodeURI(place)}` });
    t.true(validate(answer), `${path}: ${ajv.errorsText(validate.errors)}`);
    checked += 1;
  }
  t.true(checked >= 16);
});

test('[C15] pages hold every record once, in both directions, and never what came after the moment', async (t) => {
  const { rig, last } = of();
  const moment = last - 7;
  const back: number[] = [];
  for (let before = ''; ; ) {
    const { records, next } = await rig.ask(`/api/records?limit=30&at=${moment}${before}`);
    back.push(...records.map(({ seq }: { seq: number }) => seq));
    if (next === undefined) break;
    before = `&before=${next}`;
  }
  t.deepEqual(
    back,
    Array.from({ length: moment }, (_, index) => moment - index),
  );
  const forth: number[] = [];
  for (let after = 0; ; ) {
    const { records, next } = await rig.ask(`/api/records?limit=30&at=${moment}&after=${after}`);
    forth.push(...records.map(({ seq }: { seq: number }) => seq));
    if (next === undefined) break;
    after = next;
  }
  t.deepEqual(forth, back.toReversed());
});

test('[C15] filters find the records that they name, and a story is listed once', async (t) => {
  const { rig, last } = of();
  const failed = await rig.askAll('/api/records?failed=true&limit=500');
  t.true(failed.length > 10);
  t.true(failed.every((row: any) => row.failed && row.text.startsWith('lamp.on failed')));
  const knocks = await rig.askAll('/api/records?event=KNOCK&actor=door-2&limit=500');
  t.is(knocks.length, ROUNDS / DOORS);
  const found = await rig.askAll('/api/records?text=GUEST-17&limit=500');
  t.true(found.length > 0 && found.every(({ text }: any) => text.includes('guest-17')));

  const ids: string[] = [];
  for (let before = ''; ; ) {
    const { stories, next } = await rig.ask(`/api/stories?limit=7&at=${last}${before}`);
    ids.push(...stories.map(({ id }: { id: string }) => id));
    if (next === undefined) break;
    before = `&before=${next}`;
  }
  const all = await Array.fromAsync(new SqliteReader(rig.dataDir).read({ to: last }));
  const newestFirst = [...new Set(all.toReversed().map(({ correlation }) => correlation))];
  t.deepEqual(ids, newestFirst);

  const opening = all.find(({ event }) => event.type === 'OPEN' && event.by === 'guest-17');
  const stories = await rig.askAll('/api/stories?failed=true&limit=200');
  const told = stories.find(({ id }: any) => id === opening?.correlation);
  t.regex(told.failure, /^lamp\.on failed/, 'a story says what failed in it');
  t.false(told.title.startsWith('lamp.on failed'));
  const story = await rig.ask(`/api/stories/${opening?.correlation}`);
  t.deepEqual(
    story.spans.map(({ kind, type, outcome }: any) => [kind, type, outcome]),
    [
      ['effect', 'lamp.on', 'failed'],
      ['timer', 'closing', 'cancelled'],
    ],
  );
});

test('[C15] filters leave out what has a minus, take expressions, and keep to a part of the log', async (t) => {
  const { rig, last } = of();
  const rows = (query: string) => rig.askAll(`/api/records?limit=500&at=${last}&${query}`);
  const all = await rows('text=guest');
  const found = (text: string) => rows(`text=${encodeURIComponent(text)}`);
  t.deepEqual(
    (await found('guest -"guest-17"')).map(({ seq }: any) => seq),
    all.filter(({ text }: any) => !text.includes('guest-17')).map(({ seq }: any) => seq),
  );
  const ones = await found('/guest-3[0-3]\\b/');
  t.deepEqual(new Set(ones.map(({ text }: any) => /guest-\d+/.exec(text)?.[0])).size, 3, 'no stranger');
  t.deepEqual(await found('GUEST-17'), await found('guest-17'));
  t.deepEqual(await found('/GUEST-17/'), []);
  const others = await rows('actor=-door-1');
  t.true(others.length > 0 && others.every(({ actor }: any) => actor !== 'test.door/door-1'));
  t.true((await rows('event=-KNOCK&actor=door-2')).every(({ event }: any) => event !== 'KNOCK'));
  t.true((await rows('outcome=ignored')).every(({ ignored }: any) => ignored));
  t.true((await rows('outcome=failed')).length > 10);
  const part = await rows('from=20&to=40');
  t.deepEqual([part.at(-1).seq, part[0].seq], [20, 40]);

  const stories = (query: string) => rig.askAll(`/api/stories?limit=200&at=${last}&${query}`);
  const without = await stories(`text=${encodeURIComponent('-guest-17')}`);
  t.is(without.length, (await stories('')).length - 1, 'a story is left out as a whole');
  t.false((await stories('actor=-door-1')).some(({ actors }: any) => actors.includes('test.door/door-1')));
  const within = await stories('from=20&to=40');
  t.true(within.length > 0 && within.every(({ first, last: end }: any) => first <= 40 && end >= 20));
  const pages: string[] = [];
  for (let before = ''; ; ) {
    const page = await rig.ask(`/api/stories?limit=3&from=20&to=40&at=${last}${before}`);
    pages.push(...page.stories.map(({ id }: any) => id));
    if (page.next === undefined) break;
    before = `&before=${page.next}`;
  }
  t.deepEqual(
    pages,
    within.map(({ id }: any) => id),
  );
  // What would take years by an engine that goes back is refused, or answered at once.
  for (const text of ['/(a+)\\1b/', '/(?=a)b/', '/(/', '/a/i', '""', `/${'a'.repeat(300)}/`])
    t.is((await rig.send(`/api/records?text=${encodeURIComponent(text)}`)).status, 400, text);
  t.deepEqual(await found('/(a*)*(a*)*(a*)*b$/'), []);
});

test('[C15] the records that changed a value are found in both directions, with what it was', async (t) => {
  const { rig, last } = of();
  const asked = `/api/changes?actor=test.door%2Fdoor-1&at=${last}&limit=3`;
  const back: any[] = [];
  for (let before = ''; ; ) {
    const { changes, next } = await rig.ask(`${asked}&path=by${before}`);
    back.push(...changes);
    if (next === undefined) break;
    before = `&before=${next}`;
  }
  const forth: any[] = [];
  for (let after = 0; ; ) {
    const { changes, next } = await rig.ask(`${asked}&path=by&after=${after}`);
    forth.push(...changes);
    if (next === undefined) break;
    after = next;
  }
  t.deepEqual(forth, back.toReversed());
  t.true(back.length > 3);
  for (const [index, { seq, from, to }] of back.entries()) {
    const { changes } = await rig.ask(`/api/records/${seq}`);
    t.deepEqual(
      changes.filter(({ path }: any) => path === 'by').map((one: any) => [one.from, one.to]),
      [[from, to]],
    );
    t.is(from, back[index + 1]?.to, 'no record between them changed it');
  }
  t.is((await rig.send('/api/changes?actor=test.door%2Fdoor-1&path=a..b')).status, 400);
});

test('[C15] a record says which guards were asked, and which let it pass', async (t) => {
  const { rig } = of();
  const [opening] = await rig.askAll('/api/records?event=OPEN&text=guest-17');
  t.deepEqual((await rig.ask(`/api/records/${opening.seq}`)).candidates, [
    { state: 'closed', guard: 'known', target: 'open', taken: true },
  ]);
  const [refused] = await rig.askAll('/api/records?event=OPEN&outcome=ignored');
  t.deepEqual((await rig.ask(`/api/records/${refused.seq}`)).candidates, [
    { state: 'closed', guard: 'known', target: 'open', taken: false },
  ]);
});

test('[C15] the state of every actor at 50 records is that of the log run again', async (t) => {
  const { rig, last } = of();
  const reader = new SqliteReader(rig.dataDir);
  t.teardown(() => reader.close());
  // A fixed draw over the whole log, forth and back, so that moments build on one another.
  const seqs = Array.from({ length: 50 }, (_, index) => 1 + ((index * 7_919) % last));
  for (const seq of seqs) {
    const steps = momentSteps(reader, seq);
    let step = steps.next();
    while (!step.done) step = steps.next();
    const { actors } = step.value;
    const listed = await rig.ask(`/api/actors?at=${seq}&limit=500`);
    t.is(listed.at, seq);
    t.deepEqual(
      listed.actors.map(({ id, state, lastSeq }: any) => [id, state, lastSeq]),
      actors.map((state) => [state.ref, stateName(state.value), state.seq]),
    );
    const state = actors.at(seq % actors.length);
    if (!state) continue;
    const shown = await rig.ask(`/api/actors/${encodeURIComponent(state.ref)}?at=${seq}`);
    t.deepEqual(shown.context, JSON.parse(JSON.stringify(shownState(state).context)));
    t.deepEqual(
      shown.effects.map(({ id }: any) => id),
      Object.keys(state.effects),
    );
    t.deepEqual(
      shown.timers.map(({ id }: any) => id),
      Object.values(state.timers).map(({ id }) => id),
    );
  }
});

test('[C15] a page reads the newest records of its actors, as many as it asks for, and none after its moment', async (t) => {
  const { rig, last } = of();
  const reader = new SqliteReader(rig.dataDir);
  t.teardown(() => reader.close());
  const all = (await Array.fromAsync(reader.read({ to: last }))).toReversed();
  t.true(all.filter(({ actor }) => actor.startsWith('test.door/')).length > 128);
  const doorRefs = Array.from({ length: DOORS }, (_, index) => `test.door/door-${index}`);
  const moments = new Moments();
  const signal = AbortSignal.timeout(PATIENCE_MS);
  for (const seq of [last, last - 30, 20]) {
    const { actors } = await moments.at(reader, seq, signal);
    const states = new Map(actors.map((state) => [state.ref, state]));
    for (const limit of [1, 7, 10_000]) {
      for (const events of [undefined, ['OPEN'], ['OPEN', 'RANG']]) {
        const question = { log: reader, signal, enoughAt: Number.POSITIVE_INFINITY };
        const wanted = { actors: doorRefs, limit, ...(events && { events }) };
        const { records, more } = await newestOfActors(question, { seq, states }, wanted);
        const matching = all.filter(
          (one) =>
            one.seq <= seq && doorRefs.includes(one.actor) && (events?.includes(one.event.type) ?? true),
        );
        t.deepEqual(records, matching.slice(0, limit));
        t.true(more || matching.length <= limit);
        t.false(more && limit === 10_000);
      }
    }
    const late = { log: reader, signal, enoughAt: 0 };
    const found = await newestOfActors(late, { seq, states }, { actors: doorRefs, limit: 10_000 });
    const matching = all.filter((one) => one.seq <= seq && doorRefs.includes(one.actor));
    t.deepEqual(found, { records: matching.slice(0, 128), more: matching.length > 128 }, 'time is over');
  }
});

test('[C15] a long story comes in parts, which together are the whole of it', async (t) => {
  const { rig, last } = of();
  const failed = await rig.askAll(`/api/records?failed=true&at=${last}`);
  const path = `/api/stories/${failed[0].correlation}`;
  const whole = await rig.ask(`${path}?at=${last}`);
  t.is(whole.next, undefined);
  const [records, spans] = [[], []] as [any[], any[]];
  for (let after = ''; ; ) {
    const part = await rig.ask(`${path}?at=${last}&limit=1${after}`);
    t.is(part.title, whole.title);
    records.push(...part.records);
    spans.push(...part.spans);
    for (const { id, ...end } of part.ends) {
      const span = spans.find((one) => one.id === id);
      t.is(span.outcome, undefined, 'it was open until then');
      Object.assign(span, end);
    }
    if (part.next === undefined) break;
    after = `&after=${part.next}`;
  }
  t.deepEqual(records, whole.records);
  t.deepEqual(spans, whole.spans);
  t.true(spans.some(({ outcome }) => outcome === 'failed'));
});

test('[C15] density counts every record once, and the failed ones', async (t) => {
  const { rig, last } = of();
  const { buckets } = await rig.ask(`/api/density?buckets=13&to=${last}`);
  const sum = (field: string) => buckets.reduce((total: number, bucket: any) => total + bucket[field], 0);
  t.is(sum('records'), last);
  const records = await rig.askAll(`/api/records?failed=true&limit=500&at=${last}`);
  t.is(sum('failed'), records.length);
  t.is(buckets[0].first, 1);
});

test('[C15] hostile parameters are refused, and nothing of them is carried out', async (t) => {
  const { rig } = of();
  const refused = [
    '/api/records?at=-1',
    '/api/records?at=1e3',
    '/api/records?at=0',
    '/api/records?limit=501',
    '/api/records?limit=1&limit=2',
    '/api/records?unknown=1',
    '/api/records?text=',
    `/api/records?actor=${'a'.repeat(600)}`,
    '/api/records?at=999999999',
    '/api/records/0',
    '/api/records/1%20OR%201',
    '/api/records/999999999',
    '/api/density?buckets=100000',
    '/api/events?after=x',
  ];
  for (const path of refused) {
    const { status, body } = await rig.send(path);
    t.true(status === 400 || status === 404, `${path} ${status}`);
    t.regex(body.error.code, /^HF_/);
    t.truthy(body.error.action);
  }
  for (const path of [
    '/api/actors/nobody%2Fhere',
    '/api/stories/none',
    '/api/nothing',
    '/assets/..%2f..%2f..%2fpackage.json',
  ])
    t.is((await rig.send(path)).status, 404, path);
  for (const path of ['/..%2f..%2fpackage.json', '/%2e%2e/%2e%2e/package.json', '/assets/%00'])
    t.false((await rig.send(path)).text.includes('"dependencies"'), path);
  const stars = await rig.ask(`/api/records?actor=${encodeURIComponent('*a'.repeat(200))}`);
  t.deepEqual(stars.records, []);
});

test('[C15] what strangers wrote is data, and secrets are nowhere', async (t) => {
  const { rig } = of();
  const records = await rig.askAll('/api/records?text=onerror');
  const answers = [JSON.stringify(records)];
  for (const { seq } of records) answers.push(JSON.stringify(await rig.ask(`/api/records/${seq}`)));
  answers.push(JSON.stringify(await rig.ask('/api/actors/test.door%2Fdoor-1')));
  answers.push(JSON.stringify(await rig.ask(`/api/stories/${records[0].correlation}`)));
  answers.push(JSON.stringify(await rig.askAll('/api/stories?text=onerror')));
  t.true(answers.join('').includes('[redacted]'));
  t.false(answers.join('').includes(CANARY));
  const { headers } = await rig.send('/api/records?text=onerror');
  t.regex(String(headers['content-type']), /^application\/json/);
  t.is(headers['x-content-type-options'], 'nosniff');
});

test('[C15] two moments are compared, and the overview of the past does not claim to know everything', async (t) => {
  const { rig, last } = of();
  const opening = (await rig.askAll('/api/records?event=OPEN&text=guest-17'))[0];
  const { actors, differing } = await rig.ask(`/api/compare?from=${opening.seq - 1}&to=${opening.seq}`);
  t.is(differing, 1);
  t.like(actors[0], { id: 'test.door/door-1', change: 'changed', stateFrom: 'closed', stateTo: 'open' });
  t.deepEqual(
    actors[0].changes.map(({ path }: any) => path),
    ['opened', 'by'],
  );
  const record = await rig.ask(`/api/records/${opening.seq}`);
  t.deepEqual(record.changes, actors[0].changes);
  t.is(
    (await rig.ask(`/api/compare?from=1&to=${last}`)).actors.filter(({ change }: any) => change === 'new')
      .length > 0,
    true,
  );
  const now = await rig.ask('/api/overview');
  t.true(now.items.some(({ name, status }: any) => name === 'log' && status === 'ok'));
  t.true(now.items.some(({ name, status }: any) => name === 'plugin test' && status === 'ok'));
  t.is((await rig.ask(`/api/overview?at=${opening.seq}`)).status, 'unknown');
});

test('[C15] what-if names the decisions that differ', async (t) => {
  const { rig } = of();
  const opening = (await rig.askAll('/api/records?event=OPEN&text=guest-17'))[0];
  const send = (body: object) => rig.send('/api/what-if', { method: 'POST', body });
  const { status, body } = await send({ drop: [opening.seq], until: opening.seq + 1 });
  t.is(status, 200);
  t.deepEqual(body.differences.map(({ seq, kind }: any) => [seq, kind]).slice(0, 1), [
    [opening.seq, 'dropped'],
  ]);
  const altered = await send({
    alter: [{ seq: opening.seq, event: { by: 'stranger' } }],
    until: opening.seq,
  });
  t.like(altered.body.differences[0], { seq: opening.seq, kind: 'decided' });
  const inserted = await send({
    insert: [{ after: opening.seq, actor: 'test.door/door-1', event: { type: 'CLOSE' } }],
    until: opening.seq + 1,
  });
  t.true(inserted.body.differences.some(({ kind }: any) => kind === 'inserted'));
  for (const wrong of [
    {},
    { drop: [0] },
    { drop: Array(21).fill(1) },
    { insert: [{ after: 1, actor: 'x', event: {} }] },
  ])
    t.is((await send(wrong)).status, 400, JSON.stringify(wrong));
});

test('[C15] an action runs the operation of its command, is recorded with who did it, and never in the past', async (t) => {
  const { rig } = of();
  const { actions } = await rig.ask('/api/actions');
  t.like(actions[0], { name: 'knock', confirm: 'Knocks at a door.' });
  const send = (name: string, body: object) => rig.send(`/api/actions/${name}`, { method: 'POST', body });
  const { status, body } = await send('knock', { fields: { door: 'door-1', wait: '2m' } });
  t.is(status, 200);
  t.like(body, { done: true, answer: { wait: 120_000, by: 'ada' } });
  await rig.durable();
  const records = await rig.askAll('/api/records?actor=console.access&event=ACTED');
  t.regex(records[0].text, /^ada starts knock/);
  for (const [name, wrong, expected] of [
    ['knock', { fields: { door: 'door-1' }, at: 3 }, 409],
    ['knock', { fields: {} }, 400],
    ['knock', { fields: { door: 'door-9' } }, 400],
    ['knock', { fields: { door: 'door-1', wait: 'long' } }, 400],
    ['knock', { fields: { door: 'door-1', more: 'x' } }, 400],
    ['another', { fields: {} }, 404],
  ] as const)
    t.is((await send(name, wrong)).status, expected, JSON.stringify(wrong));
  const { happened } = await rig.ask('/api/happened');
  t.true(
    happened.some(({ kind, actor }: any) => kind === 'act' && actor === 'test.door/door-1'),
    'done by hand',
  );
  t.is(
    (await rig.askAll('/api/records?actor=console.access&event=ACTED')).length,
    1,
    'refused ones are none',
  );
});

test("[C15] a plugin's page is drawn from any moment, redacted", async (t) => {
  const { rig, last } = of();
  const inputs = [{ name: 'state', title: 'State', kind: 'choice', choices: ['all', 'none'], value: 'all' }];
  t.deepEqual((await rig.ask('/api/pages')).pages, [
    { name: 'doors', title: 'Doors', area: 'test', inputs, isListed: true, isCostly: false },
  ]);
  const [before, then] = [
    await rig.ask('/api/pages/doors?at=3'),
    await rig.ask(`/api/pages/doors?at=${last}`),
  ];
  t.true(before.sections[0].rows.length < then.sections[0].rows.length);
  t.is(then.sections[0].rows.length, DOORS);
  t.false(JSON.stringify(then).includes(CANARY));
  t.deepEqual(
    (await rig.ask(`/api/pages/doors?at=${last}&state=none`)).sections[0].rows,
    [],
    'it is filled in',
  );
  for (const wrong of ['state=open', 'room=hall', 'state=all&state=none'])
    t.is((await rig.send(`/api/pages/doors?${wrong}`)).status, 400, wrong);
});

test('[C15] what happened lists what failed and what was done by hand, what is alike as one, and nothing later', async (t) => {
  const { rig, last } = of();
  const { happened, more } = await rig.ask(`/api/happened?at=${last}`);
  t.is(more, 0);
  const of1 = happened.filter(({ actor, kind }: any) => actor === 'test.door/door-1' && kind === 'problem');
  t.is(of1.length, 1, 'the same failure again and again is one line');
  t.regex(of1[0].text, /^lamp\.on failed/);
  t.true(of1[0].count > 5 && of1[0].first < of1[0].last && of1[0].start <= of1[0].end);
  t.true(
    happened.some(({ kind, actor }: any) => kind === 'life' && actor === HOST),
    'the instance started',
  );
  t.deepEqual(
    happened.map(({ last: seq }: any) => seq),
    happened.map(({ last: seq }: any) => seq).toSorted((a: number, b: number) => b - a),
  );
  const then = await rig.ask('/api/happened?at=20');
  t.true(then.happened.every(({ last: seq }: any) => seq <= 20));
  const one = await rig.ask(`/api/happened?at=${last}&limit=1`);
  t.deepEqual([one.happened.length, one.more], [1, happened.length - 1]);
  t.false(JSON.stringify(happened).includes(CANARY));
});
