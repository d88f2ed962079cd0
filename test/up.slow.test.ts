// The README's first command in a fresh clone, on the machine's own Node: the tests themselves run on the product's Node, which
// hides what fails on the older one that a machine has before the packages are installed.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { tempDir } from './support/temp.ts';

const root = fileURLToPath(new URL('../', import.meta.url));

/** The PATH of somebody who has opened a terminal: `npm test` puts the Node of this checkout first. */
const ownPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'));

function onPath(program: string): string {
  const folder = ownPath.find((one) => existsSync(join(one, program)));
  if (folder === undefined) throw new Error(`the machine has no ${program} of its own`);
  return join(folder, program);
}

/** What git ignores: a clone has none of it. */
const NOT_CLONED = new Set(['.git', '.holdfast', 'build', 'dist', 'node_modules']);

/** Copies what a clone of this checkout would have, and changes that are not committed yet. */
function clone(to: string): void {
  mkdirSync(to);
  for (const name of readdirSync(root))
    if (!NOT_CLONED.has(name)) cpSync(join(root, name), join(to, name), { recursive: true });
}

/** Stands before npm: takes the packages of this checkout, which `npm ci` has downloaded already, and lets npm do all else. */
function installFromHere(folder: string): void {
  const script = `#!/bin/sh
if [ "$1" = ci ]; then exec ln -s '${join(root, 'node_modules')}' node_modules; fi
exec '${onPath('npm')}' "$@"
`;
  mkdirSync(folder);
  writeFileSync(join(folder, 'npm'), script);
  chmodSync(join(folder, 'npm'), 0o755);
}

test('[C11,C15] `npm run up` installs, builds the pages and starts in a fresh clone, on the Node of the machine', async (t) => {
  t.timeout(300_000);
  const dir = tempDir(t);
  const checkout = join(dir, 'holdfast');
  const shim = join(dir, 'bin');
  clone(checkout);
  installFromHere(shim);
  const ports = ['ROUTER', 'GATEWAY', 'CONSOLE', 'OTLP_HTTP', 'OTLP_GRPC', 'UPTIME', 'MEMORY'];
  const env = {
    ...Object.fromEntries(ports.map((name) => [`HOLDFAST_${name}_PORT`, '0'])),
    PATH: [shim, ...ownPath].join(delimiter),
    HOME: dir,
    npm_config_update_notifier: 'false',
  };
  t.log(`Node ${execFileSync(onPath('node'), ['--version'], { encoding: 'utf8' }).trim()}`);
  const up = spawn('npm', ['run', 'up'], {
    cwd: checkout,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a group of its own, as in a terminal
  });
  const ended = once(up, 'close');
  t.teardown(async () => {
    try {
      process.kill(-(up.pid ?? 0), 'SIGKILL');
    } catch {
      // all of it has ended
    }
    await ended;
  });
  let out = '';
  const ready = new Promise<RegExpExecArray | null>((resolve) => {
    const look = (text: string) => {
      out += text;
      const found = /ready \(pid (\d+)[\s\S]*console +(http:\S+)/.exec(out);
      if (found) resolve(found);
    };
    up.stdout.setEncoding('utf8').on('data', look);
    up.stderr.setEncoding('utf8').on('data', look);
    up.once('close', () => resolve(null));
  });
  const found = await ready;
  if (!found) throw new Error(`it ended with ${up.exitCode}:\n${out}`);
  const [, pid, url = ''] = found;
  t.regex(out, /bootstrap: node_modules is missing or incomplete, running npm ci\n/);
  t.regex(out, /console: built in /);

  t.is((await fetch(`${url}/login`)).status, 200);
  const link = execFileSync('npx', ['holdfast', 'console'], {
    ...{ cwd: checkout, env, stdio: 'pipe', encoding: 'utf8' },
  }).trim();
  const login = await fetch(`${url}/api/login`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ code: new URL(link).hash.slice(1) }),
  });
  const cookie = login.headers.getSetCookie()[0]?.split(';', 1)[0] ?? '';
  t.regex(await (await fetch(url, { headers: { cookie } })).text(), /src="\/assets\/console-\w+\.js"/);

  process.kill(Number(pid), 'SIGTERM');
  await ended;
  t.is(up.exitCode, 0, out);
});
