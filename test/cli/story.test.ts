import test from 'ava';
import { Layout } from '../../src/cli/log/layout.ts';
import { Story } from '../../src/core/host/history/story.ts';
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
    from: 'on',
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

test('a timer is hidden when it changed nothing, however long, and shown when it changed a state, however short', (t) => {
  const timer = 'xstate.after.dimming.lamp.on';
  const arm = (ms: number) =>
    record(1, { effects: [{ type: 'timer.start', params: { timer, at: at + 1 + ms } }] });
  const fire = (ms: number, fields: Partial<LogRecord>) =>
    record(2, { at: at + 1 + ms, event: { type: timer }, cause: 1, outcome: '1.0', from: 'on', ...fields });
  for (const ms of [1, 1_000, 120_000]) {
    t.is(lines([arm(ms), fire(ms, {})]).length, 1);
    t.is(lines([arm(ms), fire(ms, { stale: true })]).length, 1);
    for (const fields of [
      { to: { value: 'off' } },
      { to: { value: 'on', context: { dimmed: 1 } } },
      { to: { value: 'on', done: true } },
      { effects: [{ type: 'router.revert' }] },
      { failed: 'boom' },
    ] as const) {
      t.is(
        lines([arm(ms), fire(ms, fields)])
          .at(-1)
          ?.what.replace(' (machine threw)', ''),
        'after dimming',
      );
    }
  }
});

test('[C7] a plugin cannot hide what changed a state, requested an effect or failed', (t) => {
  const quiet = { from: 'on', outcome: '1.0' } as const;
  const shown = (fields: Partial<LogRecord>) =>
    new Story({ all: false, describe: () => '' }).add([record(2, { ...quiet, ...fields })]).length;
  t.is(shown({}), 0);
  t.is(shown({ to: { value: 'off' } }), 1);
  t.is(shown({ to: { value: 'on', context: { touches: 2 } } }), 1);
  t.is(shown({ effects: [{ type: 'bulb.warm' }] }), 1);
  t.is(shown({ failed: 'boom' }), 1);
  t.is(shown({ event: { type: 'effect.lost', effect: 'bulb.warm' } }), 1);
});

test('an empty description folds a record, and no description leaves its fields to speak', (t) => {
  const words: Record<string, string | undefined> = { TOUCH: '', LIGHT: undefined, DIM: 'goes dim' };
  const story = new Story({ all: false, describe: ({ event }) => words[event.type] });
  const shown = story.add([
    record(1, { from: 'on' }),
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

test('a record that changed nothing is hidden, but not where its plugin has words for it', (t) => {
  const beat = record(1, { from: 'on', event: { type: 'BEAT' } });
  const shown = (words: string | undefined) =>
    new Story({ all: false, describe: () => words }).add([beat]).map(({ text }) => text.what);
  t.deepEqual(shown(undefined), []);
  t.deepEqual(shown(''), []);
  t.deepEqual(shown('still burns'), ['still burns']);
  t.is(lines([{ ...beat, ignored: true }]).length, 1, 'an event that no transition took is news');
});
