import { execFile } from 'node:child_process';
import { lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { readRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import { startChild } from '../support/disk.ts';
import { tempDir } from '../support/temp.ts';

const binary = new URL('../../bin/holdfast.js', import.meta.url);
const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).pathname);
const PLUGINS = {
  router: 'router/index.ts',
  memory: 'memory/index.ts',
  memoryStore: 'memory-store/index.ts',
  restore: 'restore/index.ts',
  consolePlugin: 'console/index.ts',
  uptimeMonitor: 'uptime-monitor/index.ts',
  uptime: 'uptime/index.ts',
  collector: 'collector/index.ts',
  otlp: 'otlp/index.ts',
  columnar: 'columnar/index.ts',
} as const;

interface Closed {
  readonly dir: string;
  readonly dataDir: string;
  /** Runs `holdfast` as another process. */
  run(...argv: string[]): Promise<{ code: number; out: string; err: string }>;
}

/** Starts `holdfast` as a user would, each surface with the given options. */
async function start(
  t: ExecutionContext,
  listening: (surface: string, dir: string) => object,
): Promise<Closed> {
  const dir = tempDir(t);
  const dataDir = join(dir, 'data');
  mkdirSync(join(dir, 'run'), { mode: 0o700 });
  writeFileSync(join(dir, 'token'), 'the-token-of-all\n', { mode: 0o600 });
  const calls = Object.keys(PLUGINS).map((name) => {
    const surfaces = ['router', 'memoryStore', 'consolePlugin', 'uptimeMonitor', 'otlp'];
    const options = surfaces.includes(name) ? { port: 0, ...listening(name, dir) } : {};
    const extra = name === 'otlp' ? { grpcPort: 0 } : {};
    return `${name}(${JSON.stringify({ ...options, ...extra })})`;
  });
  const config = join(dir, 'plugins.config.ts');
  writeFileSync(
    config,
    `import { defineConfig } from ${source('index.ts')};
     ${Object.entries(PLUGINS)
       .map(([name, path]) => `import { ${name} } from ${source(`plugins/${path}`)};`)
       .join('\n')}
     export default defineConfig({ plugins: [${calls.join(', ')}] });`,
  );
  const common = ['--data-dir', dataDir, '--config', config];
  const child = startChild(t, binary, ['start', ...common], { NODE_NO_WARNINGS: '1' });
  while (readRuntimeFile(dataDir)?.pid !== child.process.pid) {
    if (child.process.exitCode !== null) throw new Error(child.errors.join('\n'));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    dir,
    dataDir,
    async run(...argv) {
      try {
        const { stdout, stderr } = await promisify(execFile)(binary.pathname, [...argv, ...common], {
          timeout: 60_000,
        });
        return { code: 0, out: stdout, err: stderr };
      } catch (error) {
        const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
        return { code, out: stdout, err: stderr };
      }
    },
  };
}

/** What an operator does every day, on whatever the surfaces listen. */
async function everydayCommandsWork(t: ExecutionContext, { run }: Closed): Promise<void> {
  const status = await run('status');
  t.is(status.code, 0, status.out + status.err);
  const got = await run('router', 'get');
  t.is(got.code, 0, got.err);
  t.regex(got.out, /"ncid"/);
  const set = await run('router', 'apply', '--set', 'interface.vlan.eth1.40.ipv4=10.77.41.1/24', '--yes');
  t.is(set.code, 0, set.out + set.err);
  const api = JSON.parse((await run('doctor', 'router', '--json')).out) as {
    checks: { name: string; state: string; found: string }[];
  };
  t.is(api.checks.find(({ name }) => name === 'router.api')?.state, 'ok', JSON.stringify(api.checks));
  const seeded = await run('backup', 'seed', '--synthetic');
  t.is(seeded.code, 0, seeded.out + seeded.err);
  const snapshot = await run('backup', 'snapshot');
  t.is(snapshot.code, 0, snapshot.out + snapshot.err);
  const drill = await run('restore', 'drill', '--path', 'a');
  t.is(drill.code, 0, drill.out + drill.err);
  const probe = await run('stack', 'probe');
  t.is(probe.code, 0, probe.out + probe.err);
}

test.serial(
  '[C14] with every surface on a Unix socket, the commands find them by runtime.json',
  async (t) => {
    t.timeout(240_000);
    const closed = await start(t, (name, dir) => ({ socket: { path: join(dir, 'run', `${name}.sock`) } }));
    const { surfaces } = readRuntimeFile(closed.dataDir)!;
    for (const name of ['router', 'memory', 'console', 'uptime', 'otlpHttp']) {
      const url = surfaces[name]?.url ?? '';
      t.true(url.startsWith('unix:'), `${name} ${url}`);
      t.is(lstatSync(url.slice(5)).mode & 0o777, 0o660, name);
    }
    await everydayCommandsWork(t, closed);
  },
);

test.serial(
  '[C14] with `auth: token` nothing is told without the token, and the commands have it',
  async (t) => {
    t.timeout(240_000);
    const closed = await start(t, (name, dir) =>
      name === 'otlp' ? {} : { auth: 'token', tokenFile: join(dir, 'token') },
    );
    const { surfaces } = readRuntimeFile(closed.dataDir)!;
    for (const [name, path] of [
      ['router', '/v1/config/active'],
      ['memory', '/collections'],
      ['console', '/healthz'],
      ['console', '/metrics'],
      ['uptime', '/'],
    ] as const) {
      const { url } = surfaces[name]!;
      t.is((await fetch(url + path)).status, 401, `${name}${path}`);
      const headers = { authorization: 'Bearer the-token-of-all' };
      t.is((await fetch(url + path, { headers })).status, 200, `${name}${path}`);
    }
    const push = readFileSync(join(closed.dataDir, 'secrets', 'push', 'router-ula'), 'utf8').trim();
    const beat = await fetch(`${surfaces.uptime!.url}/api/push/${push}?status=up`);
    t.deepEqual(await beat.json(), { ok: true }, 'a push has its token in its path');
    await everydayCommandsWork(t, closed);
  },
);
