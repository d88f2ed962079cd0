import test from 'ava';
import { Layout } from '../../src/cli/log/layout.ts';
import { Story } from '../../src/cli/log/story.ts';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';

const at = Date.parse('2026-01-31T03:05:00Z');

function record(seq: number, fields: Partial<LogRecord>): LogRecord {
  return {
    seq,
    at: at + seq,
    actor: 'test.lamp/hall',
    machine: 'lamp',
    version: 1,
    event: { type: 'TOUCH' },
    from: 'off',
    to: { value: 'on' },
    effects: [],
    correlation: 'story-0001',
    ...fields,
  };
}

const lines = (records: readonly LogRecord[], options: { all?: boolean } = {}) =>
  new Story({ all: false, describe: () => undefined, ...options })
    .add(records)
    .map(({ records, text, cause }) => {
      return { seqs: records.map(({ seq }) => seq), what: text.what, cause };
    });

test('what actors of one type do together, for one reason, is one line with what they have in common', (t) => {
  const together = ['hall', 'attic', 'cellar'].map((key, index) =>
    record(index + 2, {
      actor: `test.lamp/${key}`,
      cause: 1,
      event: { type: 'LIGHT', room: key, by: 'ann' },
    }),
  );
  t.deepEqual(lines(together), [{ seqs: [2, 3, 4], what: 'LIGHT by=ann', cause: { seq: 1, direct: true } }]);
  t.is(lines(together, { all: true }).length, 3);
});

test('another reason, story, state, effect or time keeps lines apart', (t) => {
  const first = record(2, { cause: 1 });
  const other = { actor: 'test.lamp/attic', cause: 1 };
  const apart: Partial<LogRecord>[] = [
    { ...other, cause: 3 },
    { ...other, correlation: 'story-0002' },
    { ...other, to: { value: 'dim' } },
    { ...other, effects: [{ type: 'bulb.warm' }] },
    { ...other, at: at + 10_000 },
    { ...other, failed: 'boom' },
    { ...other, actor: 'test.bell/attic' },
    { cause: 1 },
  ];
  for (const fields of apart) t.is(lines([first, record(4, fields)]).length, 2, JSON.stringify(fields));
});

test('a cause that is folded away is replaced by the nearest one that is shown, also across calls', (t) => {
  const done = {
    event: { type: 'effect.done', effect: 'bulb.warm' },
    ignored: true,
    outcome: '1.0',
  } as const;
  const story = new Story({ all: false, describe: () => undefined });
  t.is(story.add([record(1, {}), record(2, { ...done, cause: 1 })]).length, 1);
  const [line] = story.add([record(3, { cause: 2 })]);
  t.deepEqual(line?.cause, { seq: 1, direct: false });
});

test('failures, losses and answers that reached nobody are never folded', (t) => {
  const outcome = { ignored: true, outcome: '1.0', cause: 1 } as const;
  const kept: Partial<LogRecord>[] = [
    { ...outcome, event: { type: 'effect.failed', effect: 'bulb.warm', code: 'HF_X', message: 'too cold' } },
    { ...outcome, event: { type: 'effect.lost', effect: 'bulb.warm' } },
    { ...outcome, event: { type: 'effect.done', effect: 'http.reply', gone: true } },
    { ...outcome, event: { type: 'effect.done', effect: 'bulb.warm' }, failed: 'boom' },
  ];
  for (const [index, fields] of kept.entries()) t.is(lines([record(index + 2, fields)]).length, 1);
});

test('a timer is folded when it only spaced things out, and shown when it was long', (t) => {
  const timer = 'xstate.after.dimming.lamp.on';
  const arm = (ms: number) =>
    record(1, { effects: [{ type: 'timer.start', params: { timer, at: at + 1 + ms } }] });
  const fire = (ms: number) =>
    record(2, {
      at: at + 1 + ms,
      event: { type: timer },
      cause: 1,
      outcome: '1.0',
      from: 'on',
      to: { value: 'off' },
    });
  t.is(lines([arm(1_000), fire(1_000)]).length, 1);
  t.is(lines([arm(120_000), fire(120_000)]).at(-1)?.what, 'after dimming');
  t.is(lines([fire(1_000)]).length, 1, 'who armed it is not known, so it may have been long');
});

test('an empty description folds a record, and no description leaves its fields to speak', (t) => {
  const words: Record<string, string | undefined> = { TOUCH: '', LIGHT: undefined, DIM: 'goes dim' };
  const story = new Story({ all: false, describe: ({ event }) => words[event.type] });
  const shown = story.add([
    record(1, {}),
    record(2, { event: { type: 'LIGHT', by: 'ann' } }),
    record(3, { event: { type: 'DIM', by: 'ann' } }),
  ]);
  t.deepEqual(
    shown.map(({ text }) => text.what),
    ['LIGHT by=ann', 'goes dim'],
  );
});

test('of a parallel machine only the regions that moved are told', (t) => {
  const [line] = new Story({ all: false, describe: () => undefined }).add([
    record(1, { from: { light: 'on', fan: 'off' }, to: { value: { light: 'off', fan: 'off' } } }),
  ]);
  t.is(line?.text.state, 'light: on→off');
});

test('a line is never wider than its terminal, whatever stands in the record', (t) => {
  const long = 'x'.repeat(300);
  const records = [
    record(1, { event: { type: 'TOUCH', a: long, b: [long, long], c: { d: long } } }),
    record(123_456_789, { actor: `test.${long}/${long}`, event: { type: long }, cause: 123_456_788 }),
    record(123_456_790, { failed: long, effects: Array.from({ length: 40 }, () => ({ type: long })) }),
    record(123_456_791, { event: { type: '路由器'.repeat(40), name: 'ε'.repeat(90) } }),
  ];
  const story = new Story({ all: true, describe: () => undefined });
  for (const columns of [80, 100, 200]) {
    const layout = new Layout({ columns, paint: (_, text) => text }, 1);
    for (const line of layout.lines(story.add(records)))
      t.true(line.length <= columns, `${columns} < ${line.length}: ${line}`);
  }
});

test('a short timer is folded away, but not where its plugin has words for what it did', (t) => {
  const armed = record(1, {
    effects: [{ type: 'timer.start', params: { timer: 'xstate.after.deadline.run' } }],
  });
  const ended = record(2, {
    at: at + 3_000,
    event: { type: 'xstate.after.deadline.run' },
    outcome: '1.0',
    cause: 1,
  });
  const told = (describe: (one: LogRecord) => string | undefined) =>
    new Story({ all: false, describe }).add([armed, ended]).map(({ text }) => text.what);
  t.is(told(() => undefined).length, 1, 'it only spaced things out');
  t.is(told(({ seq }) => (seq === 2 ? '' : undefined)).length, 1);
  t.is(told(({ seq }) => (seq === 2 ? 'DEADLINE EXCEEDED' : undefined))[1], 'DEADLINE EXCEEDED');
});
