import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { ExecutionContext } from 'ava';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import type { Clock } from '../../../src/core/kernel/clock.ts';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { createRuntime, type Runtime } from '../../../src/index.ts';
import type { CallEnded } from '../../../src/machines/gateway/call-shapes.ts';
import type { KeyTerms } from '../../../src/machines/gateway/key-shapes.ts';
import { gateway } from '../../../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../../../src/plugins/gateway/keys/virtual-keys.ts';
import { tempDir } from '../../support/temp.ts';

/** An answer of a REST path. */
export interface RestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any;
}

type Options = NonNullable<Parameters<typeof gateway>[0]>;

export const MEDIA = 'application/json, text/event-stream';

/** A runtime with nothing but the gateway, on a free port and a folder of its own. */
export class Rig {
  readonly runtime: Runtime;
  readonly dataDir: string;
  /** Every line that the process would have logged, at the most talkative level. */
  readonly lines: readonly string[];

  protected constructor(runtime: Runtime, dataDir: string, lines: readonly string[]) {
    this.runtime = runtime;
    this.dataDir = dataDir;
    this.lines = lines;
  }

  static async start(
    t: ExecutionContext<unknown>,
    options: Options,
    dataDir: string = tempDir(t),
    clock?: Clock,
    others: readonly PluginEntry[] = [],
  ): Promise<Rig> {
    // A machine that is busy with all tests takes its time for the first requests of a run.
    const { definition, options: given } = gateway({
      port: 0,
      probeEveryMs: 0,
      aggregateDeadlineMs: 120_000,
      ...options,
    });
    const lines: string[] = [];
    const runtime = createRuntime({
      plugins: [{ definition, options: given }, ...others].map((entry) => ({
        definition: entry.definition,
        options: entry.definition.options.parse(entry.options),
      })),
      dataDir,
      ...(clock && { clock }),
      logger: createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } }),
    });
    await runtime.start();
    t.teardown(() => runtime.stop('test'));
    return new Rig(runtime, dataDir, lines);
  }

  get url(): string {
    return this.runtime.surfaces.gateway?.url ?? '';
  }

  get masterKey(): string {
    return readFileSync(join(this.dataDir, 'secrets', 'master-key'), 'utf8').trim();
  }

  /** A new key with these terms. @returns its value */
  async mint(
    terms: Partial<KeyTerms>,
    value = `sk-${randomBytes(24).toString('base64url')}`,
  ): Promise<string> {
    const presented = keyId(value);
    const event = {
      type: 'KEY_CREATED' as const,
      at: Date.now(),
      presented,
      terms: { alias: 'test', servers: [], ...terms },
    };
    await this.runtime.services.actors.send(keyActor, presented, event).durable();
    return value;
  }

  /** One POST to a path, as a client without an SDK would make it. */
  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json', accept: MEDIA, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  /** One request to a REST path. */
  async rest(
    method: 'GET' | 'POST',
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<RestAnswer> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body }),
    });
    return { status: answer.status, headers: answer.headers, body: await answer.json() };
  }

  /** The same with the master key. */
  admin(method: 'GET' | 'POST', path: string, body?: object): Promise<RestAnswer> {
    const headers = { authorization: `Bearer ${this.masterKey}` };
    return this.rest(method, path, headers, body && JSON.stringify(body));
  }

  /** Names of the alerts that were raised. */
  async alerts(): Promise<string[]> {
    const effects = (await this.records()).flatMap((record) => record.effects);
    return effects.filter(({ type }) => type === 'alerts.raise').map(({ params }) => (params as any).name);
  }

  /** @returns where any of these values can be found: files of the data folder but for the secrets, and log lines */
  async traces(...values: string[]): Promise<string[]> {
    await this.records();
    const files = readdirSync(this.dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.endsWith('secrets'))
      .map((entry) => join(entry.parentPath, entry.name));
    const found = files.filter((file) => values.some((value) => readFileSync(file).includes(value)));
    const said = this.lines.filter((line) => values.some((value) => line.includes(value)));
    return [...found, ...said];
  }

  /** The official client, connected to a route. */
  connect(t: ExecutionContext<unknown>, route: string, key: string): Promise<Client> {
    return this.connectTo(t, `/${route}/mcp`, admission(key));
  }

  /** The official client, connected to any path with these headers. */
  async connectTo(
    t: ExecutionContext<unknown>,
    path: string,
    headers: Readonly<Record<string, string>>,
    client: Client = new Client({ name: 'test', version: '1.0.0' }),
  ): Promise<Client> {
    const transport = new StreamableHTTPClientTransport(new URL(`${this.url}${path}`), {
      requestInit: { headers },
    });
    await client.connect(transport as never);
    t.teardown(() => client.close());
    return client;
  }

  /** The outcomes of calls with what was called, once there are so many. */
  async ended(count: number): Promise<(CallEnded & { readonly method: string })[]> {
    for (;;) {
      const records = await this.records();
      const methods = new Map(records.map(({ seq, event }) => [seq, (event as { method?: string }).method]));
      const found = records.flatMap(({ event, cause }) =>
        event.type === 'CALL_ENDED'
          ? [{ ...(event as unknown as CallEnded), method: methods.get(cause ?? -1) ?? '' }]
          : [],
      );
      if (found.length >= count) return found;
      await after(20);
    }
  }

  /** Waits for the first outcome of a call of this method. */
  async whenEnded(method: string): Promise<CallEnded> {
    for (let count = 1; ; count += 1) {
      const found = (await this.ended(count)).find((ended) => ended.method === method);
      if (found) return found;
    }
  }

  /** Every durable record. */
  async records(): Promise<LogRecord[]> {
    const { log } = this.runtime.services;
    await log.whenDurable(log.lastSeq());
    const reader = new SqliteReader(this.dataDir);
    try {
      return await Array.fromAsync(reader.read());
    } finally {
      reader.close();
    }
  }
}

export const admission = (key: string): Record<string, string> => ({ 'x-gateway-api-key': `Bearer ${key}` });

/** The `initialize` request of the documents' check. */
export const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'check', version: '1' },
  },
};

/** One JSON-RPC request. */
export function rpc(
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  id: number | string = 7,
): object {
  return { jsonrpc: '2.0', id, method, params };
}
