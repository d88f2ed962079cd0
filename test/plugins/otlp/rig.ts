import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import {
  type ColumnarDatabase,
  ColumnarDatabaseToken,
} from '../../../src/core/contracts/columnar-database.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';

/** A runtime that receives telemetry for a database. */
export interface Receiving {
  readonly runtime: Runtime;
  readonly dataDir: string;
  readonly http: string;
  readonly grpc: string;
  /** The ingest key. */
  readonly key: string;
  stop(): Promise<unknown>;
}

export const database = (columnar: ColumnarDatabase): PluginEntry =>
  definePlugin({
    name: 'database',
    options: z.strictObject({}),
    provides: [ColumnarDatabaseToken],
    register: (context) => context.provide(ColumnarDatabaseToken, () => columnar),
  })();

export async function receive(
  t: Scope,
  columnar: ColumnarDatabase,
  options: z.input<typeof otlp.definition.options> = {},
  dataDir: string = tempDir(t),
  more: readonly PluginEntry[] = [],
): Promise<Receiving> {
  const plugins = [
    ...more,
    database(columnar),
    collector(),
    otlp({ port: 0, grpcPort: 0, lingerMs: 0, ...options }),
  ];
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins }, {}).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test ended'));
  await runtime.start();
  const { otlpHttp, otlpGrpc } = runtime.surfaces;
  return {
    runtime,
    dataDir,
    http: otlpHttp?.url ?? '',
    grpc: otlpGrpc?.url ?? '',
    key: readFileSync(join(dataDir, 'secrets', 'otel_ingest_api_key'), 'utf8').trim(),
    stop: () => runtime.stop('test'),
  };
}

export function post(
  { http, key }: Pick<Receiving, 'http' | 'key'>,
  path: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${http}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: key, ...headers },
    body,
  });
}

/** Waits for something that another thread brings about. */
export async function until(holds: () => unknown): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await holds()); ) {
    if (performance.now() > end) throw new Error('it does not come about');
    await sleep(10);
  }
}

/** Nanoseconds since the epoch, as decimal digits. @param ms from now */
export function nanos(ms = 0): string {
  return `${Date.now() + ms}000000`;
}

let spans = 0;

/** A span of its own trace. */
export function span(name: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  spans += 1;
  return {
    traceId: `5b8efff798038103d269b633${spans.toString(16).padStart(8, '0')}`,
    spanId: 'eee19b7ec3c1b174',
    name,
    kind: 2,
    startTimeUnixNano: nanos(),
    endTimeUnixNano: nanos(5),
    ...fields,
  };
}

export function traces(service: string, ...items: unknown[]): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] },
        scopeSpans: [{ scope: { name: 'test' }, spans: items }],
      },
    ],
  });
}
