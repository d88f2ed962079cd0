import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Scope } from './scope.ts';

interface Version {
  readonly data: Record<string, unknown> | null;
  readonly created: string;
}

/** A stand-in for a KV version 2 server: the statuses, bodies and checks of the real one. */
export class KvStandIn {
  readonly token = 'hvs.stand-in-token-canary';
  readonly seen: string[] = [];
  /** Versions of each path, the first is version 1. */
  readonly paths = new Map<string, Version[]>();
  url = '';
  /** Rights of the token; `patch` is missing in many policies. */
  rights = new Set(['read', 'create', 'update', 'patch']);
  /** Older servers know no PATCH. */
  knowsPatch = true;
  /** Runs before a write is judged: somebody else writes. */
  beforeWrite: (() => void) | undefined;
  /** Answers this instead, once each. */
  readonly failures: number[] = [];

  static async open(t: Scope, tls?: { key: string; cert: string }): Promise<KvStandIn> {
    const kv = new KvStandIn();
    const handler: Parameters<typeof createServer>[1] = async (request, response) => {
      const { status, body } = kv.#answer(request, await bodyOf(request));
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(body === undefined ? '' : JSON.stringify(body));
    };
    const server: Server = tls ? createTlsServer(tls, handler) : createServer(handler);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    kv.url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return kv;
  }

  put(path: string, data: Record<string, unknown> | null): void {
    const versions = this.paths.get(path) ?? [];
    versions.push({ data, created: '2026-01-02T03:04:05.678901234Z' });
    this.paths.set(path, versions);
  }

  data(path: string): Record<string, unknown> | null | undefined {
    return this.paths.get(path)?.at(-1)?.data;
  }

  #answer(request: IncomingMessage, text: string): { status: number; body?: unknown } {
    const { method = '', url = '', headers } = request;
    this.seen.push(`${method} ${url}`);
    const failure = this.failures.shift();
    if (failure !== undefined) return { status: failure, body: { errors: ['broken'] } };
    const denied = { status: 403, body: { errors: ['permission denied'] } };
    if (headers['x-vault-token'] !== this.token) return denied;
    if (method === 'POST' && url === '/v1/sys/capabilities-self') {
      const held = this.rights.size === 0 ? ['deny'] : [...this.rights].toSorted();
      return { status: 200, body: { capabilities: held, [JSON.parse(text).paths[0]]: held } };
    }
    const path = /^\/v1\/secret\/data\/(.+)$/.exec(url)?.[1];
    if (path === undefined) return { status: 404, body: { errors: [] } };
    const versions = this.paths.get(path) ?? [];
    const newest = versions.at(-1);
    const metadata = { version: versions.length, created_time: newest?.created ?? '', destroyed: false };
    if (method === 'GET') {
      if (!this.rights.has('read')) return denied;
      if (!newest) return { status: 404, body: { errors: [] } };
      return { status: newest.data ? 200 : 404, body: { data: { data: newest.data, metadata } } };
    }
    const needed = { POST: newest ? 'update' : 'create', PATCH: 'patch' }[method] ?? 'sudo';
    if (method === 'PATCH' && !this.knowsPatch) return { status: 405, body: { errors: [] } };
    if (!this.rights.has(needed)) return denied;
    if (method === 'PATCH' && headers['content-type'] !== 'application/merge-patch+json') {
      return { status: 415, body: { errors: ['unsupported media type'] } };
    }
    if (method === 'PATCH' && !newest?.data) return { status: 404, body: { errors: [] } };
    this.beforeWrite?.();
    const { data, options } = JSON.parse(text) as {
      data: Record<string, unknown>;
      options?: { cas?: number };
    };
    const now = this.paths.get(path) ?? [];
    if (options?.cas !== undefined && options.cas !== now.length) {
      const errors = ['check-and-set parameter did not match the current version'];
      return { status: 400, body: { errors } };
    }
    this.put(path, method === 'PATCH' ? { ...now.at(-1)?.data, ...data } : data);
    return { status: 200, body: { data: { version: now.length + 1, created_time: '' } } };
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}
