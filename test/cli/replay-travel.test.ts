import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { openBench } from '../support/actors.ts';
import { call } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const handlers = [
  { type: 'lamp.on', handler: () => undefined, onRecovery: 'retry' as const },
  { type: 'bell.ring', handler: () => ({ type: 'RANG', loud: true }), onRecovery: 'retry' as const },
];

/**
 * 1 init, 2 ann opens (lamp, timer of 1 s), 3 lamp done, 4 somebody closes after 500 ms, 5 a knock at 2 s asks for the
 * bell, 6 its ring, 7 a stranger is not let in.
 */
async function folder(t: ExecutionContext): Promise<string> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], handlers, new VirtualClock());
  const send = async (event: { type: string; by?: string }) => {
    bench.actors.deliver('test.door/front', event as never);
    await bench.settled();
  };
  await send({ type: 'OPEN', by: 'ann' });
  await bench.clock.advance(500);
  await send({ type: 'CLOSE' });
  await bench.clock.advance(1_500);
  await send({ type: 'KNOCK' });
  await send({ type: 'OPEN', by: 'stranger' });
  await bench.close();
  doorsConfig(dir);
  return dir;
}

/** In the folder, with `--json` as data. */
async function run(t: ExecutionContext, dir: string, ...argv: string[]) {
  const { code, out, err } = await call([...argv, '--json', '--data-dir', dir], { cwd: dir });
  t.is(code, 0, err);
  return JSON.parse(out);
}

test('[C7] every actor is seen as of a record or an instant, from a folder or a file', async (t) => {
  const dir = await folder(t);
  const file = join(dir, 'incident.jsonl.gz');
  await call(['log', 'export', dir, '--out', file], { cwd: dir });
  const { out } = await call(['replay', 'at', '2', file], { cwd: dir });
  t.regex(out, /^After record 2, 2026-01-01 00:00:00\.000 UTC:\n\ntest\.door\/front {2}open/);
  t.regex(out, /timer closing expires at 2026-01-01 00:00:01 UTC, in 1 s/);
  t.regex(out, /waits for the outcome of lamp\.on \(2\.0\)/);
  t.like((await run(t, dir, 'replay', 'at', '2026-01-01T00:00:00.499')).actors[0], { value: 'open', seq: 3 });
  t.like((await run(t, dir, 'replay', 'at', '2026-01-01T00:00:00.500')).actors[0], {
    value: 'closed',
    seq: 4,
  });
  t.like((await run(t, dir, 'replay', 'at', '7', '--actor', 'door')).actors[0].context, { opened: 1 });
  const beyond = await call(['replay', 'at', '99', file], { cwd: dir });
  t.regex(beyond.err, /^HF_LOG_RANGE\n.*\n {2}The log holds records 1 to 7/);
});

test('[C7] two points are compared, actor by actor', async (t) => {
  const dir = await folder(t);
  const { out } = await call(['replay', 'diff', '1', '2', dir], { cwd: dir });
  t.regex(out, /test\.door\/front {2}closed → open\n {4}\{\n {6}"by": "ann",\n {6}"opened": 1/);
  t.regex(out, /\+ timer closing expires/);
  t.deepEqual((await run(t, dir, 'replay', 'diff', '5', '4')).actors[0].from, 'closed');
  t.regex((await call(['replay', 'diff', '4', '4', dir], { cwd: dir })).out, /No actor differs/);
});

test('[C7] a record is explained in sentences, from its source on', async (t) => {
  const dir = await folder(t);
  const { code, out } = await call(['replay', 'explain', '6', dir], { cwd: dir, columns: 300 });
  t.is(code, 0);
  t.regex(out, /^record 5, 00:00:02\.000\n {4}test\.door\/front got KNOCK from outside\. It stayed closed\./);
  t.regex(out, /It asked for bell\.ring\.\nrecord 6, /);
  t.regex(
    out.replace(/\s+/g, ' '),
    /heard RANG, the outcome of bell\.ring, 0 ms after record 5 had asked for it\. In closed that changes nothing\./,
  );
  t.is((await run(t, dir, 'replay', 'explain', '3')).length, 2);
});

test('[C8] a record that is dropped: later decisions differ, a timer goes off that was cancelled', async (t) => {
  const dir = await folder(t);
  const { differences, untrusted } = await run(t, dir, 'replay', 'what-if', '--drop', '4');
  t.like(differences[0], { kind: 'dropped', seq: 4 });
  t.like(differences[1], { kind: 'timer', seq: 4, got: { to: { value: 'closed' } } });
  t.is(differences.length, 2, 'closed by the timer, everything after it is as it was');
  t.deepEqual(untrusted, []);
});

test('[C8] outcomes of effects that are asked for no more are named as inputs that might differ', async (t) => {
  const dir = await folder(t);
  const { out } = await call(['replay', 'what-if', dir, '--drop', '2'], { cwd: dir });
  t.regex(out, /record 2 \(dropped\) {2}00:00:00\.000 {2}test\.door\/front {2}OPEN/);
  t.regex(
    out,
    /2 recorded inputs might have been different:\n {2}record 3 .*it answers lamp\.on, which is not asked for any more/,
  );
  t.regex(out, /record 6 .*it answers bell\.ring, which is asked for otherwise now/);
});

test('[C8] an event is altered by a merge patch or a JSON patch, and what it asks for is left open', async (t) => {
  const dir = await folder(t);
  for (const patch of ['{"by":"bob"}', '[{"op":"replace","path":"/by","value":"bob"}]']) {
    const { differences, unanswered } = await run(t, dir, 'replay', 'what-if', '--set', '7', patch);
    t.like(differences[0], {
      kind: 'decided',
      seq: 7,
      expected: { ignored: true },
      got: { to: { value: 'open' } },
    });
    t.deepEqual(unanswered.map(({ type }: { type: string }) => type)[0], 'lamp.on');
    t.is(unanswered.length, 2, 'and the timer');
  }
  const file = join(dir, 'x.jsonl');
  await call(['log', 'export', dir, '--out', file], { cwd: dir });
  const behind = await call(['replay', 'what-if', '--set', '7', '{"by":"bob"}', file], { cwd: dir });
  t.is(behind.code, 0, 'the source may stand behind the patch');
});

test('[C8] an outcome answers no effect of another type that stands in its place', async (t) => {
  const dir = await folder(t);
  const patch = '{"type":"OPEN","by":"ann"}';
  const { unanswered, untrusted } = await run(t, dir, 'replay', 'what-if', '--set', '5', patch);
  t.true(unanswered.some(({ type }: { type: string }) => type === 'lamp.on'));
  t.like(untrusted[0], { seq: 6, reason: 'it answers bell.ring, and lamp.on is asked for now' });
});

test('[C8] events are inserted, and machines exchanged', async (t) => {
  const dir = await folder(t);
  const lines = join(dir, 'more.jsonl');
  writeFileSync(lines, '{"after":5,"actor":"test.door/front","event":{"type":"BREAK"}}\n');
  const { differences } = await run(t, dir, 'replay', 'what-if', '--insert', lines);
  t.like(differences[0], { kind: 'inserted', seq: 5, got: { to: { value: 'broken', done: true } } });
  const machines = join(dir, 'machines.ts');
  const support = new URL('../support/door.ts', import.meta.url).href;
  writeFileSync(
    machines,
    `import { door, doorMachine } from ${JSON.stringify(support)};
     export const kind = { ...door, machine: doorMachine.provide({ guards: { known: () => true } }) };`,
  );
  const other = await run(t, dir, 'replay', 'what-if', '--machines', machines);
  t.like(other.differences[0], { seq: 7, got: { to: { value: 'open' } } });
  t.is(other.differences.length, 1);
  t.is(other.records, 7);
});

test('[C8] a change that is none is refused with a code', async (t) => {
  const dir = await folder(t);
  const lines = join(dir, 'bad.jsonl');
  writeFileSync(lines, '{"after":5}\n');
  const cases: readonly [string[], RegExp][] = [
    [[], /^HF_CLI_USAGE/],
    [['--drop', '99'], /^HF_LOG_RANGE/],
    [['--drop', 'x'], /^HF_CLI_USAGE/],
    [['--set', '2', '{'], /^HF_CLI_USAGE/],
    [['--set', '2', '"text"'], /^HF_REPLAY_CHANGE/],
    [['--set', '2', '{"type":null}'], /^HF_REPLAY_CHANGE/],
    [['--set', '2', '[{"op":"remove","path":"/nothing"}]'], /^HF_REPLAY_CHANGE/],
    [['--insert', lines], /^HF_REPLAY_CHANGE/],
    [['--insert', join(dir, 'none')], /^HF_REPLAY_CHANGE/],
    [['--machines', join(dir, 'none.ts')], /^HF_REPLAY_CHANGE/],
  ];
  for (const [flags, said] of cases) {
    const { code, err } = await call(['replay', 'what-if', '--data-dir', dir, ...flags], { cwd: dir });
    t.not(code, 0);
    t.regex(err, said, flags.join(' '));
    t.notRegex(err, /\n +at /);
  }
});

test('[C6] a log is read with the machines that the program brings, where no configuration is', async (t) => {
  const { main } = await import('../../src/main.ts');
  t.is(typeof main, 'function');
  const { Configuration } = await import('../../src/cli/configuration.ts');
  const { definePlugin } = await import('../../src/core/host/plugin/definition.ts');
  const { z } = await import('zod');
  const doors = definePlugin({
    name: 'doors',
    options: z.object({}),
    register(context) {
      context.actor(door);
      for (const { type, handler, onRecovery } of handlers) context.effect(type, handler, { onRecovery });
    },
  });
  const cwd = tempDir(t);
  const builtinPlugins = async () => [{ definition: doors().definition, options: {} }];
  const without = new Configuration({ cwd, env: {}, builtinPlugins });
  t.deepEqual(
    (await without.actors()).map(({ type }) => type).filter((type) => !type.startsWith('runtime.')),
    ['test.door'],
  );
  const named = new Configuration({ cwd, env: {}, builtinPlugins, file: 'wrong.ts' });
  await t.throwsAsync(named.actors(), { code: 'HF_REPLAY_MACHINES' });
});

test('[C7] a time before the log is told as one', async (t) => {
  const dir = await folder(t);
  doorsConfig(dir);
  const { code, err } = await call(['replay', 'at', '1969-01-01T00:00', dir], { cwd: dir });
  t.is(code, 2);
  t.regex(err, /^HF_LOG_RANGE\n {2}There is no record as old as 1969-01-01T00:00\./);
});
