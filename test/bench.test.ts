import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import test from 'ava';

test('npm run bench loads every benchmark, and names them all when it is asked for another', (t) => {
  const script = fileURLToPath(new URL('../bench/run.ts', import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, 'nothing'], { encoding: 'utf8' });
  t.is(status, 2, stderr);
  t.regex(stderr, /^There is no benchmark nothing; choose from: append, stall, .*gateway, .*router, /m);
});
