// `npm run log-fixtures`: writes test/fixtures/logs/<version of package.json>/ by running the real runtime through real
// stories. Run it once a release, and never again for that version: the files are replayed by every later one.
// Needs redis-server. `--out <folder>` writes elsewhere.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { values } = parseArgs({ options: { out: { type: 'string' } } });
const out = resolve(values.out ?? join(root, 'test/fixtures/logs', version));
const WINDOW_MS = 2_000;
const PATIENCE_MS = 30_000;
const LEG = 'eth1.10';
/** The newest that a runtime wrote on standard error, shown when a story fails. */
let said = '';

if (existsSync(out)) {
  console.error(`${out} is there already: histories are never rewritten. Raise the version, or name --out.`);
  process.exit(1);
}

/** A folder, and the runtime that lives in it. */
class Host {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-fixture-'));
  data = join(this.dir, 'data');
  config = join(this.dir, 'plugins.config.ts');

  constructor(routerOptions = {}) {
    const options = JSON.stringify({ port: 0, windowMs: WINDOW_MS, ...routerOptions });
    writeFileSync(
      this.config,
      `import { defineConfig } from 'holdfast';
       import { consolePlugin } from 'holdfast/plugins/console';
       import { reconciler } from 'holdfast/plugins/reconciler';
       import { router } from 'holdfast/plugins/router';
       export default defineConfig({ plugins: [router(${options}), reconciler(), consolePlugin({ port: 0 })] });`,
    );
  }

  async start(env = {}) {
    const argv = ['start', '--data-dir', this.data, '--config', this.config];
    this.process = spawn(process.execPath, [join(root, 'bin/holdfast.js'), ...argv], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    this.process.stderr.on('data', (lines) => {
      said = `${said}${lines}`.slice(-8_000);
    });
    await until('the runtime is ready', () => this.url() !== undefined);
  }

  url() {
    const file = join(this.data, 'runtime.json');
    if (!existsSync(file)) return undefined;
    const { pid, surfaces } = JSON.parse(readFileSync(file, 'utf8'));
    return pid === this.process.pid ? surfaces?.router?.url : undefined;
  }

  async end(signal) {
    const ended = once(this.process, 'exit');
    this.process.kill(signal);
    await ended;
  }

  async read() {
    const answer = await fetch(`${this.url()}/v1/config/active`);
    return answer.ok ? answer.json() : undefined;
  }

  /** @param change edits the config that is posted; `control` goes beside it */
  async save(who, change, control = {}) {
    const config = await this.read();
    if (!config) throw new Error('the active config cannot be read');
    change(config);
    return this.post(who, { ...config, ...control });
  }

  async post(who, body) {
    const answer = await fetch(`${this.url()}/v1/config/set`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': who },
      body: JSON.stringify(body),
    });
    await answer.arrayBuffer();
    return answer.status;
  }

  async exported(name) {
    const file = join(out, `${name}.jsonl.gz`);
    const argv = ['log', 'export', '--data-dir', this.data, '--config', this.config, '--out', file];
    execFileSync(process.execPath, [join(root, 'bin/holdfast.js'), ...argv], { stdio: 'inherit' });
    rmSync(this.dir, { recursive: true, force: true });
  }
}

const legOf = (config) => config.interface.vlan[LEG];
const dropsIpv6 = (config) => {
  delete legOf(config).ipv6;
};
const readdresses = (config) => {
  config.interface.vlan['eth1.40'].ipv4 = '10.77.41.1/24';
};
const renames = (name) => (config) => {
  config.interface.vlan['eth1.20'].meta.name = name;
};

const stories = {
  /** The app saves a whole config without the static address; it is put back. */
  async healed() {
    const host = new Host();
    await host.start();
    expect(200, await host.save('PhoneApp/1.64', dropsIpv6));
    await until('the address is back', async () => legOf(await host.read()).ipv6 !== undefined);
    await delay(1_000);
    await host.end('SIGTERM');
    await host.exported('healed');
  },

  /** A transaction is opened and reverted by hand, another is refused meanwhile, a third runs out, a fourth is kept. */
  async transaction() {
    const host = new Host();
    await host.start();
    const append = { transactionOp: 'append', transID: 'maintenance-1' };
    expect(200, await host.save('ops-laptop', readdresses, append));
    expect(400, await host.save('PhoneApp/1.64', renames('Things')));
    expect(200, await host.save('ops-laptop', () => {}, { ...append, transactionOp: 'revert' }));
    expect(200, await host.save('ops-laptop', readdresses, { ...append, transID: 'maintenance-2' }));
    await until('the window ran out', async () => {
      return (await host.read()).interface.vlan['eth1.40'].ipv4 === '10.77.40.1/24';
    });
    expect(200, await host.save('ops-laptop', readdresses, { ...append, transID: 'maintenance-3' }));
    const commit = { transactionOp: 'commit', transID: 'maintenance-3' };
    expect(200, await host.save('ops-laptop', () => {}, commit));
    await delay(500);
    await host.end('SIGTERM');
    await host.exported('transaction');
  },

  /** `kill -9` inside a transaction's window and while the app's save is healed; the next process goes on. */
  async killed() {
    const host = new Host();
    await host.start();
    const append = { transactionOp: 'append', transID: 'maintenance-1' };
    expect(200, await host.save('ops-laptop', readdresses, append));
    await host.end('SIGKILL');
    await host.start();
    await until('the window ran out', async () => {
      return (await host.read()).interface.vlan['eth1.40'].ipv4 === '10.77.40.1/24';
    });
    expect(200, await host.save('PhoneApp/1.64', dropsIpv6));
    await host.end('SIGKILL');
    await host.start();
    await until('the address is back', async () => legOf(await host.read()).ipv6 !== undefined);
    await delay(500);
    await host.end('SIGTERM');
    await host.exported('killed');
  },

  /** Redis goes away, a save is refused meanwhile, Redis comes back, and the save succeeds. */
  async 'redis-lost'() {
    const redis = new RedisHere();
    await redis.up();
    const host = new Host({ redisTimeoutMs: 300, retryMs: 200, storeCheckMs: 500 });
    await host.start({ HOLDFAST_REDIS_URL: `redis://127.0.0.1:${redis.port}` });
    expect(200, await host.save('PhoneApp/1.64', renames('Things')));
    const body = await host.read();
    await redis.down();
    expect(503, await host.post('PhoneApp/1.64', body));
    await delay(1_000);
    await redis.up();
    await until('a save succeeds again', async () => {
      const config = await host.read();
      if (!config) return false;
      dropsIpv6(config);
      return (await host.post('PhoneApp/1.64', config)) === 200;
    });
    await until('the address is back', async () => legOf(await host.read())?.ipv6 !== undefined);
    await delay(500);
    await host.end('SIGTERM');
    await redis.down();
    rmSync(redis.dir, { recursive: true, force: true });
    await host.exported('redis-lost');
  },
};

class RedisHere {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-redis-'));

  async up() {
    this.port ??= await freePort();
    const settings = ['--bind', '127.0.0.1', '--dir', this.dir, '--save', '', '--appendonly', 'yes'];
    this.process = spawn('redis-server', ['--port', String(this.port), ...settings], { stdio: 'ignore' });
    await once(this.process, 'spawn');
    await delay(500);
  }

  async down() {
    const ended = once(this.process, 'exit');
    this.process.kill('SIGTERM');
    await ended;
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

async function until(what, holds) {
  for (const end = Date.now() + PATIENCE_MS; ; await delay(50)) {
    const isSo = await Promise.resolve()
      .then(holds)
      .catch(() => false);
    if (isSo) return;
    if (Date.now() > end) throw new Error(`after ${PATIENCE_MS} ms still not: ${what}`);
  }
}

function expect(wanted, status) {
  if (status !== wanted) throw new Error(`the router answered ${status}, the story needs ${wanted}`);
}

mkdirSync(out, { recursive: true });
try {
  for (const [name, tell] of Object.entries(stories)) {
    console.log(name);
    await tell();
  }
} catch (error) {
  rmSync(out, { recursive: true, force: true });
  console.error(said);
  throw error;
}
process.exit(0);
