import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { root, type Spawned, spawnHoldfast, writeConfig } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const PORTS = {
  HOLDFAST_ROUTER_PORT: '0',
  HOLDFAST_GATEWAY_PORT: '0',
  HOLDFAST_CONSOLE_PORT: '0',
  HOLDFAST_OTLP_HTTP_PORT: '0',
  HOLDFAST_OTLP_GRPC_PORT: '0',
  HOLDFAST_UPTIME_PORT: '0',
  HOLDFAST_MEMORY_PORT: '0',
};

const ROUTER_ALONE = join(root, 'test/support/router-config.ts');

/** The product on a folder of its own; the router alone, where the rest of it would only take time. */
function holdfast(t: ExecutionContext, dir: string, ...argv: string[]): Spawned {
  return spawnHoldfast(t, [...argv, '--config', ROUTER_ALONE, '--data-dir', dir], { cwd: root, env: PORTS });
}

async function started(
  t: ExecutionContext,
  dir: string,
  runtime = holdfast(t, dir, 'start'),
): Promise<{ runtime: Spawned; router: string }> {
  const [, router = ''] = await runtime.see(/router +(http:\S+)[\s\S]*Try next:[\s\S]*log tail/);
  return { runtime, router };
}

test.serial(
  '[R29] start prints the boot report, where each surface listens and what to try; SIGTERM ends it cleanly',
  async (t) => {
    t.timeout(180_000);
    const dir = tempDir(t);
    chmodSync(dir, 0o755); // as somebody may have made it
    const whole = spawnHoldfast(t, ['start', '--data-dir', dir], { cwd: root, env: PORTS });
    const { runtime, router } = await started(t, dir, whole);
    t.regex(runtime.out(), /plugins \d+\/\d+ started in \d+ ms\n[├└]── /);
    t.regex(runtime.out(), new RegExp(`Holdfast is ready \\(pid ${runtime.child.pid}, after \\d+ ms\\)`));
    t.regex(runtime.out(), new RegExp(`data +${dir}`));
    t.true(runtime.out().includes(`curl -s ${router}/v1/config/active\n`));
    t.true(runtime.out().includes(`npx holdfast status --data-dir ${dir}\n`));
    t.is((await fetch(`${router}/v1/config/active`)).status, 200);

    const status = await holdfast(t, dir, 'status').ended;
    t.is(status.code, 0, status.err);
    t.regex(status.out, new RegExp(`pid +${runtime.child.pid}`));

    const open = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(
      (name) => ((statSync(join(dir, name), { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0,
    );
    t.deepEqual(open, [], 'nothing in the data folder is for others');

    const children = readFileSync(`/proc/${runtime.child.pid}/task/${runtime.child.pid}/children`, 'utf8');
    t.is(children, '', 'one process');

    runtime.child.kill('SIGTERM');
    const { code, signal, err } = await runtime.ended;
    t.deepEqual([code, signal], [0, null], err);
    t.regex(err, /"reason":"SIGTERM"/);
    t.false(existsSync(join(dir, 'runtime.json')));
    const after = await holdfast(t, dir, 'status').ended;
    t.is(after.code, 1);
    t.regex(after.out, /last stop +SIGTERM/);
  },
);

test.serial(
  '[R29] after kill -9, status says killed; the next start and its log show pid and the end before',
  async (t) => {
    t.timeout(180_000);
    const dir = tempDir(t);
    const first = await started(t, dir);
    first.runtime.child.kill('SIGKILL');
    await first.runtime.ended;
    const status = await holdfast(t, dir, 'status').ended;
    t.is(status.code, 1);
    t.regex(
      status.out,
      new RegExp(`last stop +killed; it recorded no stop \\(pid ${first.runtime.child.pid},`),
    );

    const { runtime } = await started(t, dir);
    const list = await holdfast(t, dir, 'log', 'list', '--actor', 'lifecycle').ended;
    t.regex(
      list.out,
      new RegExp(`process\\s+${first.runtime.child.pid}[\\s\\S]*process\\s+${runtime.child.pid}`),
    );
    const now = await holdfast(t, dir, 'status').ended;
    t.is(now.code, 0);
    t.regex(now.out, new RegExp(`last stop +killed.*pid ${first.runtime.child.pid}`));
    const verify = await holdfast(t, dir, 'replay', 'verify').ended;
    t.is(verify.code, 0, 'also while it runs');
    t.regex(verify.out, /0 divergences, chain ok/);
  },
);

test.serial('a second start on the folder is refused with the pid of the first, which goes on', async (t) => {
  t.timeout(180_000);
  const dir = tempDir(t);
  const { runtime, router } = await started(t, dir);
  const second = await holdfast(t, dir, 'start').ended;
  t.is(second.code, 1);
  t.regex(second.err, new RegExp(`HF_LOG_LOCKED\\n.* in use by process ${runtime.child.pid}\\.\\n`));
  t.notRegex(second.err, /\n\s+at /);
  t.is((await fetch(`${router}/v1/config/active`)).status, 200);
});

test.serial(
  'the log of an app save that drops an address tells who, what was missing and what was posted',
  async (t) => {
    t.timeout(180_000);
    const dir = tempDir(t);
    const { router } = await started(t, dir);
    const tail = holdfast(t, dir, 'log', 'tail', '--follow', '-n', '1');
    await tail.see(/UTC ──\n.+\n/);
    const config = (await (await fetch(`${router}/v1/config/active`)).json()) as {
      interface: { vlan: Record<string, { ipv6?: string[] }> };
    };
    const [address = ''] = config.interface.vlan['eth1.10']?.ipv6 ?? [];
    delete config.interface.vlan['eth1.10']?.ipv6;
    const headers = { 'content-type': 'application/json', 'user-agent': 'phone-app' };
    const answer = await fetch(`${router}/v1/config/set`, {
      method: 'POST',
      headers,
      body: JSON.stringify(config),
    });
    t.is(answer.status, 200);
    await tail.see(/has its address again/);
    tail.child.kill('SIGINT');
    const { code, out, err } = await tail.ended;
    t.is(code, 0, err);
    const told = out.replace(/\s+/g, ' ');
    t.regex(told, /phone-app saves: \w{4} interface\.vlan\.eth1\.10\.ipv6/);
    t.regex(told, /reconciler\.leg\/eth1\.10 lacks/);
    t.true(told.includes(`posted eth1.10 ${address}`), told);
    t.regex(told, /reconciler\.leg\/eth1\.10 has its address again/);
    const lineWith = (text: string) => out.split('\n').find((line) => line.includes(text)) ?? '';
    const [id = ''] = / [0-9a-f]{4}$/.exec(lineWith('phone-app saves')) ?? [];
    for (const text of ['lacks', 'posted eth1.10', 'has its address again'])
      t.true(id !== '' && lineWith(text).endsWith(id), `one story: ${lineWith(text)}`);
    // Of what is followed, records share a line only if they were read together: the story is read again as a whole.
    const [, last = ''] = /(\d+) +reconciler/.exec(lineWith('has its address again')) ?? [];
    const only = ['--correlation', id.trim(), '--to', last, '--limit', '0'];
    const story = await holdfast(t, dir, 'log', 'list', ...only).ended;
    t.true(story.out.includes('phone-app') && story.out.split('\n').length < 55, `a screenful: ${story.out}`);
  },
);

test.serial('a data folder that cannot be created is a coded error that names it, at once', async (t) => {
  const file = join(tempDir(t), 'file');
  writeFileSync(file, '');
  for (const dir of [file, join(file, 'below'), '/proc/none/below']) {
    const { code, err } = await holdfast(t, dir, 'start').ended;
    t.is(code, 2);
    t.true(err.startsWith(`HF_CLI_DATA_DIR\n  The data folder ${dir} cannot be created: `), err);
    t.notRegex(err, /\n\s+at /);
  }
});

/** A folder with a configuration of its own: the console, and a plugin that makes trouble. */
/** @param trouble members of the plugin's definition */
function troubled(t: ExecutionContext, trouble: string): { cwd: string; runtime: Spawned } {
  const cwd = tempDir(t);
  const body = `const trouble = definePlugin({
    name: 'trouble',
    options: z.strictObject({}),
    ${trouble}
  });
  export default defineConfig({ plugins: [consolePlugin(), trouble()] });`;
  writeConfig(cwd, body, [`import { consolePlugin } from 'holdfast/plugins/console';`]);
  return { cwd, runtime: spawnHoldfast(t, ['start'], { cwd, env: PORTS }) };
}

test.serial(
  '[R29] a fault nobody caught is logged, recorded as the reason of the stop, and ends with exit code 1',
  async (t) => {
    t.timeout(180_000);
    const { cwd, runtime } = troubled(
      t,
      `register() {},
       start() { setTimeout(() => { throw new Error('the roof is on fire'); }, 300); },`,
    );
    const { code, err } = await runtime.ended;
    t.is(code, 1);
    t.regex(err, /"level":"fatal".*the roof is on fire.*"msg":"process\.fault"/);
    const { out } = await spawnHoldfast(t, ['status'], { cwd }).ended;
    t.regex(out, /last stop +uncaughtException: the roof is on fire at /);
  },
);

test.serial('a second signal ends a stop that hangs at once', async (t) => {
  t.timeout(180_000);
  const { runtime } = troubled(
    t,
    `register(ctx) { ctx.onStop(() => new Promise(() => console.log('stopping'))); },`,
  );
  await runtime.see(/Try next/);
  runtime.child.kill('SIGTERM');
  // The same wish once more, at once: a supervisor signals the group, a launcher passes it on. Two of a kind could come as one.
  runtime.child.kill('SIGINT');
  await runtime.see(/stopping/);
  await after(1_500);
  t.is(runtime.child.exitCode, null, 'it still stops in order');
  runtime.child.kill('SIGTERM');
  const { code, err } = await runtime.ended;
  t.is(code, 143);
  t.notRegex(err, /plugin\.stop_failed/, 'the deadline of the plugin that hangs was not waited for');
});

test.serial('a signal during the start stops what has started, and is no failure', async (t) => {
  t.timeout(180_000);
  const { cwd, runtime } = troubled(
    t,
    `register() {},
    start: (services, options, signal) => new Promise((resolve, reject) => {
      console.log('starting');
      signal.addEventListener('abort', () => reject(new Error('enough')));
    }),`,
  );
  await runtime.see(/starting/);
  runtime.child.kill('SIGTERM');
  const { code, out, err } = await runtime.ended;
  t.is(code, 0, err);
  t.notRegex(out, /is ready/);
  t.is((await spawnHoldfast(t, ['status'], { cwd }).ended).code, 1);
});

test.serial('a reader that goes away ends a command quietly, and does not end the runtime', async (t) => {
  t.timeout(180_000);
  const dir = tempDir(t);
  const runtime = holdfast(t, dir, 'start', '--json');
  const [line] = await runtime.see(/^\{.*\}\n/);
  const ready = JSON.parse(line);
  t.like(ready, { ready: true, pid: runtime.child.pid, dataDir: dir });
  runtime.child.stdout?.destroy();

  const script = `"$0" bin/holdfast.js log list --limit 0 --all --data-dir "$1" | head -1; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script, process.execPath, dir], {
    cwd: root,
    encoding: 'utf8',
  });
  t.regex(stdout, /^── \d{4}.*\n0\n$/);
  t.is(stderr, '');
  t.is((await fetch(`${ready.surfaces.console.url}/healthz`)).status, 200);
});
