import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as passing } from 'node:timers/promises';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { isObject } from '../../../src/core/kernel/json.ts';
import { root } from '../cli.ts';
import { listen } from '../mcp-upstream.ts';
import type { Scope } from '../scope.ts';
import { PATIENCE_MS, read } from '../until.ts';
import { type Call, type CalledKey, callViolations } from './call-rules.ts';
import type { Hosts } from './hosts.ts';
import { Pulse } from './pulse.ts';

/** Between two calls of one host. */
const EVERY_MS = 60;
/** Calls of one host that may be open. */
const MOST_OPEN = 6;
const CALL_MS = 3_000;
/** Newer keys that are called; what older ones may do was seen. */
const NEWEST = 4;
/** Calls a minute of every second key. */
const LIMIT = 24;
/** A host that does not answer an operation sooner is cut off: another one is asked. */
const OPERATION_MS = 3_000;

const REVISION = '2025-06-18';
const BEGUN = {
  protocolVersion: REVISION,
  capabilities: { tools: {} },
  serverInfo: { name: 'test', version: '1' },
};
const BEGIN = {
  protocolVersion: REVISION,
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
};

type Route = 'reads' | 'writes';

interface Client {
  readonly value: string;
  /** Of each route; any host knows it. */
  readonly sessions: Readonly<Record<Route, string>>;
}

/** Clients that call tools at the gateways of all hosts all the time, by keys that are made and revoked meanwhile, and the upstream of those tools. */
export class Callers {
  readonly calls: Call[] = [];
  readonly keys: (CalledKey & Client)[] = [];
  readonly #pulse: Pulse;
  readonly #upstream: string;
  #isStopped = false;
  #loops: Promise<void>[] = [];

  private constructor(pulse: Pulse, upstream: string) {
    this.#pulse = pulse;
    this.#upstream = upstream;
  }

  static async open(t: Scope): Promise<Callers> {
    const seen: { callers?: Callers } = {};
    const http = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of request) chunks.push(chunk);
      } catch {
        return; // the gateway ended
      }
      const asked: unknown = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      if (!isObject(asked) || asked.id === undefined) return void response.writeHead(202).end();
      const { arguments: given } = isObject(asked.params) ? asked.params : {};
      const call = seen.callers?.calls[Number(isObject(given) ? given.number : -1)];
      if (call) call.times += 1;
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'the only one' });
      const result = asked.method === 'initialize' ? BEGUN : { content: [] };
      response.end(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result }));
    });
    await listen(http);
    const { port } = http.address() as AddressInfo;
    const callers = new Callers(Pulse.start(t), `http://127.0.0.1:${port}/mcp`);
    seen.callers = callers;
    t.teardown(async () => {
      await callers.stop();
      http.closeAllConnections();
      await new Promise((done) => http.close(done));
    });
    return callers;
  }

  /** The gateway of each host. */
  get plugins() {
    const [name, url] = ['reads', this.#upstream];
    const source = JSON.stringify(join(root, 'src/plugins/gateway/index.ts'));
    return {
      imports: [`import { credentialFree as free, gateway as calls } from ${source};`],
      list: [
        `calls({ probeEveryMs: 0, routes: [free(${JSON.stringify({ name, url })}), free(${JSON.stringify({ name: 'writes', url, writes: true })})] })`,
      ],
    };
  }

  /** Calls until `stop`. */
  start(hosts: Hosts, names: readonly string[]): void {
    this.#loops = names.map((host) => this.#loop(hosts, host));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }

  /** Makes two keys, one of them with a limit, and waits until every host knows them: nothing that was acknowledged is lost. */
  async mint(hosts: Hosts, names: readonly string[]): Promise<void> {
    for (const limit of [undefined, LIMIT]) {
      const alias = `key-${this.keys.length + 1}`;
      const object_permission = { mcp_servers: ['reads', 'writes'] };
      const wish = { object_permission, ...(limit !== undefined && { rpm_limit: limit }) };
      // An answer may be lost after the key was made: the next attempt makes another one.
      const made = await this.#operate(hosts, names, (tries) => ({
        path: '/gateway/keys/mint',
        body: { ...wish, key_alias: tries === 0 ? alias : `${alias}-${tries}` },
      }));
      const [value, shown] = [String(made.key), String(made.key_alias)];
      const mintedAt = performance.now();
      const begun = async (host: string, route: Route) => {
        const begins = () => this.#send(hosts, host, route, value, 'initialize', BEGIN);
        const answer = await read(`${host} knows ${shown}`, begins, (got) => got?.status === 200, 50);
        return answer?.session ?? '';
      };
      const [sessions = { reads: '', writes: '' }] = await Promise.all(
        names.map(async (host) => ({
          reads: await begun(host, 'reads'),
          writes: await begun(host, 'writes'),
        })),
      );
      this.keys.push({ alias: shown, value, sessions, mintedAt, ...(limit !== undefined && { limit }) });
    }
  }

  /** Revokes the newest key without a limit that was not revoked yet. */
  async revoke(hosts: Hosts, names: readonly string[]): Promise<void> {
    const key = this.keys.findLast(({ revokedAt, limit }) => revokedAt === undefined && limit === undefined);
    if (!key) return;
    await this.#operate(hosts, names, () => ({
      path: '/gateway/keys/revoke',
      body: { key: key.value },
    }));
    key.revokedAt = performance.now();
  }

  /** Waits until every host refuses what was revoked and serves what was not: nothing that was acknowledged is lost. */
  async agree(hosts: Hosts, names: readonly string[]): Promise<void> {
    for (const key of this.keys.slice(-NEWEST)) {
      const { alias, revokedAt } = key;
      for (const host of names) {
        const standing = async () => (await this.#ask(hosts, host, 'writes', key, -1))?.status;
        const isRevoked = revokedAt !== undefined;
        const what = `${host} ${isRevoked ? 'refuses' : 'serves'} ${alias}`;
        const isSo = (status: number | undefined) =>
          status !== undefined && (isRevoked ? status === 401 : status === 200 || status === 429);
        await read(what, standing, isSo, 50);
      }
    }
  }

  violations(hosts: number): string[] {
    const { calls, keys } = this;
    return callViolations({
      ...{ calls, keys, hosts },
      stalledMs: (from, to) => this.#pulse.stalledMs(from, to),
      serverTime: (at) => Date.now() - performance.now() + at, // the servers run on this machine
    });
  }

  async #loop(hosts: Hosts, host: string): Promise<void> {
    const open = new Set<Promise<void>>();
    for (let turn = 0; !this.#isStopped; turn += 1) {
      await passing(EVERY_MS);
      const keys = this.keys.slice(-NEWEST);
      const key = keys[turn % keys.length];
      if (!key || open.size >= MOST_OPEN) continue;
      const done = this.#call(hosts, host, key, Math.floor(turn / keys.length) % 2 === 0);
      open.add(done);
      void done.finally(() => open.delete(done));
    }
    await Promise.all(open);
  }

  async #call(hosts: Hosts, host: string, key: CalledKey & Client, writes: boolean): Promise<void> {
    const { calls } = this;
    const facts = { id: calls.length, key: key.alias, host, writes, sentAt: performance.now() };
    const call: Call = { ...facts, isDone: false, times: 0 };
    calls.push(call);
    const answer = await this.#ask(hosts, host, writes ? 'writes' : 'reads', key, call.id);
    if (!answer) return;
    call.answeredAt = performance.now();
    call.isDone = /"result":\{"content"/.test(answer.text) && !/isError/.test(answer.text);
  }

  #ask(hosts: Hosts, host: string, route: Route, { value, sessions }: Client, number: number) {
    const params = { name: `${route}-do`, arguments: { number } };
    return this.#send(hosts, host, route, value, 'tools/call', params, sessions[route]);
  }

  /** @returns undefined when there was no answer */
  async #send(
    hosts: Hosts,
    host: string,
    route: Route,
    key: string,
    method: string,
    params: object,
    session?: string,
  ) {
    try {
      const answer = await fetch(`${hosts.gateway(host)}/${route}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'x-gateway-api-key': `Bearer ${key}`,
          ...(session !== undefined && { 'mcp-session-id': session }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
        signal: AbortSignal.timeout(CALL_MS),
      });
      const begun = answer.headers.get('mcp-session-id') ?? undefined;
      return { status: answer.status, session: begun, text: await answer.text() };
    } catch {
      return undefined;
    }
  }

  /** Asks one host after the other until one of them has done it. */
  async #operate(
    hosts: Hosts,
    names: readonly string[],
    wanted: (tries: number) => { readonly path: string; readonly body: object },
  ): Promise<Record<string, unknown>> {
    let last: unknown;
    const end = performance.now() + PATIENCE_MS;
    for (let tries = 0; performance.now() < end; tries += 1) {
      const host = names[tries % names.length] ?? '';
      const { path, body } = wanted(tries);
      try {
        const answer = await postControl(hosts.dataDir(host), path, body, AbortSignal.timeout(OPERATION_MS));
        if (answer.status === 200 && isObject(answer.body)) return answer.body;
        // It was done by an attempt whose answer was lost.
        if (isObject(answer.body) && answer.body.code === 'HF_GATEWAY_KEY_REVOKED') return {};
        last = answer;
      } catch (error) {
        last = error;
      }
      await passing(100);
    }
    throw new Error(`nobody did ${wanted(0).path}: ${JSON.stringify(last)}`, { cause: last });
  }
}
