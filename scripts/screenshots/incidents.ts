// One hour of the whole product in which five things go wrong, by a clock that stands still between two steps: what the
// pictures of the console show. Everything comes in where it does in use.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { postControl } from '../../src/core/host/operations/control-client.ts';
import { alerts } from '../../src/plugins/alerts/index.ts';
import { collector } from '../../src/plugins/collector/index.ts';
import { columnar } from '../../src/plugins/columnar/index.ts';
import { gateway, overwrite } from '../../src/plugins/gateway/index.ts';
import { memory } from '../../src/plugins/memory/index.ts';
import { memoryStore } from '../../src/plugins/memory-store/index.ts';
import { otlp } from '../../src/plugins/otlp/index.ts';
import { reconciler } from '../../src/plugins/reconciler/index.ts';
import { restore } from '../../src/plugins/restore/index.ts';
import { router } from '../../src/plugins/router/index.ts';
import { uptime } from '../../src/plugins/uptime/index.ts';
import { uptimeMonitor } from '../../src/plugins/uptime-monitor/index.ts';
import { ConsoleRig } from '../../test/plugins/console/console-rig.ts';
import type { NetworkConfig } from '../../test/support/instance.ts';
import { PatientClock } from '../../test/support/patient-clock.ts';
import type { Scope } from '../../test/support/scope.ts';
import { resultFor, startScripted } from '../../test/support/scripted-upstream.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';

/** 2026-11-20 13:00 UTC, a Friday. */
const START = Date.UTC(2026, 10, 20, 13);
const MINUTE = 60_000;
const STEP_MS = 4_000;
const MOST_TURNS = 100;
const KEY = 'sk-of-the-pictures-alone-0123456789';

export interface Incidents {
  readonly rig: ConsoleRig;
  readonly clock: PatientClock;
  /** A record that an incident hangs on, and its story. */
  readonly healed: { readonly seq: number; readonly story: string };
  readonly last: number;
}

/** @returns a running instance in which an hour has passed; it ends with `t` */
export async function startIncidents(t: Scope): Promise<Incidents> {
  const clock = new PatientClock(START);
  const servers = { docs: await startServer(t, () => false), search: await startServer(t, isAway) };
  function isAway(): boolean {
    return clock.now() > START + 20 * MINUTE && clock.now() < START + 31 * MINUTE;
  }
  const starting = ConsoleRig.start(t, {
    clock,
    others: [
      ...[router({ port: 0 }), reconciler(), alerts(), uptime(), uptimeMonitor({ port: 0 })],
      gateway({
        port: 0,
        probeEveryMs: 0,
        routes: [
          overwrite({ name: 'library_docs', url: servers.docs }),
          overwrite({ name: 'web_search', url: servers.search }),
          overwrite({ name: 'columnar_rw', writes: true }),
        ],
      }),
      ...[columnar({ retentionDays: 3_650 }), collector(), otlp({ port: 0, grpcPort: 0, lingerMs: 0 })],
      ...[memoryStore({ port: 0 }), memory(), restore()],
    ],
  });
  const rig = await clock.passUntil(starting, 5);
  await new Hour(rig, clock).run();
  const { records } = await rig.ask('/api/records?actor=reconciler.leg&event=LEG_READ&text=adds&limit=1');
  const [{ seq, correlation }] = records;
  return { rig, clock, healed: { seq, story: correlation }, last: await rig.durable() };
}

/** An MCP server with two tools. @param isAway says whether it answers with 503 */
async function startServer(t: Scope, isAway: () => boolean): Promise<string> {
  const { url } = await startScripted(t as never, (response, heard) => {
    if (isAway()) return response.writeHead(503).end();
    if (heard.method !== 'POST') return response.writeHead(405, { allow: 'POST' }).end();
    const { method } = JSON.parse(heard.text) as { method?: string };
    const results: Readonly<Record<string, object>> = {
      initialize: {
        ...{ protocolVersion: '2025-06-18', capabilities: { tools: {} } },
        serverInfo: { name: 'server', version: '1.0.0' },
      },
      'tools/call': { content: [{ type: 'text', text: 'found' }] },
    };
    const text = resultFor(heard, results[method ?? ''] ?? {});
    return response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
  return url;
}

class Hour {
  readonly #rig: ConsoleRig;
  readonly #clock: PatientClock;
  readonly #session: Record<string, Record<string, string>> = {};

  constructor(rig: ConsoleRig, clock: PatientClock) {
    this.#rig = rig;
    this.#clock = clock;
  }

  async run(): Promise<void> {
    await this.#makeKey();
    await this.#control('/memory/backup/seed', { synthetic: true });
    await this.#control('/memory/backup/snapshot', {});
    for (let minute = 0; minute < 60; minute += 1) {
      await this.#minute(minute);
      await this.#passTo(START + (minute + 1) * MINUTE);
    }
    for (let minute = 0; minute < 60; minute += 1) await this.#telemetry(minute);
  }

  async #minute(minute: number): Promise<void> {
    if (minute % 4 === 0 && minute < 34) await this.#beat();
    if (minute % 3 === 1) await this.#call('library_docs', 'tools/call', { name: 'find', arguments: {} });
    if (minute % 2 === 1) await this.#call('web_search', 'tools/call', { name: 'search', arguments: {} });
    if (minute === 26) await this.#call('columnar_rw', 'tools/call', { name: 'drop', arguments: {} });
    if (minute === 12) await this.#save('PhoneApp/1.64', dropAddress('eth1.10'));
    if (minute === 31) await this.#append('maintenance-1');
    if (minute === 44) await this.#act('restore-drill', { path: 'a' });
    if (minute === 52) await this.#save('PhoneApp/1.64', dropAddress('eth1.40'));
    if (minute === 56)
      await this.#act('alert-silence', { pattern: 'nas-*', for: '2h', note: 'the NAS moves' });
    if (minute === 59) await this.#append('maintenance-2');
  }

  /** In steps that are shorter than the deadlines of what waits for the world outside, which has a moment after each. */
  async #passTo(end: number): Promise<void> {
    for (let left = end - this.#clock.now(); left > 0; left = end - this.#clock.now()) {
      await this.#clock.advance(Math.min(STEP_MS, left));
      await this.#rig.durable();
      for (let turns = 0; this.#clock.isBusy && turns < MOST_TURNS; turns += 1) {
        await this.#clock.advance(2);
        await delay(2);
      }
    }
  }

  /** What waits for this clock too goes on while it passes in small steps. */
  #pass<T>(work: Promise<T>): Promise<T> {
    return this.#clock.passUntil(work, 5);
  }

  #url(surface: string): string {
    return this.#rig.runtime.surfaces[surface]?.url ?? '';
  }

  #secret(name: string): string {
    return readFileSync(join(this.#rig.dataDir, 'secrets', name), 'utf8').trim();
  }

  async #post(url: string, body: object, headers: Record<string, string> = {}) {
    const sent = request(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(body),
    });
    const answer = await this.#pass(sent);
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  }

  #control(path: string, body: object): Promise<unknown> {
    return this.#pass(postControl(this.#rig.dataDir, path, body, AbortSignal.timeout(PATIENCE_MS)));
  }

  async #act(name: string, fields: object): Promise<void> {
    if (!this.#rig.cookie) await this.#pass(this.#rig.login());
    await this.#pass(this.#rig.send(`/api/actions/${name}`, { method: 'POST', body: { fields } }));
  }

  async #active(): Promise<NetworkConfig> {
    const answer = await this.#pass(request(`${this.#url('router')}/v1/config/active`));
    return (await answer.body.json()) as NetworkConfig;
  }

  async #save(agent: string, change: (config: NetworkConfig) => void): Promise<void> {
    const config = await this.#active();
    change(config);
    await this.#post(`${this.#url('router')}/v1/config/set`, config, { 'user-agent': agent });
  }

  async #append(transID: string): Promise<void> {
    await this.#save('ops-laptop/2.1', (config) => {
      Object.assign(config.interface.vlan['eth1.40'] ?? {}, { ipv4: '10.77.41.1/24' });
      Object.assign(config, { transactionOp: 'append', transID });
    });
  }

  async #makeKey(): Promise<void> {
    const authorization = `Bearer ${this.#secret('master-key')}`;
    const terms = {
      key: KEY,
      key_alias: 'research-agent',
      object_permission: { mcp_servers: ['library_docs', 'web_search'] },
    };
    await this.#post(`${this.#url('gateway')}/key/generate`, terms, { authorization });
  }

  async #call(route: string, method: string, params: object): Promise<void> {
    const url = `${this.#url('gateway')}/${route}/mcp`;
    const message = (name: string, given: object) => ({ jsonrpc: '2.0', id: 1, method: name, params: given });
    const key = { 'x-gateway-api-key': `Bearer ${KEY}` };
    if (!this.#session[route]) {
      const clientInfo = { name: 'agent', version: '1.0.0' };
      const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
      const { headers } = await this.#post(url, message('initialize', hello), key);
      this.#session[route] = { ...key, 'mcp-session-id': String(headers['mcp-session-id'] ?? '') };
    }
    await this.#post(url, message(method, params), this.#session[route]);
  }

  async #beat(): Promise<void> {
    const token = this.#secret('push/clickstack-watchdog');
    const answer = await this.#pass(request(`${this.#url('uptime')}/api/push/${token}?status=up&msg=OK`));
    await answer.body.dump();
  }

  /** A trace of a search with some spans, and lines of a log; those of the outage are errors. */
  async #telemetry(minute: number): Promise<void> {
    const isOut = minute >= 20 && minute < 31;
    const authorization = this.#secret('otel_ingest_api_key');
    const nanos = (ms: number) => String(BigInt(Math.round((START + minute * MINUTE + ms) * 1_000)) * 1_000n);
    const id = (digits: number, number: number) => number.toString(16).padStart(digits, '0');
    const traceId = traceOf(minute);
    const spans = (isOut ? OUTAGE : SEARCH).map(([parent, name, , start, duration], index) => ({
      traceId,
      spanId: id(16, minute * 100 + index + 1),
      ...(parent > 0 && { parentSpanId: id(16, minute * 100 + parent) }),
      ...{ name, kind: 2, attributes: [] },
      startTimeUnixNano: nanos(start),
      endTimeUnixNano: nanos(start + duration * (1 + (minute % 7) / 10)),
      status: { code: isOut && index > 2 ? 2 : 0 },
    }));
    const services = Map.groupBy(
      spans.map((span, index) => ({ span, service: (isOut ? OUTAGE : SEARCH)[index]?.[2] ?? '' })),
      ({ service }) => service,
    );
    const resource = (name: string) => ({
      attributes: [{ key: 'service.name', value: { stringValue: name } }],
    });
    const resourceSpans = [...services].map(([service, own]) => ({
      resource: resource(service),
      scopeSpans: [{ scope: { name: 'pictures' }, spans: own.map(({ span }) => span) }],
    }));
    const lines = isOut
      ? ['upstream answers 503', 'search failed, is tried again']
      : ['search answered', 'cache is warm'];
    const logRecords = lines.map((text, index) => ({
      timeUnixNano: nanos(10 + index * 40),
      ...(isOut
        ? { severityNumber: 17, severityText: 'ERROR' }
        : { severityNumber: 9, severityText: 'INFO' }),
      body: { stringValue: text },
      ...{ traceId, spanId: id(16, minute * 100 + 1) },
    }));
    await this.#post(`${this.#url('otlpHttp')}/v1/traces`, { resourceSpans }, { authorization });
    const resourceLogs = [{ resource: resource('search'), scopeLogs: [{ logRecords }] }];
    await this.#post(`${this.#url('otlpHttp')}/v1/logs`, { resourceLogs }, { authorization });
  }
}

export const traceOf = (minute: number): string =>
  `0af7651916cd43dd8448eb21${(minute + 4_096).toString(16).padStart(8, '0')}`;

type SpanRow = readonly [parent: number, name: string, service: string, start: number, duration: number];
const SEARCH: readonly SpanRow[] = [
  [0, 'POST /ask', 'agent', 0, 420],
  [1, 'tools/call web_search', 'gateway', 12, 340],
  [2, 'POST /mcp', 'search', 20, 320],
  [3, 'rank results', 'search', 210, 90],
  [3, 'SELECT documents', 'index', 36, 150],
  [1, 'tools/call library_docs', 'gateway', 360, 44],
];
const OUTAGE: readonly SpanRow[] = [
  [0, 'POST /ask', 'agent', 0, 1_250],
  [1, 'tools/call web_search', 'gateway', 14, 1_190],
  [2, 'POST /mcp', 'search', 20, 300],
  [2, 'POST /mcp', 'search', 420, 310],
  [2, 'POST /mcp', 'search', 880, 300],
];

const dropAddress = (leg: string) => (config: NetworkConfig) => {
  delete config.interface.vlan[leg]?.ipv6;
};
