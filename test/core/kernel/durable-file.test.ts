import { lstatSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { replaceFile } from '../../../src/core/kernel/durable-file.ts';
import { tempDir } from '../../support/temp.ts';

test('[C9] a file is replaced as a whole, whatever a kill or another user left in place of its draft', (t) => {
  const folder = tempDir(t);
  const file = join(folder, 'head');
  const other = join(folder, 'other');
  writeFileSync(other, 'precious');
  writeFileSync(file, 'old');
  symlinkSync(other, `${file}.new`);
  replaceFile(file, 'new');
  t.is(readFileSync(file, 'utf8'), 'new');
  t.is(lstatSync(file).mode & 0o777, 0o600);
  t.is(readFileSync(other, 'utf8'), 'precious');
  t.deepEqual(readdirSync(folder).toSorted(), ['head', 'other']);
});
