import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { frame, rowsFor, type Size } from '../../src/cli/step/frame.ts';
import { StepLog } from '../../src/cli/step/log.ts';
import { pageOf } from '../../src/cli/step/page.ts';
import { type Key, pressKey, type Viewer, viewerAt } from '../../src/cli/step/viewer.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { openBench } from '../support/actors.ts';
import { call } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { runs } from '../support/runs.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const effects = [
  { type: 'lamp.on', handler: () => undefined, onRecovery: 'retry' as const },
  { type: 'bell.ring', handler: () => ({ type: 'RANG', loud: true }), onRecovery: 'retry' as const },
];

/**
 * Two doors: front 1 init, 2 ann opens, 3 lamp done; 4 back begins, 5 a knock asks for the bell, 6 RANG; 7 front falls
 * shut by its timer; 8 a stranger is refused.
 */
const dir = mkdtempSync(join(tmpdir(), 'holdfast-'));
let reader: SqliteReader;
let log: StepLog;

test.before(async () => {
  const bench = await openBench(dir, [door], effects, new VirtualClock());
  const send = async (key: string, correlation: string, event: { type: string; by?: string }) => {
    bench.actors.deliver(`test.door/${key}`, event as never, { correlation });
    await bench.settled();
  };
  await send('front', 'story-of-ann', { type: 'OPEN', by: 'ann' });
  await bench.clock.advance(250);
  await send('back', 'story-of-bob', { type: 'KNOCK' });
  await bench.clock.advance(1_000);
  await send('front', 'story-of-eve', { type: 'OPEN', by: 'stranger' });
  await bench.close();
  reader = new SqliteReader(dir);
  log = new StepLog(reader, new Map([[door.type, door]]));
});

test.after.always(() => {
  reader?.close();
  rmSync(dir, { recursive: true, force: true });
});

const NO_SIGNAL = new AbortController().signal;
const SIZE: Size = { columns: 80, rows: 24 };
const plain = (_: unknown, text: string) => text;
const key = (text: string): Key => (text.length === 1 ? { name: text, text } : { name: text, text: '' });

async function pressAll(viewer: Viewer, keys: readonly Key[]): Promise<Viewer> {
  let now = viewer;
  for (const one of keys) {
    const { viewer: next, request } = pressKey(now, one, rowsFor(SIZE).list);
    now = request ? await log.carryOut(next, request, NO_SIGNAL) : next;
  }
  return now;
}

/** Words are typed, names in angle brackets are keys. */
const keysOf = (text: string): Key[] =>
  [...text.matchAll(/<([\w-]+)>|(.)/gu)].map(([, name, typed]) => key(name ?? typed ?? ''));

async function drawn(viewer: Viewer, size: Size = SIZE): Promise<string[]> {
  const { list } = rowsFor(size);
  const around = (await log.around(viewer.here.seq, viewer.filter, list - 1, list - 1)).slice(0, list);
  const page = pageOf(await log.detail(viewer.here.seq), () => undefined);
  const scene = { source: 'incident.jsonl', first: log.first, last: log.last, around, page };
  return frame(viewer, scene, size, plain, () => undefined);
}

test('[C7] a frame shows where one is, the event, the transition, the guard that decided, and what came of the effects', async (t) => {
  t.deepEqual(await drawn(viewerAt(await log.begin('2'))), [
    'incident.jsonl   record 2 of 8',
    '─'.repeat(79),
    ' *00:00:00.000 1  test.door/front  starts closeAfterMs=1000  →closed',
    '>*00:00:00.000 2  test.door/front  OPEN by=ann  closed→open  ⇒ lamp.on, timer …',
    ' *00:00:00.000 3  test.door/front  lamp.on done (ignored)',
    '  00:00:00.250 4  test.door/back  starts closeAfterMs=1000  →closed',
    '  00:00:00.250 5  test.door/back  KNOCK  ⇒ bell.ring times=1',
    '─'.repeat(79),
    'record    2  2026-01-01 00:00:00.000 UTC  story …y-of-ann',
    'actor     test.door/front  (door, version 1)',
    'event     OPEN',
    'state     closed → open',
    'decided   in closed: known allowed it, to open',
    'context   opened: 0 → 1',
    '          by: nothing → ann',
    'effects   2.0 lamp.on  → effect.done in record 3, 0 ms later',
    '          by: "ann"',
    '          2.1 timer.start closing  → closing in record 7, 1 s later',
    'fields    by: "ann"',
    'led to    3 test.door/front  effect.done',
    '─'.repeat(79),
    ' (d: 1 more lines)',
    '↑↓ jk record · PgUp PgDn page · gG ends · ←→ cause, effect · np story',
    'a this actor · c this story · / search · : jump · du scroll · ? help · q quit',
  ]);
  const refused = (await drawn(viewerAt(await log.begin('8')))).join('\n');
  t.regex(refused, /decided {3}in closed: known refused\n/);
  t.regex(refused, /ignored: the state has no transition for it/);
});

for (const [keys, seq, what] of [
  ['j', 2, 'a record on'],
  ['jjk', 2, 'and back'],
  ['<pagedown>', 6, 'a page'],
  ['G', 8, 'to the end'],
  ['Gg', 1, 'to the beginning'],
  [':5<return>', 5, 'to a record'],
  [':99<return>', 8, 'beyond the end is the end'],
  [':00:00:00.300<return>', 6, 'to a time of the day on which the log ended'],
  ['/rang<return>', 6, 'to a text of an event'],
  ['/lamp<return>/<return>', 3, 'to the same text again'],
  ['G/lamp<return>', 2, 'from the beginning when it is not further on'],
  ['jn', 3, 'on in the story'],
  [':7<return>p', 3, 'back in the story, over other actors'],
  [':6<return><left>', 5, 'to its cause'],
  [':2<return><right>', 3, 'to what it led to'],
  ['a<down><down><down>', 7, 'on with one actor alone'],
  [':5<return>cG', 6, 'to the end of one story'],
  [':actor *ack<return>', 4, 'to the first of an actor'],
  [':actor *ack<return>:actor<return>j', 5, 'and among all again'],
  [':actor nobody<return>', 1, 'nowhere when no actor fits'],
  [':5<escape>', 1, 'nowhere after Escape'],
  ['/<backspace>j', 2, 'an emptied prompt is closed'],
] as const) {
  test(`[C7] ${keys} leads to record ${seq}: ${what}`, async (t) => {
    const viewer = await pressAll(viewerAt(await log.begin(undefined)), keysOf(keys));
    t.is(viewer.here.seq, seq, viewer.note);
    t.is(viewer.prompt, undefined);
  });
}

for (const [keys, note] of [
  ['k', 'this is the first record'],
  ['Gj', 'this is the last record'],
  ['<left>', 'it has no cause: it came from outside'],
  ['G<right>', 'it led to nothing'],
  ['Gn', 'the story ends here'],
  ['/nowhere<return>', 'nowhere: not found'],
  ['/<return>', 'nothing was searched for yet'],
  [':soon<return>', 'soon is neither a record nor a time'],
  [':actor nobody<return>', 'no record fits that'],
] as const) {
  test(`[C7] ${keys} says: ${note}`, async (t) => {
    const viewer = await pressAll(viewerAt(await log.begin(undefined)), keysOf(keys));
    t.is(viewer.note, note);
    t.true((await drawn(viewer)).some((line) => line.startsWith(note)));
  });
}

const anyKey = fc.oneof(
  fc.constantFrom(...keysOf('jkgGnpacdu/:?hlx5 <return><escape><backspace><pageup><pagedown><left><right>')),
  fc.string({ minLength: 1, maxLength: 2, unit: 'binary' }).map((text) => ({ name: text, text })),
);

test('[C7] whatever is pressed, the viewer stands on a record that fits its filter, and a frame fits its terminal', async (t) => {
  t.timeout(180_000);
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyKey, { maxLength: 25 }),
      fc.record({ columns: fc.integer({ min: 20, max: 140 }), rows: fc.integer({ min: 10, max: 50 }) }),
      async (keys, size) => {
        const viewer = await pressAll(viewerAt(await log.begin(undefined)), keys);
        const { here, filter } = viewer;
        t.true(here.seq >= log.first && here.seq <= log.last);
        if (filter.story !== undefined) t.is(here.correlation, filter.story);
        if (filter.actor?.includes('/') && !filter.actor.includes('*')) t.is(here.actor, filter.actor);
        const lines = await drawn(viewer, size);
        t.is(lines.length, size.rows);
        for (const line of lines) t.true(line.length < size.columns && !/\p{Cc}/u.test(line), line);
      },
    ),
    { numRuns: runs(150) },
  );
});

test('[C7] j then k is where one was, whatever the filter', async (t) => {
  for (const narrowed of ['', 'a', 'c', ':5<return>a', ':5<return>c']) {
    const start = await pressAll(viewerAt(await log.begin(undefined)), keysOf(narrowed));
    const on = await pressAll(start, keysOf('j'));
    const back = on.here.seq === start.here.seq ? on : await pressAll(on, keysOf('k'));
    t.is(back.here.seq, start.here.seq);
  }
});

test('[C7] states before a record are the same, whichever way one came', async (t) => {
  const forward = [];
  for (let seq = 1; seq <= 8; seq += 1) forward.push(structuredClone((await log.detail(seq)).before));
  for (let seq = 8; seq >= 1; seq -= 1) t.deepEqual((await log.detail(seq)).before, forward[seq - 1]);
  t.like(forward[6], { value: 'open', context: { opened: 1 } });
});

test('[C7] without a terminal it says so with a code, and what to call instead', async (t) => {
  const cwd = tempDir(t);
  const { code, err } = await call(['replay', 'step', 'incident.jsonl'], { cwd });
  t.is(code, 2);
  t.regex(err, /^HF_CLI_TERMINAL\n.*needs a terminal.*\n.*replay at <seq>.*log list/);
});
