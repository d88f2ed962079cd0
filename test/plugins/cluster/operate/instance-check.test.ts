import test, { type ExecutionContext } from 'ava';
import { writeRuntimeFile } from '../../../../src/core/host/runtime/runtime-file.ts';
import { lockDataDir } from '../../../../src/core/kernel/log/lock.ts';
import { lookAt } from '../../../../src/plugins/cluster/operate/checks.ts';
import { clusterOptions } from '../../../../src/plugins/cluster/options.ts';
import { tempDir } from '../../../support/temp.ts';

const options = clusterOptions.parse({ servers: 'nats://127.0.0.1:4222', host: 'a', keyFile: '/no/key' });

/** What `doctor cluster` says of an instance whose health page gave no answer. */
const look = (dataDir: string) =>
  lookAt('instance', options, { dataDir, signal: new AbortController().signal });

function lockedFolder(t: ExecutionContext): string {
  const dataDir = tempDir(t);
  t.teardown(lockDataDir(dataDir));
  return dataDir;
}

test('[C13] doctor cluster says that no instance runs where the data folder is free', async (t) => {
  t.like(await look(tempDir(t)), { state: 'unknown', found: 'none runs on this data folder' });
});

test('[C13] doctor cluster says of a frozen instance that it runs and does not answer', async (t) => {
  const dataDir = lockedFolder(t);
  const surfaces = { console: { url: 'http://127.0.0.1:7801' } };
  writeRuntimeFile(dataDir, { pid: process.pid, startedAt: '2026-11-23', version: '0.2.0', surfaces });
  const { state, found, remedy = '' } = await look(dataDir);
  t.is(state, 'fail');
  t.is(found, `process ${process.pid} runs, and its health page does not answer`);
  t.regex(remedy, /kill -CONT/);
});

test('[C13] doctor cluster cannot tell of an instance without a health page', async (t) => {
  const { state, found } = await look(lockedFolder(t));
  t.is(state, 'unknown');
  t.regex(found, /^process \d+ runs, and has no health page/);
});
