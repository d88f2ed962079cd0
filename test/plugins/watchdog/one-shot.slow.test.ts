import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { type LogRecord, timerStartOf } from '../../../src/core/kernel/log/record.ts';
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
async function rig(t: ExecutionContext, databaseUrl = database.url) {
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
    `export default defineConfig({ plugins: [columnar({ url: '${databaseUrl}' }), uptime({ url: '${push}' }), watchdog()] });`,
    ['columnar', 'uptime', 'watchdog'].map(
      (name) => `import { ${name} } from '${root}src/plugins/${name}/index.ts';`,
    ),
  );
  const argv = ['watchdog', 'run', '--data-dir', dataDir, '--config', config];
  return { cwd, dataDir, argv, beats, state };
}

/** A server that takes connections and never answers. */
async function silentServer(t: ExecutionContext): Promise<string> {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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
  '[O12] it writes nowhere but into its data folder: a read-only root is enough for it',
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

async function reports(dataDir: string): Promise<any[]> {
  return (await records(dataDir)).flatMap(({ effects }) =>
    effects.flatMap(({ type, params }) => (type === 'watchdog.report' ? [params] : [])),
  );
}

/**
 * The run waited for the deadline that was given and no longer. Its process has ended, though nothing that it asked for was answered:
 * how soon is for the reader of the log.
 */
async function endedAtDeadline(
  t: ExecutionContext,
  dataDir: string,
  { begunAt, endedAt }: { readonly begunAt: number; readonly endedAt: number },
): Promise<void> {
  const timers = (await records(dataDir)).flatMap(({ at: armedAt, effects }) =>
    effects.flatMap((effect) => {
      const timer = timerStartOf(effect);
      return timer?.timer.includes('deadline') ? [{ at: timer.at, lasts: timer.at - armedAt }] : [];
    }),
  );
  t.is(timers.length, 1);
  const [{ at, lasts } = { at: 0, lasts: -1 }] = timers;
  t.true(lasts >= 0 && lasts <= 3_000, `${lasts} ms`);
  const startMs = at - lasts - begunAt;
  t.log(`the process ended ${endedAt - at} ms after the deadline, and took ${startMs} ms to start`);
}

test.serial(
  '[O13] a database that does not answer holds no run beyond the deadline that was given for it',
  async (t) => {
    const { cwd, dataDir, argv, beats } = await rig(t, await silentServer(t));
    const begunAt = Date.now();
    const { code, out, err } = await spawnHoldfast(t, [...argv, '--deadline', '3'], { cwd }).ended;
    const endedAt = Date.now();
    t.is(out, 'DEADLINE EXCEEDED: the run did not end within 3 s\n', err);
    t.is(code, 124);
    t.deepEqual(beats, []);
    t.like((await reports(dataDir)).at(-1), { outcome: 'killed', exitCode: 124 });
    await endedAtDeadline(t, dataDir, { begunAt, endedAt });
  },
);

test.serial(
  '[O13,O14] a run that does not end is given up, one that is killed is told by the next, and no heartbeat hides either',
  async (t) => {
    const { cwd, dataDir, argv, beats, state } = await rig(t);
    state.hangs = true;
    const begunAt = Date.now();
    const late = await spawnHoldfast(t, [...argv, '--deadline', '3'], { cwd }).ended;
    const endedAt = Date.now();
    // How far it came depends on how long the process took to start.
    t.regex(
      late.out,
      /^DEADLINE EXCEEDED: the run did not end within 3 s(?:; its heartbeat had been sent.*)?\n$/,
    );
    t.is(late.code, 124, late.err);
    const { outcome, lines } = (await reports(dataDir)).at(-1);
    t.is(`${outcome}: ${lines[0]}\n`, `killed: ${late.out}`, 'the log has the same');
    await endedAtDeadline(t, dataDir, { begunAt, endedAt });

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
    t.deepEqual(
      (await reports(dataDir)).map(({ outcome, lines }) => `${outcome}: ${/^\w+/.exec(lines[0])?.[0]}`),
      ['killed: DEADLINE', 'killed: RUN', 'delivered: stale'],
      'one report for each run, also for the one that could not report itself',
    );
    for (const wrong of ['0', '121', 'x'])
      t.is((await call([...argv, '--deadline', wrong], { cwd })).code, 2);
  },
);
