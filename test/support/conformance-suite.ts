/** Runs the official conformance suite, and tells how each of its checks ended. */
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type AskedClient, type Place, runClient } from './conformance-client.ts';
import { listen } from './mcp-upstream.ts';
import { tempDir } from './temp.ts';

const SUITE = resolve('node_modules/@modelcontextprotocol/conformance/dist/index.js');
/** So long one run may take, milliseconds. */
export const LONGEST_MS = 55_000;

/** @returns how each check of the suite's server scenarios ended, by `<scenario> <check>` */
export const serverSuite = (
  t: ExecutionContext<unknown>,
  url: string,
  longestMs: number = LONGEST_MS,
): Promise<Record<string, string[]>> => suite(t, ['server', '--url', url, '--suite', 'all'], longestMs);

/** So many scenarios the suite has for clients; their clients begin when all have been asked for. */
export const CLIENT_SCENARIOS = 26;

/**
 * Runs all scenarios that the suite has for clients. It starts a program for each: that tells us where the server is,
 * and is answered when the official client has been there. One after another, since some scenarios measure how long a
 * client waits.
 *
 * @param settle says where each calls, once all servers are known
 * @returns how each check ended, by `<scenario> <check>`, and how each client did, by `<scenario> client`
 */
export async function clientSuite(
  t: ExecutionContext<unknown>,
  settle: (asked: readonly AskedClient[]) => Promise<(asked: AskedClient) => Place>,
): Promise<Record<string, string>> {
  const waiting: { readonly asked: AskedClient; readonly answer: ServerResponse }[] = [];
  const ended: Record<string, string> = {};
  const runAll = async () => {
    const placeOf = await settle(waiting.map(({ asked }) => asked));
    for (const { asked, answer } of waiting) {
      const run = runClient(asked, placeOf(asked));
      ended[`${asked.scenario} client`] = await run.then(
        () => 'SUCCESS',
        () => 'GAVE UP',
      );
      answer.end();
    }
  };
  const desk = createServer(async (incoming, answer) => {
    const { scenario = '', context = '' } = incoming.headers as Record<string, string>;
    const server = Buffer.concat(await incoming.toArray()).toString();
    waiting.push({ asked: { scenario, server, context }, answer });
    if (waiting.length === CLIENT_SCENARIOS) runAll().catch((error) => t.fail(String(error)));
  });
  await listen(desk);
  t.teardown(() => {
    desk.closeAllConnections();
    desk.close();
  });
  const { port } = desk.address() as AddressInfo;
  const about = ['scenario: $MCP_CONFORMANCE_SCENARIO', 'context: $MCP_CONFORMANCE_CONTEXT'];
  const command = `curl -qsS --noproxy "*" ${about.map((header) => `-H "${header}"`).join(' ')} http://127.0.0.1:${port} -d`;
  const checks = await suite(t, [
    'client',
    '--command',
    command,
    '--suite',
    'all',
    '--timeout',
    `${LONGEST_MS}`,
  ]);
  const told = Object.entries(checks).map(([name, seen]) => [name, [...new Set(seen)].sort().join()]);
  return { ...Object.fromEntries(told), ...ended };
}

/** @returns how each check of each scenario ended, by `<scenario> <check>` */
async function suite(
  t: ExecutionContext<unknown>,
  argv: readonly string[],
  longestMs: number = LONGEST_MS,
): Promise<Record<string, string[]>> {
  const results = tempDir(t);
  const child = spawn(process.execPath, [SUITE, ...argv, '-o', results], { stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGKILL'), longestMs);
  t.teardown(() => child.kill('SIGKILL'));
  await new Promise((done) => child.once('exit', done));
  clearTimeout(timer);
  const told: Record<string, string[]> = {};
  for (const file of globSync('**/checks.json', { cwd: results })) {
    const scenario = dirname(file)
      .replace(/^server-/, '')
      .replace(/-\d{4}-\d{2}-\d{2}T.*$/, '');
    const checks = JSON.parse(readFileSync(join(results, file), 'utf8'));
    for (const { id, status } of checks as { id: string; status: string }[]) {
      if (status === 'INFO') continue;
      const name = `${scenario} ${id}`;
      told[name] = [...(told[name] ?? []), status];
    }
  }
  return told;
}
