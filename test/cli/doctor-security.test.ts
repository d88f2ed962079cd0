import { spawn } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../src/core/host/runtime/runtime.ts';
import { readRuntimeFile, writeRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { credentialFree, gateway } from '../../src/plugins/gateway/index.ts';
import { router } from '../../src/plugins/router/index.ts';
import { call } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const isRoot = process.geteuid?.() === 0;
const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).pathname);

interface Finding {
  readonly name: string;
  readonly state: string;
  readonly found: string;
  readonly remedy?: string;
}

/** An instance of a router with these options, a console and a gateway, and what `holdfast doctor security` says of it. */
async function instance(t: ExecutionContext, options: (dir: string) => object) {
  const dir = tempDir(t);
  const dataDir = join(dir, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  mkdirSync(join(dir, 'run'), { mode: 0o700 });
  writeFileSync(join(dir, 'token'), 'the-token\n', { mode: 0o600 });
  const given = { port: 0, ...options(dir) };
  writeFileSync(
    join(dir, 'plugins.config.ts'),
    `import { defineConfig } from ${source('index.ts')};
     import { consolePlugin } from ${source('plugins/console/index.ts')};
     import { credentialFree, gateway } from ${source('plugins/gateway/index.ts')};
     import { router } from ${source('plugins/router/index.ts')};
     export default defineConfig({
       plugins: [
         router(${JSON.stringify(given)}),
         gateway({ port: 0, probeEveryMs: 0, routes: [credentialFree({ name: 'wiki' })] }),
         consolePlugin({ port: 0 }),
       ],
     });`,
  );
  const plugins = [
    router(given),
    gateway({ port: 0, probeEveryMs: 0, routes: [credentialFree({ name: 'wiki' })] }),
    consolePlugin({ port: 0 }),
  ];
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins }, { env: {} }).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const look = async (): Promise<Record<string, Finding>> => {
    const { out, err } = await call(['doctor', 'security', '--json', '--data-dir', dataDir], { cwd: dir });
    t.not(out, '', err);
    const { checks } = JSON.parse(out) as { checks: Finding[] };
    for (const { name, state, remedy } of checks) t.is(remedy !== undefined, state !== 'ok', name);
    return Object.fromEntries(checks.map((check) => [check.name.replace('security.', ''), check]));
  };
  return { dir, dataDir, runtime, look };
}

/** Checks of TLS have tests of their own. */
const OTHERS = ['certificates', 'plaintext'];

const statesOf = (findings: Record<string, Finding>) =>
  Object.fromEntries(
    Object.entries(findings).flatMap(([name, { state }]) => (OTHERS.includes(name) ? [] : [[name, state]])),
  );

test.serial(
  '[C14, R30] doctor security says what every local user may do, and is quiet once a token is asked for',
  async (t) => {
    t.timeout(180_000);
    const open = await instance(t, () => ({}));
    const before = await open.look();
    t.deepEqual(statesOf(before), {
      router: 'warn',
      gateway: 'ok',
      console: 'ok',
      data: 'ok',
      control: 'ok',
    });
    t.regex(
      before.router!.found,
      /every user of this machine.*reads, secrets included, and writes without a token/,
    );
    t.regex(before.router!.remedy ?? '', /auth: 'token'/);
    t.regex(before.gateway!.found, /every user of this machine, with a key of their own/);
    t.regex(before.console!.found, /every user of this machine reads/);

    const closed = await instance(t, (dir) => ({ auth: 'token', tokenFile: join(dir, 'token') }));
    const after = await closed.look();
    t.regex(after.router!.found, /every user of this machine, with the token/);
    t.is(after.router!.state, 'ok');
    t.is(after.router_token!.state, 'ok');
    const partly = await instance(t, (dir) => ({ secretsNeedToken: true, tokenFile: join(dir, 'token') }));
    t.regex(
      (await partly.look()).router!.found,
      /reads and writes without a token; reads with secrets need the token/,
    );
  },
);

test.serial(
  '[C14] doctor security does not take a surface that cannot read its own token for one without a token',
  async (t) => {
    const { dir, look } = await instance(t, (at) => ({ auth: 'token', tokenFile: join(at, 'token') }));
    chmodSync(join(dir, 'token'), 0o644);
    const { router: surface, router_token } = await look();
    t.is(surface!.state, 'unknown');
    t.regex(surface!.found, /whether it asks for a token or a key is not known, because it answered 500/);
    t.is(router_token!.state, 'fail');
  },
);

test.serial(
  '[C14, R30] doctor security looks at token files, the data folder and the control socket',
  async (t) => {
    t.timeout(180_000);
    const { dir, dataDir, look, runtime } = await instance(t, (at) => ({
      auth: 'token',
      tokenFile: join(at, 'token'),
    }));
    const changed = async (name: string, state: string, change: () => void, undo: () => void) => {
      t.is((await look())[name]?.state, 'ok', name);
      change();
      t.is((await look())[name]?.state, state, name);
      undo();
    };
    const mode = (file: string, open: number, closed: number) =>
      [() => chmodSync(file, open), () => chmodSync(file, closed)] as const;
    await changed('router_token', 'fail', ...mode(join(dir, 'token'), 0o640, 0o600));
    const token = join(dir, 'token');
    const written = (text: string) => () => writeFileSync(token, text);
    await changed('router_token', 'fail', written('\n'), written('the-token\n'));
    writeFileSync(join(dir, 'elsewhere'), 'the-token\n', { mode: 0o644 });
    const link = () => {
      rmSync(token);
      symlinkSync('elsewhere', token);
    };
    const file = () => {
      rmSync(token);
      writeFileSync(token, 'the-token\n', { mode: 0o600 });
    };
    await changed('router_token', 'fail', link, file);
    await changed('data', 'fail', ...mode(join(dataDir, 'secrets'), 0o750, 0o700));
    await changed('data', 'warn', ...mode(dataDir, 0o750, 0o700));
    await changed('data', 'fail', ...mode(dataDir, 0o770, 0o700));
    await changed('control', 'fail', ...mode(join(dataDir, 'control.sock'), 0o666, 0o600));
    const secret = join(dataDir, 'secrets', 'master-key');
    await changed('data', 'fail', ...mode(secret, 0o644, 0o600));
    if (isRoot) {
      const owner = (file: string) =>
        [() => chownSync(file, 65_534, -1), () => chownSync(file, 0, -1)] as const;
      await changed('data', 'fail', ...owner(secret));
      await changed('router_token', 'fail', ...owner(join(dir, 'token')));
      await changed('control', 'fail', ...owner(join(dataDir, 'control.sock')));
    }
    rmSync(join(dir, 'token'));
    t.is((await look()).router_token!.state, 'fail');
    await runtime.stop('test');
    t.deepEqual(statesOf(await look()), {
      router: 'unknown',
      gateway: 'unknown',
      console: 'unknown',
      data: 'ok',
      control: 'unknown',
      router_token: 'fail',
    });
    rmSync(dataDir, { recursive: true });
    t.is((await look()).data!.state, 'unknown');
  },
);

test.serial('[C14, R30] doctor security looks at the rights of a socket, and of its folder', async (t) => {
  t.timeout(180_000);
  const { dir, look } = await instance(t, (at) => ({ socket: { path: join(at, 'run', 's') } }));
  const seen = await look();
  t.is(seen.router!.state, 'ok');
  t.regex(seen.router!.found, /^user \S+ \(\d+\)(, user root \(0\))?, group \S+ \(\d+\), without a token$/);
  chmodSync(join(dir, 'run', 's'), 0o666);
  t.is((await look()).router!.state, 'warn');
  chmodSync(join(dir, 'run', 's'), 0o600);
  t.notRegex((await look()).router!.found, /group/);
  chmodSync(join(dir, 'run'), 0o777);
  t.is((await look()).router!.state, 'fail', 'somebody could put another socket there');
  chmodSync(join(dir, 'run'), 0o700);
  if (isRoot) {
    chownSync(join(dir, 'run', 's'), 65_534, -1);
    t.is((await look()).router!.state, 'fail');
  }
  rmSync(join(dir, 'run', 's'));
  t.is((await look()).router!.state, 'fail');
});

test.serial(
  '[C14, R30] doctor security finds a port that nothing holds, or that another user holds',
  async (t) => {
    t.timeout(180_000);
    const { dataDir, look } = await instance(t, () => ({}));
    const file = readRuntimeFile(dataDir)!;
    const say = (url: string) =>
      writeRuntimeFile(dataDir, { ...file, surfaces: { ...file.surfaces, router: { url } } });
    say('http://127.0.0.1:1');
    t.like((await look()).router, {
      state: 'fail',
      found: 'nothing listens there, although runtime.json says so',
    });
    if (!isRoot) return;
    const code =
      "require('net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })";
    const child = spawn(process.execPath, ['-e', code], { uid: 65_534, cwd: '/' });
    t.teardown(() => child.kill('SIGKILL'));
    const port = await new Promise<string>((resolve) =>
      child.stdout.once('data', (text) => resolve(String(text).trim())),
    );
    say(`http://127.0.0.1:${port}`);
    const { state, found } = (await look()).router!;
    t.is(state, 'fail');
    t.regex(found, /a process of user \S+ \(\d+\) listens there, not one of user root/);
  },
);

test.serial(
  '[C14, R30] doctor security tells what other machines reach, and whether they can be overheard',
  async (t) => {
    t.timeout(180_000);
    const { look } = await instance(t, (dir) => ({
      host: '0.0.0.0',
      insecure: true,
      tokenFile: join(dir, 'token'),
    }));
    const { state, found } = (await look()).router!;
    t.is(state, 'warn');
    t.regex(found, /every machine that reaches this one, with the token, which anybody on the way can read/);
  },
);
