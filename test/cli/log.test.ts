import type { ExecutionContext } from 'ava';
import test from 'ava';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';
import { openBench } from '../support/actors.ts';
import { call } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const STORY = '01a1fb72-32e6-7289-96a0-6f967ebbe0dd';
const handlers = [
  { type: 'lamp.on', handler: () => undefined, onRecovery: 'retry' as const },
  { type: 'bell.ring', handler: () => ({ type: 'RANG', loud: true }), onRecovery: 'retry' as const },
];

/** A folder with: ann opens (1–3), the door falls shut (4), a knock and its ring (5–6), ann again by another story. */
async function folder(t: ExecutionContext): Promise<{ dir: string; records: LogRecord[] }> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], handlers, new VirtualClock());
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' }, { correlation: STORY });
  await bench.settled();
  await bench.clock.advance(1_000);
  await bench.settled();
  bench.actors.deliver('test.door/front', { type: 'KNOCK' }, { correlation: STORY, cause: 2 });
  await bench.settled();
  await bench.clock.advance(86_400_000);
  bench.actors.deliver('test.door/back', { type: 'OPEN', by: 'stranger' });
  await bench.settled();
  const records = await bench.records();
  await bench.close();
  return { dir, records };
}

test('a list tells time, number, actor, what happened, states, effects, cause and story', async (t) => {
  const { dir } = await folder(t);
  const { code, out, err } = await call(['log', 'list', '--data-dir', dir], { cwd: dir });
  t.is(code, 0);
  t.is(err, '');
  t.is(
    out,
    [
      '── 2026-01-01 UTC ──',
      '00:00:00.000   1  test.door/front  starts closeAfterMs=1000  →closed                            e0dd',
      '00:00:00.000   2  test.door/front  OPEN by=ann  closed→open  ⇒ lamp.on,                         e0dd',
      '                                   timer closing in 1 s',
      '00:00:01.000   4  test.door/front  after closing  open→closed                             ←   2 e0dd',
      '00:00:01.000   5  test.door/front  KNOCK  ⇒ bell.ring times=2                             ←   2 e0dd',
      '00:00:01.000   6  test.door/front  RANG loud=true (ignored)                               ←   5 e0dd',
      '── 2026-01-02 UTC ──',
      out.split('\n').at(-3),
      out.split('\n').at(-2),
      '',
    ].join('\n'),
  );
  t.true(
    out.split('\n').every((line) => line.length <= 100),
    'a hundred columns suffice',
  );
});

test('housekeeping is folded away, and --all shows it', async (t) => {
  const { dir } = await folder(t);
  const folded = await call(['log', 'list', '--data-dir', dir], { cwd: dir });
  t.notRegex(folded.out, /lamp\.on done/);
  t.regex(folded.out, /after closing {2}open→closed/, 'a short timer that changed a state is none');
  const { out } = await call(['log', 'list', '--all', '--data-dir', dir], { cwd: dir });
  t.regex(out, / 3 {2}test\.door\/front {2}lamp\.on done \(ignored\) +← {3}2 e0dd/);
  t.regex(out, / 4 {2}test\.door\/front {2}after closing {2}open→closed/);
  t.regex(out, /⇒ lamp\.on, +e0dd\n +timer closing in 1 s/);
});

test('a list takes a range of numbers or times, an actor, a story and a type of event', async (t) => {
  const { dir, records } = await folder(t);
  const seqs = async (...flags: string[]): Promise<number[]> => {
    const argv = ['log', 'list', '--json', '--data-dir', dir, ...flags];
    const { code, out, err } = await call(argv, { cwd: dir });
    t.is(code, 0, err);
    return (JSON.parse(out) as LogRecord[]).map(({ seq }) => seq);
  };
  const all = records.map(({ seq }) => seq);
  t.deepEqual(await seqs(), all);
  t.deepEqual(await seqs('--from', '3', '--to', '5'), [3, 4, 5]);
  t.deepEqual(await seqs('--from', '2026-01-01T00:00:01'), all.slice(3));
  t.deepEqual(await seqs('--to', '2026-01-01T00:00:00.999Z'), [1, 2, 3]);
  t.deepEqual(await seqs('--from', '2026-01-01', '--to', '2026-01-02'), all.slice(0, 6));
  t.deepEqual(await seqs('--actor', 'test.door/back'), all.slice(6));
  for (const actor of ['door', 'test.door', 'test.door/*', '*oo*'])
    t.deepEqual(await seqs('--actor', actor), all);
  t.deepEqual(await seqs('--actor', 'window'), []);
  t.deepEqual(await seqs('--correlation', 'e0dd'), all.slice(0, 6));
  t.deepEqual(await seqs('--correlation', STORY), all.slice(0, 6));
  t.deepEqual(await seqs('--type', 'KNOCK'), [5]);
  t.deepEqual(await seqs('--type', 'effect.*'), [3]);
  t.deepEqual(await seqs('--limit', '2'), all.slice(-2), 'the newest');
  t.deepEqual(await seqs('--limit', '0'), all);
  t.deepEqual(await seqs('--from', '2030-01-01'), []);
});

test('a list that leaves older lines out says so, beside the output', async (t) => {
  const { dir } = await folder(t);
  const { out, err } = await call(['log', 'list', '--limit', '2', '--data-dir', dir], { cwd: dir });
  t.is(out.match(/test\.door/g)?.length, 2);
  t.regex(err, /--limit 0 shows all/);
  const whole = await call(['log', 'list', '--limit', '0', '--data-dir', dir], { cwd: dir });
  t.is(whole.err, '');
});

test('plugins word their records, and hide none that requested an effect', async (t) => {
  const { dir } = await folder(t);
  doorsConfig(dir);
  const { out } = await call(['log', 'list', '--data-dir', dir], { cwd: dir });
  t.regex(out, /ann opens the door {2}closed→open {2}⇒ lamp\.on/);
  t.regex(out, /KNOCK {2}⇒ bell\.ring/, 'it requested an effect, so no words hide it');
  t.regex(out, /RANG loud=true \(ignored\) +← {3}5 e0dd/);
});

test('show tells everything of a record: its event, change, effects with their ends, cause and consequences', async (t) => {
  const { dir } = await folder(t);
  const show = (seq: string, ...flags: string[]) =>
    call(['log', 'show', seq, '--data-dir', dir, ...flags], { cwd: dir });
  const { out } = await show('2');
  t.regex(out, /record +2 {2}2026-01-01 00:00:00\.000 UTC/);
  t.regex(out, /actor +test\.door\/front {2}\(door, version 1\)/);
  t.regex(out, new RegExp(`story +${STORY}`));
  t.regex(out, /event +OPEN\n {2}{\n {4}"by": "ann"/);
  t.regex(out, /state +closed → open/);
  t.regex(out, /"opened": 1/);
  t.regex(out, /2\.0 {2}lamp\.on {2}effect\.done in record 3/);
  t.regex(out, /2\.1 {2}timer\.start {2}xstate\.after\.closing\S* in record 4, 1 s later/);
  t.regex(out, /led to\n/);
  t.regex((await show('5')).out, /cause\n.*\n.* 2 {2}test\.door\/front/);
  t.regex((await show('6')).out, /outcome of 5\.0/);

  const document = JSON.parse((await show('2', '--json')).out);
  t.is(document.record.seq, 2);
  t.deepEqual(
    document.effects.map(({ id, fate, record }: Record<string, unknown>) => [id, fate, record]),
    [
      ['2.0', 'outcome', 3],
      ['2.1', 'outcome', 4],
    ],
  );
  t.deepEqual(document.ledTo, [3, 4, 5]);

  const missing = await show('99');
  t.is(missing.code, 2);
  t.regex(missing.err, /^HF_LOG_RANGE\n {2}There is no record 99\.\n {2}The log holds records 1 to \d+\.\n$/);
});

test('show tells which effects are open and which timers were cancelled', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], [], new VirtualClock());
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  bench.actors.deliver('test.door/front', { type: 'CLOSE' });
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'bob' });
  await bench.settled();
  await bench.close();
  const fates = async (seq: number) => {
    const { out } = await call(['log', 'show', String(seq), '--json', '--data-dir', dir], { cwd: dir });
    return JSON.parse(out).effects.map(({ type, fate, record }: Record<string, unknown>) => [
      type,
      fate,
      record,
    ]);
  };
  t.deepEqual(await fates(2), [
    ['lamp.on', 'outcome', 5],
    ['timer.start', 'cancelled', 3],
  ]);
  t.deepEqual(await fates(3), [['timer.cancel', 'done', undefined]]);
  t.deepEqual((await fates(4))[1], ['timer.start', 'open', undefined]);
});

test('tail begins with the newest lines and follows what comes, folding across what it has shown', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], handlers, new VirtualClock());
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' }, { correlation: STORY });
  await bench.settled();
  const seen = Promise.withResolvers<void>();
  const stop = new AbortController();
  const tail = call(['log', 'tail', '-n', '1', '--follow', '--data-dir', dir], {
    cwd: dir,
    interrupted: stop.signal,
    onOut: (text) => {
      if (/RANG/.test(text)) seen.resolve();
    },
  });
  await bench.clock.advance(1_000);
  bench.actors.deliver('test.door/front', { type: 'KNOCK' }, { correlation: STORY, cause: 2 });
  await bench.settled();
  await seen.promise;
  stop.abort('SIGINT');
  const { code, out, err } = await tail;
  t.is(code, 0, 'Ctrl-C is how a tail ends');
  t.is(err, '');
  t.notRegex(out, /lamp\.on done|starts/);
  t.regex(out, /OPEN by=ann.*KNOCK.*RANG/s);
  await bench.close();
});

test('tail without a terminal ends by itself, and with --json prints a record a line', async (t) => {
  const { dir, records } = await folder(t);
  const { code, out } = await call(['log', 'tail', '-n', '3', '--json', '--data-dir', dir], { cwd: dir });
  t.is(code, 0);
  t.deepEqual(
    out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    records.slice(-3),
  );
});

test('[C6] control characters of an event do not reach the terminal, and secrets are masked', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], [], new VirtualClock());
  const by = 'x\u001b[2J\u0007\u202e\r\nBearer abcdefghijklmnop';
  bench.actors.deliver('test.door/front', { type: 'OPEN', by, password: 'hunter2' });
  await bench.settled();
  await bench.close();
  for (const argv of [
    ['log', 'list'],
    ['log', 'show', '2'],
    ['log', 'list', '--json'],
  ]) {
    const { out } = await call([...argv, '--data-dir', dir], { cwd: dir });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    t.notRegex(out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/, argv.join(' '));
    t.notRegex(out, /hunter2|abcdefghijklmnop/);
  }
});

test('colours come only where they can be shown', async (t) => {
  const { dir } = await folder(t);
  const plain = await call(['log', 'list', '--data-dir', dir], { cwd: dir });
  t.false(plain.out.includes('\u001b'));
  const colour = await call(['log', 'list', '--data-dir', dir], { cwd: dir, colour: true });
  t.true(colour.out.includes('\u001b['));
});
