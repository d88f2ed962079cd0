#!/usr/bin/env node
// The door to the product. Plain JavaScript for Node 18 and newer: it finds a Node that can run the product
// (type stripping and node:sqlite without flags or warnings need 24.12) and hands over.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import v8 from 'node:v8';

const self = fileURLToPath(import.meta.url);
const root = dirname(dirname(self));
const packages = join(root, 'node_modules');

const [major, minor] = process.versions.node.split('.').map(Number);
const relaunched = process.env.HOLDFAST_RELAUNCHED === '1';
delete process.env.HOLDFAST_RELAUNCHED;

if (major > 24 || (major === 24 && minor >= 12)) await run();
else await relaunch();

async function run() {
  // A killed launcher must not leave the runtime behind, unseen and holding the data folder.
  if (relaunched && process.channel) {
    process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
    process.channel.unref();
  }
  // Flags are set before the compile cache opens: its folder is named for them, and V8 refuses code compiled under others.
  if (process.argv.includes('start')) {
    // Loading makes much garbage at once, for which V8 would grow its young generation by some 50 MB and keep it.
    // A runtime that has started lets it grow again, for then it is worth it.
    v8.setFlagsFromString('--semi-space-growth-factor=1');
    await import('./ticks.js');
  } else {
    // Other commands end sooner when it grows at once: two collections while they load, not six (bench `commands`).
    v8.setFlagsFromString('--semi-space-growth-factor=16');
  }
  // Not the default folder below the system's temporary one: others could write there what we would execute.
  // Under systemd a unit with `CacheDirectory=` has one of its own, where the program's folder is read-only.
  const { CACHE_DIRECTORY: own } = process.env;
  const cache = own ? join(own, 'compiled') : join(packages, '.cache', 'holdfast');
  module.enableCompileCache(cache);
  process.env.NODE_COMPILE_CACHE = cache; // worker threads look here
  const source = join(root, 'src', 'main.ts'); // in a checkout; the published package has only dist
  const entry = existsSync(source) ? source : join(root, 'dist', 'main.js');
  if (!existsSync(entry)) fail('HF_LAUNCH_NOT_BUILT', `${entry} is missing.`, 'What to do: npm run build');
  const { main } = await import(pathToFileURL(entry).href);
  process.exitCode = await main(process.argv.slice(2));
}

async function relaunch() {
  const { spawn } = await import('node:child_process');
  const node = join(packages, '.bin', 'node');
  const remedy = 'What to do: install Node 24 (https://nodejs.org), or in a checkout run: npm ci';
  const found = `Holdfast needs Node 24.12 or newer; this is ${process.versions.node}`;
  if (relaunched) fail('HF_LAUNCH_OLD_NODE', `${found}, started from ${node}.`, remedy);
  if (!existsSync(node)) fail('HF_LAUNCH_OLD_NODE', `${found}, and there is no ${node}.`, remedy);

  const child = spawn(node, [...process.execArgv, self, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, HOLDFAST_RELAUNCHED: '1' },
  });
  child.on('error', (error) =>
    fail('HF_LAUNCH_OLD_NODE', `${found}, and ${node}: ${error.message}.`, remedy),
  );
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A terminal signals the whole foreground group: the child has its Ctrl-C already, and a second one
      // would read as "stop at once".
      if (signal === 'SIGTERM' || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // For a signal that does not end this process too (SIGPIPE is ignored by Node).
    setTimeout(() => process.exit(128 + constants.signals[signal]), 100);
  });
}

function fail(code, message, remedy) {
  console.error(`${code}: ${message}\n  ${remedy}`);
  process.exit(1);
}
