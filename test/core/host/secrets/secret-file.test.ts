import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { readTokenFile } from '../../../../src/core/host/secrets/token-file.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { createSecretFile, readSecretFile } from '../../../../src/core/kernel/secret-file.ts';
import { tempDir } from '../../../support/temp.ts';

function secret(dir: string, content: string | Buffer, mode = 0o600): string {
  const file = join(dir, 'token');
  writeFileSync(file, content, { mode });
  chmodSync(file, mode);
  return file;
}

test('[R27] a token is read without the line break of an editor', (t) => {
  t.is(readTokenFile(secret(tempDir(t), 'abc-123\n')), 'abc-123');
});

test('[R27] a token is read anew each time, so a rotated one counts at once', (t) => {
  const dir = tempDir(t);
  const file = secret(dir, 'first');
  t.is(readTokenFile(file), 'first');
  writeFileSync(file, 'second');
  t.is(readTokenFile(file), 'second');
});

test('[R27] a file of a wider mode is refused', (t) => {
  for (const mode of [0o644, 0o640, 0o604, 0o602, 0o610]) {
    t.true(
      isCoded(
        t.throws(() => readTokenFile(secret(tempDir(t), 'x', mode))),
        'HF_CONFIG_SECRET_MODE',
      ),
    );
  }
  t.is(readTokenFile(secret(tempDir(t), 'x', 0o400)), 'x');
});

test('[R27] the mode that counts is that of the file behind a link', (t) => {
  const dir = tempDir(t);
  const file = secret(dir, 'x', 0o644);
  symlinkSync(file, join(dir, 'link'));
  t.true(
    isCoded(
      t.throws(() => readTokenFile(join(dir, 'link'))),
      'HF_CONFIG_SECRET_MODE',
    ),
  );
  chmodSync(file, 0o600);
  t.is(readTokenFile(join(dir, 'link')), 'x');
});

test('[R27] an empty file, several lines and control characters are no token', (t) => {
  for (const content of ['', ' \n', 'a\nb', 'a\r\nb', 'a\u0000b', 'a\u007fb']) {
    t.true(
      isCoded(
        t.throws(() => readTokenFile(secret(tempDir(t), content))),
        'HF_CONFIG_SECRET_INVALID',
      ),
    );
  }
});

test('[R27] a missing file, a folder, a pipe and a huge file are refused by name, without waiting', (t) => {
  const dir = tempDir(t);
  t.true(
    isCoded(
      t.throws(() => readSecretFile(join(dir, 'no'))),
      'HF_CONFIG_SECRET_MISSING',
    ),
  );
  mkdirSync(join(dir, 'folder'), { mode: 0o700 });
  t.true(
    isCoded(
      t.throws(() => readSecretFile(join(dir, 'folder'))),
      'HF_CONFIG_SECRET_INVALID',
    ),
  );
  execFileSync('mkfifo', ['-m', '600', join(dir, 'pipe')]);
  t.true(
    isCoded(
      t.throws(() => readSecretFile(join(dir, 'pipe'))),
      'HF_CONFIG_SECRET_INVALID',
    ),
  );
  const huge = secret(dir, Buffer.alloc(65 * 1024));
  t.true(
    isCoded(
      t.throws(() => readSecretFile(huge)),
      'HF_CONFIG_SECRET_INVALID',
    ),
  );
});

test('[R32] a secret file is created once and then left alone', (t) => {
  const file = join(tempDir(t), 'secrets', 'key');
  t.true(createSecretFile(file, Buffer.from('first')));
  t.false(createSecretFile(file, Buffer.from('second')));
  t.is(readSecretFile(file).toString(), 'first');
});
