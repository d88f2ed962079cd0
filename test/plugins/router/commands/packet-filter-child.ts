/** Runs `router explain` beside a router of its own, inside a network namespace, and prints what came of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call } from '../../../support/cli.ts';
import { Daemon } from '../remote/daemon.ts';
import { writeRemoteConfig } from '../remote/instance.ts';

const daemon = new Daemon();
await daemon.listen();
const cwd = mkdtempSync(join(tmpdir(), 'holdfast-explain-'));
try {
  const config = writeRemoteConfig(cwd, { url: daemon.url });
  const argv = ['router', 'explain', ...process.argv.slice(2), '--config', config, '--data-dir', cwd];
  console.log(JSON.stringify(await call(argv, { cwd })));
} finally {
  rmSync(cwd, { recursive: true });
  await daemon.stop();
}
