import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'yaml';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { call, root, spawnHoldfast, writeConfig } from '../../support/cli.ts';
import { type ColumnarServer, startColumnarServer } from '../../support/columnar-server.ts';
import { tempDir } from '../../support/temp.ts';

/** Tells at the end how much memory the process had at most, KiB. */
const MEASURE = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => process.stderr.write('\\nmost memory: ' + process.resourceUsage().maxRSS + '\\n'))",
)}`;

let database: ColumnarServer;
test.before(async () => {
  database = await startColumnarServer();
});
test.after.always(() => database.close());

/** A folder as the job has it, and a monitor. */
async function rig(t: ExecutionContext) {
  const cwd = tempDir(t);
  const dataDir = join(cwd, 'data');
  mkdirSync(join(dataDir, 'secrets', 'push'), { recursive: true, mode: 0o700 });
  writeFileSync(join(dataDir, 'secrets', 'push', 'clickstack-watchdog'), 'tok123\n', { mode: 0o600 });
  const beats: string[] = [];
  const state = { hangs: false, asked: () => {} };
  const server: Server = createServer((request, response) => {
    state.asked();
    if (state.hangs) return;
    beats.push(request.url ?? '');
    response.end('{"ok":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const push = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = writeConfig(
    cwd,
    `export default defineConfig({ plugins: [columnar({ url: '${database.url}' }), uptime({ url: '${push}' }), watchdog()] });`,
    ['columnar', 'uptime', 'watchdog'].map(
      (name) => `import { ${name} } from '${root}src/plugins/${name}/index.ts';`,
    ),
  );
  const argv = ['watchdog', 'run', '--data-dir', dataDir, '--config', config];
  return { cwd, dataDir, argv, beats, state };
}

const WELL = /^stale=\d+s drift=0\n\{"ok":true\}\n$/;

test.serial(
  '[O12,O13] a run of its own process prints its line, sends the heartbeat, and has 256 MiB and to spare',
  async (t) => {
    const { cwd, argv, beats } = await rig(t);
    const env = { NODE_OPTIONS: `--import=${MEASURE}` };
    const { code, out, err } = await spawnHoldfast(t, argv, { cwd, env }).ended;
    t.regex(out, WELL, err);
    t.is(code, 0);
    t.is(beats.length, 1);
    const mib = Number(/most memory: (\d+)/.exec(err)?.[1]) / 1_024;
    t.log(`${mib.toFixed(0)} MiB at most`);
    t.true(mib > 20 && mib < 256, `${mib} MiB`);
  },
);

test.serial(
  '[O12,O13] it writes nowhere but into its data folder: a read-only root is enough for it',
  async (t) => {
    const { cwd, argv, dataDir } = await rig(t);
    const script =
      'mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && exec "$@"';
    const { status, stdout, stderr } = await ended(
      ['-m', 'sh', '-c', script, 'sh', dataDir, process.execPath, join(root, 'bin/holdfast.js'), ...argv],
      cwd,
    );
    if (/Operation not permitted|unshare failed/.test(stderr)) {
      t.log('this machine gives tests no mounts of their own: only the manifest was looked at');
      return t.pass();
    }
    t.regex(stdout, WELL, stderr);
    t.is(status, 0);
  },
);

async function ended(args: readonly string[], cwd: string) {
  const run = promisify(execFile);
  const env = { PATH: process.env.PATH, TMPDIR: '/nowhere', HOME: '/nowhere' };
  try {
    const { stdout, stderr } = await run('unshare', args, { cwd, env, timeout: 60_000 });
    return { status: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, stdout, stderr };
  }
}

async function records(dataDir: string): Promise<LogRecord[]> {
  const reader = new SqliteReader(dataDir);
  try {
    return await Array.fromAsync(reader.read());
  } finally {
    reader.close();
  }
}

test.serial(
  '[O13,O14] a run that does not end is given up, one that is killed is told by the next, and no heartbeat hides either',
  async (t) => {
    const { cwd, dataDir, argv, beats, state } = await rig(t);
    state.hangs = true;
    const late = await spawnHoldfast(t, [...argv, '--deadline', '3'], { cwd }).ended;
    t.is(late.out, 'DEADLINE EXCEEDED: the run did not end within 3 s\n', late.err);
    t.is(late.code, 124);

    const isAsked = new Promise<void>((resolve) => {
      state.asked = resolve;
    });
    const doomed = spawnHoldfast(t, argv, { cwd });
    await isAsked;
    doomed.child.kill('SIGKILL');
    t.is((await doomed.ended).signal, 'SIGKILL');
    t.deepEqual(beats, []);

    state.hangs = false;
    const next = await spawnHoldfast(t, argv, { cwd }).ended;
    t.regex(next.out, WELL, next.err);
    t.regex(next.err, /The run before, which began at 20\S+, sent no heartbeat\. RUN KILLED: /);
    t.is(beats.length, 1);
    const told = (await records(dataDir)).flatMap(({ effects }) =>
      effects.flatMap(({ type, params }) => (type === 'watchdog.report' ? [params as any] : [])),
    );
    t.deepEqual(
      told.map(({ outcome }) => outcome).slice(-2),
      ['killed', 'delivered'],
      'the one that was killed could not say so itself',
    );
    for (const wrong of ['0', '121', 'x'])
      t.is((await call([...argv, '--deadline', wrong], { cwd })).code, 2);
  },
);

const deployed = (name: string) => readFileSync(join(root, 'deploy', name), 'utf8');

test.serial(
  '[O10,O13] kubectl knows every field of the CronJob, and it can do no more than it must',
  async (t) => {
    const dir = tempDir(t);
    const file = join(root, 'deploy/watchdog.cronjob.yaml');
    // It decodes into its own types and writes them again: an unknown field would be gone, another type an error.
    const args = ['set', 'image', '--local', '-f', file, 'watchdog=holdfast:next', '-o', 'json'];
    const env = { ...process.env, HOME: dir };
    const { stdout } = await promisify(execFile)('kubectl', args, { timeout: 20_000, env });
    const meant = parse(deployed('watchdog.cronjob.yaml'));
    meant.spec.jobTemplate.spec.template.spec.containers[0].image = 'holdfast:next';
    t.like(JSON.parse(stdout), meant);
    const { backoffLimit, activeDeadlineSeconds, template } = meant.spec.jobTemplate.spec;
    t.deepEqual([meant.spec.schedule, backoffLimit, activeDeadlineSeconds], ['*/5 * * * *', 0, 120]);
    const [container] = template.spec.containers;
    t.is(container.resources.limits.memory, '256Mi');
    t.like(container.securityContext, { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    // What it may write to: the data, and a place in memory for its token.
    const writable = container.volumeMounts.filter(({ readOnly }: { readOnly?: boolean }) => !readOnly);
    t.deepEqual(
      writable.map(({ name }: { name: string }) => name),
      ['own', 'data'],
    );
  },
);

test.serial('[O10] systemd understands the timer and its unit', (t) => {
  const dir = tempDir(t);
  const program = join(dir, 'node');
  writeFileSync(program, '#!/bin/sh\n');
  chmodSync(program, 0o755);
  for (const name of ['watchdog.service', 'watchdog.timer']) {
    writeFileSync(join(dir, name), deployed(name).replace('/opt/holdfast/node_modules/.bin/node', program));
  }
  const { status, stderr, error } = spawnSync(
    'systemd-analyze',
    ['verify', '--recursive-errors=no', join(dir, 'watchdog.service'), join(dir, 'watchdog.timer')],
    { encoding: 'utf8', timeout: 20_000 },
  );
  if (error) {
    t.log('this machine has no systemd-analyze: only the settings were looked at');
  } else {
    t.is(
      stderr
        .split('\n')
        .filter((line) => line.includes('watchdog'))
        .join('\n'),
      '',
    );
    t.is(status, 0, stderr);
  }
  t.regex(deployed('watchdog.service'), /^MemoryMax=256M$/m);
  t.regex(deployed('watchdog.timer'), /^OnCalendar=\*:0\/5$/m);
});
