import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import { type Child, startChild } from './disk.ts';
import type { Scope } from './scope.ts';

const binary = new URL('../../bin/holdfast.js', import.meta.url);
const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).pathname);

/** A Holdfast of its own process, as a user starts it, on free ports. */
export interface Instance {
  readonly child: Child;
  readonly router: string;
  readonly console: string;
}

/**
 * Writes a configuration of the embedded router, the reconciler and the console.
 *
 * @param routerOptions as in `plugins.config.ts`, e.g. a short window
 * @returns the file
 */
export function writeConfig(dir: string, routerOptions: Record<string, unknown> = {}): string {
  const file = join(dir, 'plugins.config.ts');
  writeFileSync(
    file,
    `import { defineConfig } from ${source('index.ts')};
     import { consolePlugin } from ${source('plugins/console/index.ts')};
     import { reconciler } from ${source('plugins/reconciler/index.ts')};
     import { router } from ${source('plugins/router/index.ts')};
     export default defineConfig({
       plugins: [router(${JSON.stringify(routerOptions)}), reconciler(), consolePlugin()],
     });`,
  );
  return file;
}

/** Starts it and waits until it is ready. @param env e.g. a preloaded disk */
export async function startInstance(
  t: Scope,
  dataDir: string,
  config: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Instance> {
  const child = startChild(t, binary, ['start', '--data-dir', dataDir, '--config', config], {
    HOLDFAST_ROUTER_PORT: '0',
    HOLDFAST_CONSOLE_PORT: '0',
    NODE_NO_WARNINGS: '1',
    ...env,
  });
  while (child.process.exitCode === null) {
    const file = readRuntimeFile(dataDir);
    const { router, console } = file?.surfaces ?? {};
    if (file?.pid === child.process.pid && router && console) {
      return { child, router: router.url, console: console.url };
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`the instance ended with ${child.process.exitCode}:\n${child.errors.join('\n')}`);
}

/** One answer of the router's API. */
export interface Answer {
  readonly status: number;
  readonly correlation: string;
  readonly body: { readonly errors: readonly string[]; readonly code?: string; readonly ncid?: string };
}

export interface NetworkConfig {
  ncid: string;
  interface: { vlan: Record<string, { ipv6?: string[]; meta: { name: string } }> };
  [key: string]: unknown;
}

export async function active(router: string): Promise<NetworkConfig> {
  const answer = await fetch(`${router}/v1/config/active`);
  return (await answer.json()) as NetworkConfig;
}

export async function post(router: string, body: unknown): Promise<Answer> {
  const answer = await fetch(`${router}/v1/config/set`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const correlation = answer.headers.get('x-correlation-id') ?? '';
  return { status: answer.status, correlation, body: (await answer.json()) as Answer['body'] };
}
