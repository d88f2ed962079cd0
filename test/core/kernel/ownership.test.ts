import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { loadConfig } from '../../../src/core/host/config/load.ts';
import { readRuntimeFile, writeRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { lockDataDir } from '../../../src/core/kernel/log/lock.ts';
import { createSecretFile, readSecretFile } from '../../../src/core/kernel/secret-file.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';

const NOBODY = 65_534;
const DAEMON = 1;
const KERNEL = new URL('../../../src/core/kernel/', import.meta.url).href;

function folder(dir: string, name: string, mode: number, owner = 0): string {
  const path = join(dir, name);
  mkdirSync(path);
  chmodSync(path, mode);
  chownSync(path, owner, 0);
  return path;
}

function file(dir: string, name = 'secret', mode = 0o600, owner = 0): string {
  const path = join(dir, name);
  writeFileSync(path, 'x', { mode });
  chmodSync(path, mode);
  chownSync(path, owner, owner);
  return path;
}

/** Reads a secret as nobody. @returns its content, or the code of the refusal */
function asNobody(path: string, env: Record<string, string> = {}): string {
  const program = `import { readSecretFile } from '${KERNEL}secret-file.ts';
    try { console.log(String(readSecretFile(process.argv[1]))); } catch (error) { console.log(error.message); }`;
  const args = [
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    process.execPath,
    '--input-type=module',
    '-e',
    program,
    path,
  ];
  return execFileSync('setpriv', args, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

test('these attacks are made by other users, so the tests run as root', (t) => {
  t.is(process.geteuid?.(), 0);
});

test('[R27] a secret file of somebody else is refused by its name and owner', (t) => {
  const path = file(tempDir(t), 'secret', 0o600, NOBODY);
  const error = t.throws(() => readSecretFile(path), { code: 'HF_CONFIG_SECRET_OWNER' });
  t.true(error?.message.includes(path));
  t.regex(String(error?.message), /belongs to user nobody \(65534\)/);
});

test('[R27] a secret in a folder that others own or may write is refused, wherever the folder is on the way', (t) => {
  for (const [mode, owner] of [
    [0o777, 0],
    [0o722, 0],
    [0o702, 0],
    [0o755, NOBODY],
    [0o1755, NOBODY],
  ] as const) {
    const outer = folder(tempDir(t), 'outer', mode, owner);
    const inner = folder(outer, 'inner', 0o700);
    for (const path of [file(outer), file(inner)]) {
      const error = t.throws(
        () => readSecretFile(path),
        { code: 'HF_CONFIG_SECRET_FOLDER' },
        `${mode.toString(8)} ${owner}`,
      );
      t.true(error?.message.includes(outer));
    }
    t.throws(() => createSecretFile(join(inner, 'new'), Buffer.from('x')), {
      code: 'HF_CONFIG_SECRET_FOLDER',
    });
    t.false(existsSync(join(inner, 'new')));
  }
});

test('[R27] a secret in a sticky folder of root, as /tmp, and links in it that are root’s are accepted', (t) => {
  const shared = folder(tempDir(t), 'shared', 0o1777);
  const path = file(shared);
  t.is(String(readSecretFile(path)), 'x');
  symlinkSync('secret', join(shared, 'link'));
  t.is(String(readSecretFile(join(shared, 'link'))), 'x');
});

test('[R27] a link that somebody else put into a sticky folder is refused, even to a file of root', (t) => {
  const dir = tempDir(t);
  const shared = folder(dir, 'shared', 0o1777);
  file(dir);
  const link = join(shared, 'link');
  symlinkSync('../secret', link);
  execFileSync('chown', ['-h', 'nobody', link]);
  t.throws(() => readSecretFile(link), {
    code: 'HF_CONFIG_SECRET_FOLDER',
    message: /link belongs to user nobody/,
  });
});

test('[R27] a link into a folder that others write is refused, and so is one through it', (t) => {
  const dir = tempDir(t);
  const open = folder(dir, 'open', 0o777);
  file(open);
  symlinkSync('open/secret', join(dir, 'direct'));
  symlinkSync('open', join(dir, 'through'));
  symlinkSync('open/../target', join(dir, 'past'));
  file(dir, 'target');
  for (const path of ['direct', 'through/secret', 'past'])
    t.throws(() => readSecretFile(join(dir, path)), { code: 'HF_CONFIG_SECRET_FOLDER' }, path);
});

test('[R27] the mounted secrets of Kubernetes and the credentials of systemd can be read', (t) => {
  const volume = folder(tempDir(t), 'volume', 0o1777);
  chmodSync(join(volume, '..'), 0o755);
  const version = folder(volume, '..2026_11_22', 0o755);
  symlinkSync('..2026_11_22', join(volume, '..data'));
  symlinkSync('..data/token', join(volume, 'token'));
  file(version, 'token', 0o400, NOBODY);
  t.is(asNobody(join(volume, 'token')), 'x');
  const credentials = folder(tempDir(t), 'credentials', 0o500, NOBODY);
  chmodSync(join(credentials, '..'), 0o755);
  t.is(asNobody(file(credentials, 'token', 0o400, NOBODY)), 'x');
  chownSync(join(credentials, 'token'), DAEMON, DAEMON);
  chmodSync(credentials, 0o700);
  t.regex(asNobody(join(credentials, 'token')), /HF_CONFIG_SECRET_(OWNER|MISSING)/);
});

test('[R27] where nobody else uses the machine, folders that all may write are accepted, and files of others are not', (t) => {
  const dir = tempDir(t);
  chmodSync(dir, 0o755);
  const volume = folder(dir, 'volume', 0o2777);
  const path = file(volume, 'secret', 0o600, NOBODY);
  t.regex(asNobody(path), /HF_CONFIG_SECRET_FOLDER/);
  t.is(asNobody(path, { HOLDFAST_SOLE_USER: '1' }), 'x');
  const foreign = folder(dir, 'foreign', 0o755, DAEMON);
  t.regex(
    asNobody(file(foreign, 'secret', 0o600, NOBODY), { HOLDFAST_SOLE_USER: '1' }),
    /HF_CONFIG_SECRET_FOLDER/,
  );
});

test('[R27] a folder that a group may write is accepted while the group has no other user', (t) => {
  const dir = folder(tempDir(t), 'group', 0o770);
  t.is(String(readSecretFile(file(dir))), 'x', 'the group of root');
  chownSync(dir, 0, DAEMON);
  t.throws(() => readSecretFile(join(dir, 'secret')), { code: 'HF_CONFIG_SECRET_FOLDER' });
  chownSync(dir, 0, 54_321);
  t.is(String(readSecretFile(join(dir, 'secret'))), 'x', 'nobody is in it');
});

test('[C9] a data folder of somebody else, a way that others may write, and files of others in it are refused before they are opened', (t) => {
  const foreign = folder(tempDir(t), 'data', 0o700, NOBODY);
  t.throws(() => lockDataDir(foreign), { code: 'HF_LOG_OWNER', message: /belongs to user nobody/ });
  t.false(existsSync(join(foreign, 'lock.db')));
  const open = folder(tempDir(t), 'data', 0o777);
  t.throws(() => lockDataDir(open), { code: 'HF_LOG_OWNER', message: /others may write to .*0777/ });
  t.throws(() => lockDataDir(join(open, 'new', 'data')), { code: 'HF_LOG_OWNER' });
  t.throws(() => lockDataDir('/tmp'), { code: 'HF_LOG_OWNER' });
  const planted = folder(tempDir(t), 'data', 0o700);
  file(planted, 'log.db', 0o600, NOBODY);
  t.throws(() => lockDataDir(planted), { code: 'HF_LOG_OWNER', message: /log\.db belongs to user nobody/ });
  const linked = folder(tempDir(t), 'data', 0o700);
  symlinkSync(join(open, 'elsewhere.db'), join(linked, 'log.db'));
  t.throws(() => lockDataDir(linked), { code: 'HF_LOG_OWNER' });
  const own = folder(tempDir(t), 'data', 0o700);
  lockDataDir(own)();
});

test('[C9] the runtime.json of a folder of somebody else names no file whose token would be sent to its address', (t) => {
  const place = { url: 'http://127.0.0.1:9', tokenFile: '/etc/holdfast/token' };
  const content = { pid: 1, startedAt: 'now', version: '1', surfaces: { console: place } };
  const tokensIn = (dir: string) => {
    writeRuntimeFile(dir, content);
    return readRuntimeFile(dir)?.surfaces.console;
  };
  t.deepEqual(tokensIn(folder(tempDir(t), 'data', 0o700, NOBODY)), { url: place.url });
  t.deepEqual(tokensIn(folder(tempDir(t), 'data', 0o777)), { url: place.url });
  const planted = folder(tempDir(t), 'data', 0o700);
  writeRuntimeFile(planted, content);
  chownSync(join(planted, 'runtime.json'), NOBODY, 0);
  t.deepEqual(readRuntimeFile(planted)?.surfaces.console, { url: place.url });
  t.deepEqual(tokensIn(folder(tempDir(t), 'data', 0o700)), place);
});

test('[C11] a configuration that lies in the working directory is run only if nobody else could have written it', async (t) => {
  const text = 'globalThis.ranBy = import.meta.url; export default { plugins: [] };';
  const refusedIn = async (cwd: string, message: RegExp) => {
    await t.throwsAsync(loadConfig({ cwd, env: {} }), { code: 'HF_CONFIG_OWNER', message });
    t.false('ranBy' in globalThis, cwd);
  };
  const put = (cwd: string, owner = 0) => {
    const path = join(cwd, 'plugins.config.ts');
    writeFileSync(path, text);
    chownSync(path, owner, owner);
    return path;
  };
  const theirs = folder(tempDir(t), 'theirs', 0o755, NOBODY);
  put(theirs);
  await refusedIn(theirs, /theirs belongs to user nobody/);
  const open = folder(tempDir(t), 'open', 0o777);
  put(open);
  await refusedIn(open, /others may write/);
  const shared = mkdtempSync('/tmp/holdfast-shared-');
  t.teardown(() => rmSync(shared, { recursive: true, force: true }));
  chmodSync(shared, 0o1777);
  put(shared, NOBODY);
  await refusedIn(shared, /others may write/);
  const planted = folder(tempDir(t), 'planted', 0o755);
  put(planted, NOBODY);
  await refusedIn(planted, /plugins\.config\.ts belongs to user nobody/);
  const linked = folder(tempDir(t), 'linked', 0o755);
  symlinkSync(join(theirs, 'plugins.config.ts'), join(linked, 'plugins.config.ts'));
  await refusedIn(linked, /theirs belongs to user nobody/);
  const named = join(theirs, 'plugins.config.ts');
  t.is((await loadConfig({ cwd: '/', file: named, env: {} })).file, named, '--config is consent');
  const ours = folder(tempDir(t), 'ours', 0o755);
  put(ours);
  await t.notThrowsAsync(loadConfig({ cwd: ours, env: {} }));
});

test('[C11] the command line runs no configuration of others as root, whatever the command', (t) => {
  const cwd = folder(tempDir(t), 'theirs', 0o755, NOBODY);
  writeFileSync(
    join(cwd, 'plugins.config.ts'),
    `import { writeFileSync } from 'node:fs'; writeFileSync('${cwd}/ran', ''); export default { plugins: [] };`,
  );
  const program = new URL('../../../bin/holdfast.js', import.meta.url).pathname;
  for (const args of [['start'], ['status'], ['doctor'], ['log', 'list'], ['graph']]) {
    try {
      execFileSync(process.execPath, [program, ...args], {
        cwd,
        stdio: 'pipe',
        timeout: 60_000,
        env: { PATH: process.env.PATH },
      });
    } catch (error) {
      if (args[0] === 'start')
        t.regex(String((error as { stderr: Buffer }).stderr), /HF_CONFIG_OWNER[\s\S]*--config/);
    }
    t.false(existsSync(join(cwd, 'ran')), args.join(' '));
  }
});

const PROGRAM = new URL('../../../bin/holdfast.js', import.meta.url).pathname;

/** What the command line says to nobody, who may read the program and little else. */
function asNobodyIn(cwd: string, args: readonly string[]): string {
  const user = ['--reuid=65534', '--regid=65534', '--clear-groups'];
  const options = { cwd, encoding: 'utf8', timeout: 60_000, env: { PATH: process.env.PATH } } as const;
  const { stdout, stderr } = spawnSync('setpriv', [...user, process.execPath, PROGRAM, ...args], options);
  return `${stdout}${stderr}`.replace(/\s+/g, ' ');
}

test('[C11,R29] a user who may not read the data folder is told so, and not that nothing has ever run there', (t) => {
  const dir = tempDir(t);
  chmodSync(dir, 0o755);
  const closed = folder(dir, 'closed', 0o700);
  file(closed, 'log.db');
  file(closed, 'lock.db');
  // A folder that may be entered, whose files may not be read.
  const half = folder(dir, 'half', 0o755);
  file(half, 'log.db');
  file(half, 'lock.db');
  for (const data of [closed, half]) {
    for (const args of [['status'], ['log', 'list'], ['log', 'list', '--from', '1'], ['log', 'verify']]) {
      const said = asNobodyIn(dir, [...args, '--data-dir', data]);
      t.regex(said, /may not be read by user nobody/, args.join(' '));
      t.regex(said, /sudo -u/);
      t.notRegex(said, /never run|There is no event log/);
    }
  }
  t.regex(asNobodyIn(dir, ['status', '--data-dir', join(dir, 'nothing')]), /never run/);
});

test('[C11] a data folder of somebody else in the working directory is not read, unless it is named', async (t) => {
  const refused = async (cwd: string, reason: RegExp) => {
    for (const args of [
      ['status'],
      ['log', 'list'],
      ['log', 'show', '1'],
      ['doctor'],
      ['replay', 'verify'],
    ]) {
      const { code, err } = await call(args, { cwd });
      t.is(code, 2, args.join(' '));
      t.regex(err, /HF_CONFIG_DATA_OWNER/);
      t.regex(err.replace(/\s+/g, ' '), reason);
      t.regex(err.replace(/\s+/g, ' '), /--data-dir/);
    }
  };
  const ours = folder(tempDir(t), 'ours', 0o755);
  const planted = folder(ours, '.holdfast', 0o755, NOBODY);
  await refused(ours, /\.holdfast belongs to user nobody/);
  const named = await call(['status', '--data-dir', planted], { cwd: ours });
  t.regex(named.out, /never run/);
  const open = folder(tempDir(t), 'open', 0o777);
  folder(open, '.holdfast', 0o700);
  await refused(open, /others may write to .*open/);
  const theirs = folder(tempDir(t), 'theirs', 0o755, NOBODY);
  folder(theirs, '.holdfast', 0o700);
  writeFileSync(join(theirs, 'plugins.config.ts'), 'export default { plugins: [] };');
  await refused(theirs, /theirs belongs to user nobody/);
  const empty = await call(['status'], { cwd: folder(tempDir(t), 'empty', 0o777) });
  t.regex(empty.out, /never run/, 'there is nothing to read');
});
