import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';

const NO_TRANSACTION = 'No ongoing config change transaction context, cannot commit or revert';

/** A config as the tests look into it. */
export type Config = { ncid: string; interface: { vlan: Record<string, any> }; [key: string]: any };

const example = new URL(
  '../../../../src/plugins/router/embedded/example-network-config.json',
  import.meta.url,
);

/** What happens to the next call instead of what should. */
export type Mishap =
  | 'answers500'
  | 'answersHtml'
  | 'answersNothing200'
  | 'answersNoNcid'
  | 'answersEmpty404'
  | 'answersPlain404'
  | 'redirects'
  | 'hangs'
  | 'resetsAtOnce'
  | 'resetsMidAnswer'
  | 'floods';

/** What happens to the next write in the router itself. */
export type Slip = 'refusesButApplies' | 'resetsButApplies' | 'hangsButApplies' | 'applyFails';

/**
 * A router daemon with the manners seen of real ones, each of which can be switched: it publishes
 * before it saves and says nothing in its events, answers 400 where others would say more, skips the ncid check for a
 * known `reqId`, reads without a lock, and refuses plain writes while a transaction is pending.
 */
export class Daemon {
  /** How long an apply takes, from the request to the events. */
  applyMs = 1;
  /** Between publishing and saving. */
  saveLagMs = 2;
  /** Runs between publishing and saving. */
  beforeSave: (() => Promise<void>) | undefined;
  /** Nobody is told of an apply, as when pub/sub was lost. */
  mute = false;
  channelPrefix = 'firerouter.';
  /** The kernel takes no IPv6 address, which is only logged: the answer is 200. */
  kernelFails = false;
  /** Older daemons do not serve the state of an interface. */
  servesInterfaces = true;
  /** An apply of the current config applies everything. Others skip what they believe to be applied, which is all of it. */
  reappliesAll = false;
  /** Applies of the current config that were asked for. */
  reapplies = 0;
  /** Bytes. */
  bodyLimit = 100_000;
  transaction: { transID: string; before: Config } | undefined;
  readonly mishaps: Mishap[] = [];
  readonly slips: Slip[] = [];
  /** Bodies of writes, as they came. */
  readonly posts: Config[] = [];
  reads = 0;
  /** Writes that the stored `reqId` carried past the ncid check. */
  bypassed = 0;
  /** A config is stored with the `reqId` that it was posted with, not with one of a client that makes them fresh. */
  keepReqId = false;
  /** Each connection that was ever made. */
  connections = 0;
  readonly #unused = new Set<Socket>();
  publish: (channel: string, payload: string) => unknown = () => {};
  #config: Config;
  /** The IPv6 addresses of the links. */
  readonly #kernel = new Map<string, readonly string[]>();
  #count = 0;
  #lock: Promise<unknown> = Promise.resolve();
  #server: Server | undefined;
  #port = 0;

  constructor() {
    this.#config = { ...JSON.parse(readFileSync(example, 'utf8')), reqId: 'req-of-the-app' };
    this.#carryOut();
  }

  static async start(t: ExecutionContext<any>): Promise<Daemon> {
    const daemon = new Daemon();
    await daemon.listen();
    t.teardown(() => daemon.stop());
    return daemon;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get config(): Config {
    return structuredClone(this.#config);
  }

  leg(intf: string): any {
    return this.config.interface.vlan[intf];
  }

  /** Connections on which nothing was ever asked. */
  get idle(): number {
    return this.#unused.size;
  }

  /** What servers do to a connection on which nothing is asked. */
  closeIdle(): void {
    for (const socket of this.#unused) socket.destroy();
  }

  /** Again on the same port, after a stop. */
  async listen(): Promise<void> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => response.destroy(error));
    });
    server.on('connection', (socket) => {
      this.connections += 1;
      this.#unused.add(socket);
      socket.once('close', () => this.#unused.delete(socket));
    });
    server.on('request', ({ socket }) => this.#unused.delete(socket));
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  /** What the phone app does: the whole config from its own model, under an ncid it has just read. */
  appSaves(change: (config: Config) => void): Promise<void> {
    return this.#locked(async () => {
      const config = this.config;
      change(config);
      await this.#apply(config);
    });
  }

  /** Somebody edits the config in the store. */
  editByHand(change: (config: Config) => void): void {
    change(this.#config);
  }

  /** A failed apply of somebody: the pair of events twice, and nothing saved. */
  failedApply(): Promise<void> {
    return this.#locked(async () => {
      await this.#announce();
      await this.#announce();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const mishap = this.mishaps.shift();
    if (mishap) {
      misbehave[mishap](response);
      return;
    }
    if (request.method === 'GET' && request.url === '/v1/config/active') {
      this.reads += 1;
      return send(response, 200, this.#config);
    }
    const [, intf] = /^\/v1\/config\/interfaces\/([^/]+)$/.exec(request.url ?? '') ?? [];
    if (request.method === 'GET' && intf !== undefined) {
      const config = this.leg(intf);
      if (!config || !this.servesInterfaces) return void response.writeHead(404).end();
      const ip6 = this.#kernel.get(intf);
      return send(response, 200, { config, state: { ip6: ip6 ?? null, present: ip6 !== undefined } });
    }
    if (request.method === 'POST' && request.url === '/v1/config/apply_current_config')
      return this.#locked(() => this.#reapply(response));
    if (request.method !== 'POST' || request.url !== '/v1/config/set') {
      response.writeHead(404).end();
      return;
    }
    if (text.length > this.bodyLimit) return send(response, 413, { errors: ['request entity too large'] });
    const body = JSON.parse(text) as Config;
    this.posts.push(structuredClone(body));
    await this.#locked(() => this.#set(body, response));
  }

  async #set(body: Config, response: ServerResponse): Promise<void> {
    const refuse = (...errors: string[]) => send(response, 400, { errors });
    const { transactionOp, transID, ignoreNcid: _, ...config } = body;
    if (transactionOp === 'revert') return this.#revert(transID, response);
    if (transactionOp === 'commit') return this.#commit(transID, response);
    if (this.transaction && !transactionOp) {
      return refuse(
        'A config change transaction context is in progress, reject non-transaction change request',
      );
    }
    // The check is skipped for the request that the stored config came from.
    if (config.reqId !== undefined && config.reqId === this.#config.reqId) this.bypassed += 1;
    else if (config.ncid !== this.#config.ncid) return refuse('ncid not match');
    for (const [name, { ipv6 = [] }] of Object.entries(config.interface.vlan)) {
      const bad = [ipv6].flat().find((address: string) => !/^[0-9a-f:]+\/\d+$/i.test(address));
      if (bad === undefined) continue;
      await this.#announce();
      await this.#announce();
      return refuse(`Invalid ipv6 address ${bad} for ${name}`, 'rolled back');
    }
    const slip = this.slips.shift();
    if (slip === 'applyFails') {
      await this.#announce();
      await this.#announce();
      return refuse('interface did not come up', 'rolled back');
    }
    if (transactionOp === 'append') this.transaction ??= { transID, before: this.config };
    await this.#apply(config as Config);
    if (slip === 'refusesButApplies') return refuse('something else went wrong');
    if (slip === 'resetsButApplies') {
      response.socket?.resetAndDestroy();
      return;
    }
    if (slip === 'hangsButApplies') return;
    send(response, 200, { errors: [], ncid: this.#config.ncid });
  }

  /** Commits a pending transaction without a word, and answers without an ncid. */
  async #reapply(response: ServerResponse): Promise<void> {
    this.reapplies += 1;
    this.transaction = undefined;
    await delay(this.applyMs);
    if (this.reappliesAll) this.#carryOut();
    await this.#announce();
    send(response, 200, { errors: [] });
  }

  async #commit(transID: string, response: ServerResponse): Promise<void> {
    const errors = this.transaction
      ? [`transID ${transID} does not match current transaction ID`]
      : [NO_TRANSACTION];
    if (this.transaction?.transID !== transID) return send(response, 400, { errors });
    this.transaction = undefined;
    send(response, 200, { errors: [], ncid: this.#config.ncid });
  }

  /** An apply flushes the link of each entry that changed. One that is up keeps the address that every link has. */
  #carryOut(before?: Config): void {
    for (const [intf, entry] of Object.entries(this.#config.interface.vlan)) {
      if (before && applied(before.interface.vlan[intf]) === applied(entry)) continue;
      const wanted = [entry.ipv6 ?? []].flat() as string[];
      this.#kernel.set(intf, ['fe80::1/64', ...(this.kernelFails ? [] : wanted)]);
    }
  }

  async #revert(transID: string, response: ServerResponse): Promise<void> {
    if (this.transaction?.transID !== transID) return send(response, 400, { errors: [NO_TRANSACTION] });
    const { before } = this.transaction;
    this.transaction = undefined;
    await this.#apply(before);
    send(response, 200, { errors: [], ncid: this.#config.ncid });
  }

  async #apply(next: Config): Promise<void> {
    await delay(this.applyMs);
    await this.#announce();
    await delay(this.saveLagMs);
    await this.beforeSave?.();
    this.#count += 1;
    for (const leg of Object.values(next.interface.vlan)) {
      leg.meta ??= {};
      leg.meta.uuid ??= `added-${this.#count}`;
    }
    const ncid = `${'0'.repeat(19)}${String(1_800_000_000_000 + this.#count)}`;
    const reqId = (this.keepReqId ? next.reqId : undefined) ?? `req-${this.#count}`;
    const before = this.#config;
    this.#config = { ...next, ncid, reqId };
    this.#carryOut(before);
  }

  async #announce(): Promise<void> {
    if (this.mute) return;
    for (const name of ['change_applied', 'iface_change_applied', 'apc_change_applied'])
      await this.publish(this.channelPrefix + name, '');
  }

  #locked<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#lock.then(work);
    this.#lock = result.catch(() => {});
    return result;
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Each writes, or breaks off, the answer. */
const misbehave: Readonly<Record<Mishap, (response: ServerResponse) => unknown>> = {
  answers500: (response) => send(response, 500, { errors: ['internal error'] }),
  answersHtml: (response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please log in</html>'),
  answersNothing200: (response) => response.writeHead(200).end(),
  answersNoNcid: (response) => send(response, 200, { errors: [] }),
  answersEmpty404: (response) => response.writeHead(404).end(),
  answersPlain404: (response) => response.writeHead(404, { 'content-type': 'text/plain' }).end('Not Found'),
  redirects: (response) =>
    response.writeHead(302, { location: 'http://127.0.0.1:9/login?next=secret' }).end(),
  hangs: () => {},
  resetsAtOnce: (response) => response.socket?.resetAndDestroy(),
  resetsMidAnswer: (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
    response.write('{"errors":[],', () => response.socket?.resetAndDestroy());
  },
  floods: (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  },
};

/** What of an entry an apply compares: a name alone applies nothing. */
function applied(entry: any): string {
  return JSON.stringify({ ...entry, meta: { ...entry?.meta, name: '' } });
}
