/** `npm run audit`: npm's own client against registries on loopback. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { root } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

/** A project that needs one package. */
const PROJECT = {
  'package.json': { name: 'own', version: '1.0.0', dependencies: { lamp: '1.0.0' } },
  'package-lock.json': {
    name: 'own',
    version: '1.0.0',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: 'own', version: '1.0.0', dependencies: { lamp: '1.0.0' } },
      'node_modules/lamp': { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==` },
    },
  },
};

/** @returns what is printed, by the name of the line */
async function audit(t: ExecutionContext, registry: string, deadlineMs = 60_000) {
  t.timeout(240_000);
  const dir = tempDir(t);
  for (const [name, content] of Object.entries(PROJECT))
    writeFileSync(join(dir, name), JSON.stringify(content));
  const args = [join(root, 'scripts/audit.ts'), '--root', dir, '--deadline-ms', String(deadlineMs)];
  // What proves signatures is not on loopback: nothing of a test leaves this machine.
  const env = {
    ...process.env,
    npm_config_registry: registry,
    HTTPS_PROXY: CLOSED,
    NO_PROXY: '127.0.0.1',
    npm_config_cache: tempDir(t),
  };
  return new Promise<{ code: unknown; lines: Record<string, string> }>((resolve) => {
    execFile(process.execPath, args, { env }, (error, stdout) => {
      const rows = stdout.trim().split('\n');
      const lines = Object.fromEntries(rows.map((row) => row.split(/ {2,}/) as [string, string]));
      resolve({ code: error?.code ?? 0, lines });
    });
  });
}

/** Nothing listens there. */
const CLOSED = 'http://127.0.0.1:1/';

async function registry(t: ExecutionContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test('without a registry nothing is called ok but the lock file, and nothing fails', async (t) => {
  const { code, lines } = await audit(t, CLOSED);
  t.is(code, 0);
  t.regex(lines['lock file'] ?? '', /^ok: 1 packages/);
  t.regex(lines.advisories ?? '', /^not checked: .*ECONNREFUSED/);
  t.regex(lines.signatures ?? '', /^not checked: ./);
});

test('a registry that takes a question and never answers is left at the deadline', async (t) => {
  const { code, lines } = await audit(t, await registry(t, () => {}), 2_500);
  t.is(code, 0);
  t.is(lines.advisories, 'not checked: no answer within 2.5 s');
});

test('a registry without advisories is not one that knows of none', async (t) => {
  const url = await registry(t, (_, response) => response.writeHead(404).end('{}'));
  const { code, lines } = await audit(t, url);
  t.is(code, 0);
  t.regex(lines.advisories ?? '', /^not checked: 404 /);
});

/** A registry that knows the package and these advisories. */
const knowing = (t: ExecutionContext, of: object) =>
  registry(t, ({ url }, response) => {
    const versions = { '1.0.0': { name: 'lamp', version: '1.0.0', dist: {} } };
    const packument = { name: 'lamp', 'dist-tags': { latest: '1.0.0' }, versions };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(url?.includes('advisories') ? of : packument));
  });

const advisory = (severity: string) => ({
  lamp: [{ id: 1, url: 'https://example.org/1', title: 'It burns', severity, vulnerable_versions: '<2' }],
});

test('a registry that knows of no advisory makes it ok', async (t) => {
  const { code, lines } = await audit(t, await knowing(t, {}));
  t.is(code, 0);
  t.is(lines.advisories, 'ok: 1 packages, 0 critical, 0 high, 0 lesser');
});

test('a grave advisory fails, and a lesser one is counted', async (t) => {
  const high = await audit(t, await knowing(t, advisory('high')));
  t.is(high.code, 1);
  t.regex(high.lines.advisories ?? '', /^failed: 0 critical, 1 high, 0 lesser: lamp/);
  const low = await audit(t, await knowing(t, advisory('low')));
  t.is(low.code, 0);
  t.is(low.lines.advisories, 'ok: 1 packages, 0 critical, 0 high, 1 lesser');
});
