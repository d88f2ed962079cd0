import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as after } from 'node:timers/promises';
import test from 'ava';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { ServerProcess } from '../../../src/plugins/gateway/local/stdio/server-process.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { BROKEN_OFF, isAlive, PROGRAM, program, StdioRig, said, until } from './stdio-rig.ts';

const OWNER = new URL('../../support/stdio-owner.ts', import.meta.url).pathname;
const MIB = 1024 * 1024;

test('[G1] a program that ends by itself is started again after a second, and twice as long each time, up to a minute', async (t) => {
  const clock = new VirtualClock();
  const rig = new StdioRig(t, { run: 'false' }, { clock });
  const waits: string[] = [];
  for (let times = 0; times < 8; times += 1) {
    const failed = await rig.ask('tools/list');
    t.is(failed.status, 503);
    await until(() => rig.server.facts().processes === 0);
    const early = await rig.ask('tools/list');
    const wait = early.headers.get('retry-after') ?? '';
    waits.push(wait);
    await clock.advance(Number(wait) * 1_000 - 1);
    t.is(rig.server.facts().waitingMs, 1);
    await clock.advance(1);
  }
  t.deepEqual(waits, ['1', '2', '4', '8', '16', '32', '60', '60']);
  t.is(rig.lines.filter((line) => line.includes('gateway.server_started')).length, 8);
  t.like(rig.server.facts(), { restarts: 7, lastEnd: { reason: 'exit code 1', wanted: false } });
});

test('[G1] a session that can not begin delays the next one, and breaks off', async (t) => {
  const clock = new VirtualClock();
  const rig = new StdioRig(t, { run: 'false' }, { clock });
  await t.throwsAsync(rig.begin(), BROKEN_OFF);
  await t.throwsAsync(rig.begin(), { message: /no session: 503 .*ended by itself/ });
  await clock.advance(1_000);
  await t.throwsAsync(rig.begin(), BROKEN_OFF);
});

/** Lets idle times pass until it holds: that a stream has ended is noticed in its own time, and only then the next idle time begins. */
async function passing(clock: VirtualClock, holds: () => boolean): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end && !holds(); ) {
    await clock.advance(60_000);
    await after(20);
  }
}

test('[G1] a process with nothing to do is ended, and one that is used is not', async (t) => {
  const clock = new VirtualClock();
  const rig = new StdioRig(t, { ...program(), idleMs: 60_000 }, { clock });
  const [idle, busy, listening] = [await rig.begin(), await rig.begin(), await rig.begin()];
  const held = rig.call(busy, 'hold', { text: 'held' });
  const leave = new AbortController();
  await rig.request('GET', undefined, listening, leave.signal);
  await clock.advance(59_999);
  t.is(rig.server.facts().sessions, 3);
  await said(rig.call(idle, 'pid'));
  await clock.advance(59_999);
  t.is(rig.server.facts().sessions, 3);
  await clock.advance(1);
  await until(() => rig.server.facts().processes === 2);
  t.is((await rig.call(idle, 'pid')).status, 404);
  t.like(rig.server.facts(), { restarts: 0, waitingMs: 0, lastEnd: { reason: 'idle', wanted: true } });
  await clock.advance(600_000);
  t.is(rig.server.facts().sessions, 2);
  await rig.call(busy, 'release', {}, 2);
  t.deepEqual(await said(held), { text: 'held' });
  leave.abort();
  await passing(clock, () => rig.server.facts().processes === 0);
  await until(() => clock.armed === 0); // its end is noticed in its own time
  t.is(clock.armed, 0);
});

test('[G1] the shared process that was ended because it was idle starts again with the next request', async (t) => {
  const clock = new VirtualClock();
  const rig = new StdioRig(t, { ...program('stateless'), idleMs: 60_000 }, { clock });
  const call = () => said(rig.ask('tools/call', { name: 'pid', arguments: {} }));
  const first = await call();
  await passing(clock, () => !isAlive(first));
  t.not(await call(), first);
  t.is(rig.server.facts().restarts, 0);
});

test('[G1] a program that takes too much memory is ended and named, also when it is one that the command has started', async (t) => {
  const clock = new VirtualClock();
  const { run, args = [] } = program();
  const command = { run: 'sh', args: ['-c', '"$@"; true', 'sh', run, ...args], maxMemory: 200 * MIB };
  const rig = new StdioRig(t, command, { clock });
  const session = await rig.begin();
  await said(rig.call(session, 'grow', { mib: 1 }));
  await clock.advance(10_000);
  t.is(rig.server.facts().processes, 1);
  const pid = await said(rig.call(session, 'pid'));
  await said(rig.call(session, 'grow', { mib: 200 }, 2));
  const held = rig.call(session, 'hold', {}, 3);
  await clock.advance(5_000);
  await t.throwsAsync(held, BROKEN_OFF);
  await until(() => !isAlive(pid));
  t.regex(rig.server.facts().lastEnd?.reason ?? '', /^memory: \d+ MiB resident, 200 MiB allowed$/);
  t.true(rig.lines.some((line) => line.includes('"warn"') && line.includes('memory: ')));
});

test('[G1] more processes than there may be are refused until one has ended', async (t) => {
  const rig = new StdioRig(t, { ...program(), maxProcesses: 2 });
  const [one] = [await rig.begin(), await rig.begin()];
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  };
  const refused = await rig.request('POST', { id: 9, method: 'initialize', params });
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '10');
  t.like(await refused.json(), {
    id: 9,
    error: { message: 'The server runs in as many processes as it may.' },
  });
  await rig.request('DELETE', undefined, one);
  await rig.begin();
  t.is(rig.server.facts().processes, 2);
});

test('[G1] no shell reads the arguments of a command', async (t) => {
  const hostile = ['; touch x', '$(touch x)', '`touch x`', '&& touch x', '*', '', "'", '"', '-c', '\n', '$0'];
  const folder = tempDir(t);
  const rig = new StdioRig(t, program('sessions', ...hostile), { folder });
  t.deepEqual(await said(rig.call(await rig.begin(), 'invocation')), { args: hostile, cwd: folder });
  t.deepEqual(readdirSync(folder), []);
});

test.serial(
  '[G1,G19] a program gets of our environment what it needs, and secrets by their own names',
  async (t) => {
    process.env.HOLDFAST_TEST_SECRET = 'of ours';
    t.teardown(() => delete process.env.HOLDFAST_TEST_SECRET);
    const folder = tempDir(t);
    mkdirSync(join(folder, 'work'));
    const secrets = { 'servers/weather#token': 'a value\nof two lines' };
    const command = {
      ...program(),
      cwd: 'work',
      env: { LEVEL: '3', TZ: 'Europe/Berlin' },
      secrets: { WEATHER_TOKEN: 'servers/weather#token' },
    };
    const rig = new StdioRig(t, command, { folder, secrets });
    const session = await rig.begin();
    const environment = await said(rig.call(session, 'environment'));
    for (const byShell of ['PWD', 'OLDPWD', 'SHLVL', '_']) delete environment[byShell];
    const { PATH, HOME, LANG } = process.env;
    t.deepEqual(environment, {
      ...JSON.parse(JSON.stringify({ PATH, HOME, LANG })),
      LEVEL: '3',
      TZ: 'Europe/Berlin',
      WEATHER_TOKEN: 'a value\nof two lines',
    });
    t.is((await said(rig.call(session, 'invocation', {}, 2))).cwd, join(folder, 'work'));
  },
);

test('[G1,G2] a program, folder or secret that is not there is named, and nothing is started', async (t) => {
  const secrets: Record<string, string> = {};
  const reasons = async (command: ConstructorParameters<typeof StdioRig>[1]) => {
    const rig = new StdioRig(t, command, { secrets });
    const answers = [await rig.ask('tools/list'), await rig.request('POST', { id: 1, method: 'initialize' })];
    t.deepEqual(
      answers.map(({ status }) => status),
      [503, 503],
    );
    t.is(rig.server.facts().processes, 0);
    const [message] = new Set(
      await Promise.all(answers.map(async (one) => ((await one.json()) as any).error.message)),
    );
    t.is(`The server ${rig.server.facts().unavailable}.`, message);
    return message;
  };
  t.is(
    await reasons({ run: '/no/such/weather-server' }),
    'The server can not be started: its program weather-server is not there, or must not be executed.',
  );
  t.is(
    await reasons({ run: 'no-such-program' }),
    'The server can not be started: its program no-such-program is not there, or must not be executed.',
  );
  t.is(
    await reasons({ ...program(), cwd: 'nowhere' }),
    'The server can not be started: its working folder does not exist.',
  );
  const withSecret = { ...program(), secrets: { KEY: 'servers/weather#key' } };
  t.is(await reasons(withSecret), 'The server can not be started: its secret for KEY can not be read.');
  secrets['servers/weather#key'] = 'there now';
  const rig = new StdioRig(t, withSecret, { secrets });
  t.is((await said(rig.call(await rig.begin(), 'environment'))).KEY, 'there now');
});

test('[G1] what a program prints goes to the log, without its secrets and not too much of it', async (t) => {
  const token = 'w7HbRzq0kPcV5tYxLm2N';
  const command = { ...program(), secrets: { TOKEN: 'a#b' } };
  const clock = new VirtualClock();
  const rig = new StdioRig(t, command, { secrets: { 'a#b': token }, clock });
  const session = await rig.begin();
  const print = (text: string) => said(rig.call(session, 'print', { text }));
  const logged = () =>
    rig.lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'gateway.server_output');
  await print(`token ${token} and ${token.slice(2, 14)}, bearer ${'x'.repeat(20)}\n${'y'.repeat(50_000)}\n`);
  await until(() => logged().length === 2);
  t.is(logged()[0].line, 'token [redacted] and [redacted], bearer [redacted]');
  t.is(logged()[0].route, 'tested');
  t.is(logged()[1].line.length, 2_000);
  await print('line\n'.repeat(10_000));
  await print('last\n');
  await clock.advance(1_000);
  await until(() => logged().length >= 50);
  await print('after\n');
  await until(() => logged().some(({ line }) => line === 'after'));
  t.is(logged().length, 51);
  t.is(logged().at(-1).droppedLines, 10_001 - 48);
  t.false(rig.lines.some((line) => line.includes(token) || line.includes(token.slice(2, 14))));
});

test('[G1] a program that ignores SIGTERM is ended with all that it has started', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  const pids: number[] = await said(rig.ask('tools/call', { name: 'fork', arguments: { ownGroup: true } }));
  t.deepEqual(pids.map(isAlive), [true, true]);
  await rig.server.close();
  await until(() => !pids.some(isAlive));
  t.is((await rig.ask('tools/list')).status, 503);
  t.is(rig.server.facts().processes, 0);
});

test('[G1] where there is no shell for a guard, a program and its group are ended as well', async (t) => {
  const messages: any[] = [];
  const { run, args = [] } = program('stateless');
  const server = new ServerProcess({
    invocation: { program: run, args, cwd: tempDir(t), env: {}, secrets: [] },
    maxMemory: 1024 * MIB,
    clock: new VirtualClock(),
    logger: createLogger({ level: 'silent' }),
    isGuarded: false,
    onMessage: (message) => messages.push(message),
  });
  server.start();
  server.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'fork', arguments: {} } });
  await until(() => messages.length === 1);
  const pids: number[] = JSON.parse(messages[0].result.content[0].text);
  t.is(pids[0], server.pid);
  await server.end('test');
  await until(() => !pids.some(isAlive));
  t.like(await server.ended, { reason: 'test', wanted: true });
});

test('[G1] kill -9 of our own process ends the programs and all that they have started', async (t) => {
  const owner = spawn(process.execPath, [OWNER, PROGRAM, tempDir(t)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => owner.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string];
  const pids: number[] = JSON.parse(line);
  t.deepEqual(pids.map(isAlive), [true, true]);
  owner.kill('SIGKILL');
  await until(() => !pids.some(isAlive));
  t.pass();
});
