import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Scope } from './scope.ts';

/** A dashboard's tile, as `GET /api/v2/dashboards/<id>` gives it. */
export interface Tile {
  readonly id: string;
  readonly name?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  /** In place of a config, by the older API. */
  readonly series?: readonly Readonly<Record<string, unknown>>[];
}

export interface HyperdxOptions {
  /** What a request of the API of version 2 must carry. */
  readonly token?: string;
  readonly login?: { readonly email: string; readonly password: string };
  /** Addressed behind the UI, whose proxy takes `/api` away, or directly. */
  readonly behind?: 'ui' | 'nothing';
  readonly dashboards?: Readonly<Record<string, readonly Tile[]>>;
  readonly webhooks?: readonly string[];
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly url: URL;
  readonly request: IncomingMessage;
  readonly text: string;
}

const INTERVALS = ['1m', '5m', '15m', '30m', '1h', '6h', '12h', '1d'];
const TYPES = ['above', 'below', 'above_exclusive', 'below_or_equal', 'equal', 'not_equal', 'between'];
/** What an alert may have; anything else is dropped when it is saved. */
const FIELDS = ['name', 'message', 'note', 'source', 'dashboardId', 'tileId', 'interval', 'threshold'];

/**
 * A stand-in of HyperDX: `/installation` for everybody, `/login/password` and `/team/apiKey` with a session alone, and
 * `/api/v2` with a bearer token alone. Behind its UI all of that is below `/api`.
 */
export class Hyperdx {
  apiKey: string = randomUUID();
  readonly alerts: any[] = [];
  readonly calls: string[] = [];
  /** The bodies of what was written, with method and path. */
  readonly written: { readonly method: string; readonly path: string; readonly body: any }[] = [];
  /** Called when the key was regenerated; the collector then has it. */
  regenerated: (key: string) => void = () => {};
  /** Answers everything with this status. */
  sick: number | undefined;
  /** Answers a request for a new key with this status, and makes none. */
  refusesKey: number | undefined;
  /** The answer to a new key begins and never ends. */
  stalls = false;
  /** A cookie that is only for https: over http none is set. */
  isSecure = false;
  /** What is saved in place of an alert. */
  alter: (alert: any) => any = (alert) => alert;
  /** Alerts in one page. */
  page = 1_000;
  readonly #options: HyperdxOptions;
  readonly #sessions = new Set<string>();
  #url = '';

  constructor(options: HyperdxOptions) {
    this.#options = options;
  }

  static async start(t: Scope, options: HyperdxOptions = {}): Promise<Hyperdx> {
    const ui = new Hyperdx(options);
    const server = createServer((request, response) => {
      ui.#serve(request, response).catch((error) => response.destroy(error));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    ui.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return ui;
  }

  get url(): string {
    return this.#url;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const text = (await Array.fromAsync(request.setEncoding('utf8'))).join('');
    const url = new URL(request.url ?? '/', this.#url);
    const { method = 'GET' } = request;
    this.calls.push(`${method} ${url.pathname}`);
    if (this.sick !== undefined) {
      return json(response, this.sick, { message: `sick, ${request.headers.authorization}` });
    }
    const { behind = 'ui' } = this.#options;
    if (behind === 'ui' && !url.pathname.startsWith('/api/')) {
      return response.writeHead(200, { 'content-type': 'text/html' }).end('<html>the app</html>');
    }
    const path = behind === 'ui' ? url.pathname.slice('/api'.length) : url.pathname;
    const call = { method, path, url, request, text };
    if (path.startsWith('/api/v2/')) return this.#external(call, response);
    return this.#internal(call, response);
  }

  #internal({ method, path, request, text }: Call, response: ServerResponse): unknown {
    if (method === 'GET' && path === '/installation') return json(response, 200, { isTeamExisting: true });
    if (method === 'POST' && path === '/login/password') return this.#login(request, text, response);
    if (path !== '/team/apiKey') return notFound(response);
    const session = /(?:^|; )connect\.sid=([^;]+)/.exec(request.headers.cookie ?? '')?.[1];
    if (session === undefined || !this.#sessions.has(session)) {
      return response.writeHead(401).end('Unauthorized');
    }
    if (method !== 'PATCH') return notFound(response);
    if (this.refusesKey !== undefined) return json(response, this.refusesKey, { message: 'no' });
    this.apiKey = randomUUID();
    if (this.stalls) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 }).flushHeaders();
    } else json(response, 200, { newApiKey: this.apiKey });
    this.regenerated(this.apiKey);
  }

  #login({ headers }: IncomingMessage, text: string, response: ServerResponse): unknown {
    const isJson = headers['content-type']?.startsWith('application/json') ?? false;
    const body = isJson ? JSON.parse(text) : Object.fromEntries(new URLSearchParams(text));
    const { email, password } = this.#options.login ?? {};
    if (email === undefined || body.email !== email || body.password !== password) {
      return response.writeHead(302, { location: `${this.#url}/login?err=authFail` }).end();
    }
    const session = `s%3A${randomUUID()}`;
    this.#sessions.add(session);
    response.writeHead(302, {
      location: `${this.#url}/search`,
      ...(!this.isSecure && { 'set-cookie': `connect.sid=${session}; Path=/; HttpOnly; SameSite=Lax` }),
    });
    response.end();
  }

  #external({ method, path, url, request, text }: Call, response: ServerResponse): unknown {
    const { token, dashboards = {} } = this.#options;
    if (token === undefined || request.headers.authorization !== `Bearer ${token}`) {
      return response.writeHead(401).end('Unauthorized');
    }
    const [, , , kind, id] = path.split('/');
    if (kind === 'dashboards' && method === 'GET' && id !== undefined) {
      const tiles = dashboards[id];
      return tiles ? json(response, 200, { data: { id, name: 'board', tiles } }) : notFound(response);
    }
    if (kind !== 'alerts') return notFound(response);
    if (method === 'GET' && id === undefined) {
      const from = Number(url.searchParams.get('offset') ?? 0);
      const data = this.alerts.slice(from, from + this.page);
      return json(response, 200, {
        data,
        meta: { total: this.alerts.length, limit: this.page, offset: from },
      });
    }
    const at = this.alerts.findIndex((alert) => alert.id === id);
    if (method === 'GET') return at < 0 ? notFound(response) : json(response, 200, { data: this.alerts[at] });
    if (!request.headers['content-type']?.startsWith('application/json')) {
      return json(response, 400, { message: 'Body validation failed' });
    }
    const body = JSON.parse(text);
    this.written.push({ method, path, body });
    const wrong = this.#complaint(body);
    if (wrong !== undefined) return json(response, 400, { message: wrong });
    const kept = Object.fromEntries(FIELDS.flatMap((field) => (field in body ? [[field, body[field]]] : [])));
    const { thresholdType, channel } = body;
    const alert = { message: null, ...kept, thresholdType, channel, state: 'OK', teamId: 'team' };
    if (method === 'POST' && id === undefined) {
      this.alerts.push(this.alter({ id: `a${this.alerts.length + 1}`, ...alert }));
      return json(response, 200, { data: this.alerts.at(-1) });
    }
    if (method !== 'PUT' || at < 0) return notFound(response);
    const { channels } = body;
    this.alerts[at] = { id, ...alert, ...(channels !== undefined && { channels }) };
    return json(response, 200, { data: this.alerts[at] });
  }

  /** What the API finds wrong with an alert. */
  #complaint(body: any): string | undefined {
    const { dashboards = {}, webhooks = [] } = this.#options;
    const missing = ['threshold', 'interval', 'thresholdType', 'channel'].find(
      (field) => body[field] === undefined,
    );
    if (missing !== undefined) return `Body validation failed: ${missing}: Required`;
    if (!INTERVALS.includes(body.interval)) return 'Body validation failed: interval: Invalid enum value';
    if (!TYPES.includes(body.thresholdType))
      return 'Body validation failed: thresholdType: Invalid enum value';
    if (typeof body.threshold !== 'number') return 'Body validation failed: threshold: Expected number';
    if (body.source !== 'tile') return 'Body validation failed: source: Invalid';
    const tiles = dashboards[body.dashboardId];
    if (!tiles) return 'Dashboard not found';
    const tile = tiles.find(({ id }) => id === body.tileId);
    if (!tile) return 'Tile not found';
    if (!webhooks.includes(body.channel.webhookId)) return 'Webhook not found';
    return undefined;
  }
}

function json(response: ServerResponse, status: number, body: unknown): ServerResponse {
  return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function notFound(response: ServerResponse): ServerResponse {
  return response.writeHead(404, { 'content-type': 'text/html' }).end('<pre>Cannot GET</pre>');
}
