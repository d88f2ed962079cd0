import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { postControl } from '../../src/core/host/operations/control-client.ts';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';
import { startInstance, writeConfig } from '../support/instance.ts';
import { tempDir } from '../support/temp.ts';

const run = promisify(execFile);
const binary = new URL('../../bin/holdfast.js', import.meta.url).pathname;
const isRoot = process.geteuid?.() === 0;
const other = isRoot ? 65_534 : (process.geteuid?.() ?? 0);

const POST = `
  fetch(process.argv[1] + '/v1/config/apply_current_config', { method: 'POST' }).then(async (answer) => {
    process.exit(answer.status === 200 ? 0 : 1);
  });
`;

test('[C14] records say which user of this machine wrote, whatever name the caller gives', async (t) => {
  t.timeout(180_000);
  const dir = tempDir(t);
  const config = writeConfig(dir, { port: 0 });
  const dataDir = join(dir, 'data');
  const { router } = await startInstance(t, dataDir, config);
  await run(process.execPath, ['-e', POST, router], { uid: other, cwd: '/' });
  await postControl(
    dataDir,
    '/reconciler/unit/pause',
    { by: 'somebody-else', forMs: 60_000 },
    AbortSignal.timeout(10_000),
  );
  const holdfast = async (...argv: string[]) =>
    (await run(binary, [...argv, '--data-dir', dataDir, '--config', config], { maxBuffer: 1e8 })).stdout;
  const records: LogRecord[] = JSON.parse(await holdfast('log', 'list', '--all', '--json', '--limit', '0'));
  const applied = records.find(({ event }) => event.type === 'APPLY_CURRENT')!;
  t.is(applied.uid, other);
  const paused = records.find(({ event }) => JSON.stringify(event).includes('somebody-else'))!;
  t.is(paused.uid, process.geteuid?.());
  t.true(records.filter(({ uid }) => uid !== undefined).every(({ cause }) => cause === undefined));
  const isBy = new RegExp(`by +the user with uid ${other}\\b`);
  t.regex(await holdfast('log', 'show', String(applied.seq)), isBy);
  t.regex((await holdfast('replay', 'explain', String(applied.seq))).replace(/\s+/g, ' '), isBy);
  await holdfast('log', 'verify');
  await holdfast('replay', 'verify');
});
