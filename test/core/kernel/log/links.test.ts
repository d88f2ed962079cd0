import { lstatSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { readRuntimeFile, writeRuntimeFile } from '../../../../src/core/host/runtime/runtime-file.ts';
import { lockDataDir } from '../../../../src/core/kernel/log/lock.ts';
import { tempDir } from '../../../support/temp.ts';

test('what somebody linked into the data folder is not written through', (t) => {
  const dir = tempDir(t);
  const precious = join(tempDir(t), 'precious');
  writeFileSync(precious, 'precious');
  symlinkSync(precious, join(dir, 'lock.pid'));
  symlinkSync(precious, join(dir, 'runtime.json.new'));

  const unlock = lockDataDir(dir);
  t.teardown(unlock);
  const content = { pid: process.pid, startedAt: '2026-01-31T03:05:07.000Z', version: '0', surfaces: {} };
  writeRuntimeFile(dir, content);

  t.is(readFileSync(precious, 'utf8'), 'precious');
  t.deepEqual(readRuntimeFile(dir), content);
  for (const name of ['lock.pid', 'runtime.json']) {
    const { mode } = lstatSync(join(dir, name));
    t.is(mode, 0o100600, name);
  }
});
