import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { difference } from '../../src/core/host/divergence-text.ts';
import { openBench } from '../support/actors.ts';
import { call, writeConfig } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { tempDir } from '../support/temp.ts';

async function folder(t: ExecutionContext): Promise<string> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], []);
  for (const by of ['ann', 'stranger', 'bob']) {
    bench.actors.deliver('test.door/front', { type: 'OPEN', by });
    bench.actors.deliver('test.door/front', { type: 'CLOSE' });
  }
  await bench.settled();
  await bench.close();
  return dir;
}

/** An edited machine: whoever comes, the door opens. */
const OPEN_TO_ALL = `door = { ...original, machine: doorMachine.provide({ guards: { known: () => true } }) };`;

test('[C4] a log that its machines decide again as it stands is verified, with counts and time', async (t) => {
  const dir = await folder(t);
  doorsConfig(dir);
  const { code, out, err } = await call(['replay', 'verify', '--data-dir', dir], { cwd: dir });
  t.is(code, 0, err);
  t.regex(
    out,
    /^Every decision was repeated with the same result\.\n\d+ records of 1 actors, 0 divergences, chain ok, \d/,
  );
  const { out: json } = await call(['replay', 'verify', '--json', '--data-dir', dir], { cwd: dir });
  t.like(JSON.parse(json), { ok: true, actors: 1, notCompared: [], chain: 'ok' });
});

test('[C4] a divergence names the record, expected and got, and the likely reason, with exit code 1', async (t) => {
  const dir = await folder(t);
  doorsConfig(dir, OPEN_TO_ALL);
  const { code, out, err } = await call(['replay', 'verify', '--data-dir', dir], { cwd: dir });
  t.is(code, 1);
  t.regex(out, /^Record 4 is decided differently now\./);
  t.regex(out, /actor +test\.door\/front \(door, version 1\)/);
  t.regex(out, /event +OPEN\n +{\n +"by": "stranger"/);
  t.regex(out, /state +closed\n/);
  t.regex(out, / - +"value": "closed"/);
  t.regex(out, / \+ +"value": "open"/);
  t.regex(out, / \+ +"type": "lamp\.on"/);
  t.regex(out, /Hint: .*(guard|reacts)/);
  t.regex(err, /^HF_REPLAY_DIVERGED\n {2}Replay diverged at record 4 of test\.door\/front\./);

  const { code: jsonCode, out: json } = await call(['replay', 'verify', '--json', '--data-dir', dir], {
    cwd: dir,
  });
  t.is(jsonCode, 1);
  t.like(JSON.parse(json), {
    ok: false,
    divergence: { record: { seq: 4 }, expected: { to: { value: 'closed' } }, got: { to: { value: 'open' } } },
  });
});

test('[C9] a record that is not what was written is named, with exit code 1', async (t) => {
  const dir = await folder(t);
  doorsConfig(dir);
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec(`UPDATE records SET body = replace(body, 'bob', 'eve') WHERE seq = 6`);
  db.close();
  const { code, err } = await call(['replay', 'verify', '--data-dir', dir], { cwd: dir });
  t.is(code, 1);
  t.regex(err, /^HF_LOG_CORRUPT\n {2}Record 6 cannot be trusted/);
});

test('[C4] without a configuration it is said where the machines come from', async (t) => {
  const dir = await folder(t);
  const { code, err } = await call(['replay', 'verify', '--data-dir', dir], { cwd: tempDir(t) });
  t.is(code, 2);
  t.regex(
    err,
    /^HF_REPLAY_MACHINES\n {2}A replay needs the machines .* no configuration at .*plugins\.config\.ts/,
  );
});

test('[C4] records of actors that no plugin registers are counted, and not passed off as checked', async (t) => {
  const dir = await folder(t);
  const bare = tempDir(t);
  writeConfig(bare, 'export default defineConfig({ plugins: [] });');
  const { code, out } = await call(['replay', 'verify', '--data-dir', dir], { cwd: bare });
  t.is(code, 0);
  t.regex(out, /^No record could be compared\./);
  t.regex(
    out,
    /\d+ records of test\.door were not compared: they were made by version 1 .*, and no plugin here declares that type\./,
  );
});

test('[C4] two decisions are compared line by line, long common stretches left out', (t) => {
  const same = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const lines = difference([...same, 'old', 'end'], [...same, 'new', 'more', 'end']);
  t.deepEqual(lines, [
    { mark: '…', text: '' },
    { mark: ' ', text: 'line 17' },
    { mark: ' ', text: 'line 18' },
    { mark: ' ', text: 'line 19' },
    { mark: '-', text: 'old' },
    { mark: '+', text: 'new' },
    { mark: '+', text: 'more' },
    { mark: ' ', text: 'end' },
  ]);
});
