import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { call } from '../../support/cli.ts';
import { type ColumnarServer, startColumnarServer } from '../../support/columnar-server.ts';
import { tempDir } from '../../support/temp.ts';

let server: ColumnarServer;
test.before(async () => {
  server = await startColumnarServer();
});
test.after.always(() => server.close());
test.beforeEach(() => {
  server.fault = 'none';
  server.password = '';
});

interface Running {
  readonly runtime: Runtime;
  readonly dataDir: string;
  readonly lines: string[];
  /** `GET /healthz`. */
  health(): Promise<any>;
}

async function start(
  t: ExecutionContext,
  options: Parameters<typeof columnar>[0],
  dataDir = tempDir(t),
): Promise<Running> {
  const lines: string[] = [];
  const logger = createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } });
  const config = {
    plugins: [columnar({ checkMs: 100, ...options }), secretsFolder(), consolePlugin({ port: 0 })],
  };
  const { plugins } = resolveConfig(config, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const console = readRuntimeFile(dataDir)?.surfaces.console?.url;
  return { runtime, dataDir, lines, health: async () => (await fetch(`${console}/healthz`)).json() };
}

async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test.serial(
  '[O7] a server that is away holds up no start, and the log shows when it is lost and back',
  async (t) => {
    await server.stop();
    const { health, runtime, dataDir } = await start(t, { url: server.url });
    const away = await until(async () => {
      const { status, columnar } = await health();
      return columnar?.state === 'lost' && { status, columnar };
    });
    t.is(away.status, 'degraded');
    t.regex(away.columnar.reason, /cannot be reached: nothing listens there/);
    await server.restart();
    await until(async () => (await health()).columnar.state === 'connected');
    await runtime.stop('test');
    const log = new SqliteReader(dataDir);
    const told: string[] = [];
    for await (const { actor, event, effects } of log.read({}))
      if (actor === 'columnar.connection/database')
        told.push([event.type, ...effects.map(({ type }) => type)].join(' '));
    log.close();
    t.deepEqual(
      told.filter((text) => !text.startsWith('effect.')),
      ['init', 'LOST alerts.raise', 'CONNECTED'],
    );
  },
);

test.serial(
  '[O7] the password comes from the secrets store by reference, a renewed one without a restart; none is shown',
  async (t) => {
    const dataDir = tempDir(t);
    const secret = join(dataDir, 'secrets', 'store', 'clickstack', 'admin_password');
    mkdirSync(join(secret, '..'), { recursive: true, mode: 0o700 });
    writeFileSync(secret, 'canary-one', { mode: 0o600 });
    server.password = 'canary-one';
    const { health, lines } = await start(
      t,
      { url: server.url, password: 'clickstack#admin_password' },
      dataDir,
    );
    await until(async () => (await health()).columnar.state === 'connected');
    server.password = 'canary-two';
    const away = await until(async () => {
      const { columnar } = await health();
      return columnar.state === 'lost' && columnar;
    });
    t.regex(away.reason, /does not accept the user or the password/);
    writeFileSync(secret, 'canary-two', { mode: 0o600 });
    await until(async () => (await health()).columnar.state === 'connected');
    t.notRegex(lines.join('') + JSON.stringify(await health()), /canary/);
  },
);

test.serial(
  '[O20,O22,O26] commands ask the running instance, without one the server; where neither is, they say what to do',
  async (t) => {
    const { runtime, dataDir } = await start(t, { url: server.url });
    const cwd = tempDir(t);
    const source = (path: string) =>
      JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);
    let files = 0;
    const config = (options: object) => {
      // A module is loaded once: each config is a file of its own.
      files += 1;
      const file = join(cwd, `plugins-${files}.config.ts`);
      writeFileSync(
        file,
        `import { defineConfig } from ${source('index.ts')};
       import { columnar } from ${source('plugins/columnar/index.ts')};
       export default defineConfig({ plugins: [columnar(${JSON.stringify(options)})] });`,
      );
      return ['--config', file, '--data-dir', dataDir];
    };
    const embedded = config({});
    const query = ['stack', 'query', 'SELECT 1 AS one, toUInt64(18446744073709551615) AS big', '--json'];
    const asked = await call([...query, ...embedded], { cwd });
    t.is(asked.code, 0, asked.err);
    t.like(JSON.parse(asked.out), { rows: [[1, '18446744073709551615']], truncated: false });

    const table = await call(
      ['stack', 'query', 'SELECT number AS n FROM numbers(9)', '--limit', '2', ...embedded],
      { cwd },
    );
    t.deepEqual(table.out.trim().split('\n'), ['n', '0', '1']);
    t.regex(table.err, /2 rows in \d+ ms \(there are more: --limit\)/);

    const create = 'SHOW CREATE TABLE otel_traces';
    const piped = await call(['stack', 'query', create, ...embedded], { cwd });
    const [[whole]] = JSON.parse(
      (await call(['stack', 'query', create, '--json', ...embedded], { cwd })).out,
    ).rows;
    t.regex(whole, /\n.*TTL.*\nSETTINGS/s);
    t.is(piped.out, `statement\n${whole}\n`, 'a single value is printed as it is');
    const wide =
      "SELECT number AS n, concat(repeat('x', 300), '\\n\\\\ ', repeat('y', 9)) AS text FROM numbers(2)";
    const rows = await call(['stack', 'query', wide, ...embedded], { cwd });
    const text = `${'x'.repeat(300)}\\n\\\\ ${'y'.repeat(9)}`;
    t.deepEqual(rows.out.trim().split('\n').slice(1), [`0  ${text}`, `1  ${text}`]);

    const refused = await call(['stack', 'query', 'DROP TABLE otel_logs', '--json', ...embedded], { cwd });
    t.is(refused.code, 1);
    t.is(JSON.parse(refused.err).error.code, 'HF_COLUMNAR_REFUSED');
    t.is((await call(['stack', 'query', 'SELECT 1', '--limit', '0', ...embedded], { cwd })).code, 2);

    const mistakes = [
      ["SELECT * FROM otel_metrics_gauge WHERE MetricName = 'file.mtime'", 'HF_COLUMNAR_WRONG_TABLE'],
      [
        "SELECT SpanAttributes['http.target'] AS target, count() FROM otel_traces GROUP BY target",
        'HF_COLUMNAR_RAW_TARGET',
      ],
    ] as const;
    const explained = async (place: readonly string[]) => {
      for (const [sql, code] of mistakes) {
        const { err } = await call(['stack', 'query', sql, '--json', ...place], { cwd });
        t.is(JSON.parse(err).error.code, code, sql);
      }
    };
    await explained(embedded);

    const verified = await call(['stack', 'verify', ...embedded], { cwd });
    t.is(verified.code, 0, verified.err);
    t.regex(verified.out, /warn +no logs have ever arrived/);
    const old = "INSERT INTO otel_logs (Timestamp, ServiceName) VALUES (now() - INTERVAL 1 HOUR, 'shop')";
    t.is((await fetch(server.url, { method: 'POST', body: old })).status, 200);
    const stale = await call(['stack', 'verify', ...embedded], { cwd });
    t.is(stale.code, 1, 'a finding that is no mere warning');
    t.regex(stale.out, /fail +logs: the newest is \d+ s old/);
    const nas = await call(['stack', 'nas', '--host', 'nas-1', '--json', ...embedded], { cwd });
    t.is(nas.code, 1);
    t.is(JSON.parse(nas.out).logsLastHour, 0);
    t.is((await call(['stack', 'nas', ...embedded], { cwd })).code, 2);

    await runtime.stop('test');
    const none = await call([...query, ...config({})], { cwd });
    t.is(none.code, 1);
    t.is(JSON.parse(none.err).error.code, 'HF_COLUMNAR_NOT_RUNNING');
    const direct = await call([...query, ...config({ url: server.url })], { cwd });
    t.is(direct.code, 0, direct.err);
    const doctor = await call(
      ['doctor', 'stack', '--json', ...config({ url: server.url, native: '127.0.0.1:1' })],
      { cwd },
    );
    await explained(config({ url: server.url }));
    t.regex(doctor.out, /seven tables, made by Holdfast/);
    const nativeOf = ({ out }: { out: string }) =>
      JSON.parse(out).checks.find(({ name }: any) => name === 'stack.columnar_native');
    t.like(nativeOf(doctor), { state: 'warn', lookedAt: '127.0.0.1:1' });
    t.regex(nativeOf(doctor).found, /native port cannot be reached \(ECONNREFUSED\)/);
    const usual = await call(['doctor', 'stack', '--json', ...config({ url: server.url })], { cwd });
    t.is(nativeOf(usual).lookedAt, `${new URL(server.url).hostname}:9000`);
    const listening = server.url.replace('http://', '');
    const open = await call(
      ['doctor', 'stack', '--json', ...config({ url: server.url, native: listening })],
      { cwd },
    );
    t.like(nativeOf(open), { state: 'ok', lookedAt: listening });
  },
);

test.serial(
  '[O7] start, doctor and status name a server that is too old, and one that is silent',
  async (t) => {
    server.fault = 'old';
    const { dataDir, lines, health, runtime } = await start(t, { url: server.url });
    const old = /too old: it is ClickHouse 18\.16\.1, and Holdfast needs 24\.8 or newer/;
    const { columnar } = await until(async () => {
      const found = await health();
      return found.columnar?.state === 'lost' && found;
    });
    t.regex(columnar.reason, old);
    t.regex(lines.join(''), old);
    const cwd = tempDir(t);
    const source = (path: string) =>
      JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);
    const file = join(cwd, 'plugins.config.ts');
    writeFileSync(
      file,
      `import { defineConfig } from ${source('index.ts')};
     import { columnar } from ${source('plugins/columnar/index.ts')};
     export default defineConfig({ plugins: [columnar({ url: '${server.url}' })] });`,
    );
    const place = ['--config', file, '--data-dir', dataDir];
    const ofDoctor = async () => {
      const { out } = await call(['doctor', 'stack', '--json', ...place], { cwd });
      return JSON.parse(out).checks.find(({ name }: any) => name === 'stack.columnar');
    };
    t.like(await ofDoctor(), { state: 'fail' });
    t.regex((await ofDoctor()).found, old);
    t.regex((await call(['status', ...place], { cwd })).out, old);
    server.fault = 'none';
    await until(async () => (await health()).columnar.state === 'connected');
    server.fault = 'hang';
    // Meanwhile the instance finds the same and connects anew: what the doctor asks is not cut off by that.
    t.like(await ofDoctor(), { state: 'fail' });
    t.regex((await ofDoctor()).found, /cannot be reached: no answer within 5 s/);
    const silent = await until(async () => {
      const found = (await health()).columnar;
      return found.state === 'lost' && found;
    });
    t.regex(silent.reason, /no answer within 5 s/);
    await runtime.stop('test');
    t.regex((await ofDoctor()).found, /no answer within 5 s/, 'asked without an instance, too');
  },
);

test.serial(
  '[O21] on the NAS itself its collector is looked at too: the unit, and the health check',
  async (t) => {
    const { dataDir } = await start(t, { url: server.url });
    const cwd = tempDir(t);
    const file = join(cwd, 'plugins.config.ts');
    const source = (path: string) =>
      JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);
    writeFileSync(
      file,
      `import { defineConfig } from ${source('index.ts')};
     import { columnar } from ${source('plugins/columnar/index.ts')};
     export default defineConfig({ plugins: [columnar()] });`,
    );
    let status = 200;
    const collector = createServer((_request, response) => response.writeHead(status).end());
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
    t.teardown(() => void collector.close());
    // No systemd in a test: a program of its name that says what it is told.
    const { PATH } = process.env;
    t.teardown(() => void Object.assign(process.env, { PATH }));
    process.env.PATH = `${cwd}:${PATH}`;
    const says = (state: string) =>
      writeFileSync(join(cwd, 'systemctl'), `#!/bin/sh\necho ${state}; [ ${state} = active ]\n`, {
        mode: 0o755,
      });
    const health = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/`;
    const nas = async () => {
      const argv = [
        'stack',
        'nas',
        '--host',
        hostname(),
        '--health',
        health,
        '--json',
        '--config',
        file,
        '--data-dir',
        dataDir,
      ];
      const { out, err } = await call(argv, { cwd });
      t.is(err, '');
      return JSON.parse(out)
        .findings.slice(-2)
        .map(({ state, text }: any) => `${state} ${text}`);
    };
    says('active');
    t.deepEqual(await nas(), [
      'ok otelcol-contrib.service is active',
      `ok the health check (${health}) answers 200`,
    ]);
    says('failed');
    status = 503;
    t.deepEqual(await nas(), [
      'fail otelcol-contrib.service is failed',
      `fail the health check (${health}) answers 503`,
    ]);
  },
);
