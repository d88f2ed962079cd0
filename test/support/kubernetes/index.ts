/**
 * A stand-in of a cluster's API server, for tests of what speaks to one: `store.ts` keeps the objects by the API's
 * rules, `kinds.ts` says which kinds there are, `schema.ts` what a server refuses, and this file serves them over HTTP or HTTPS well enough for
 * `@kubernetes/client-node` and `kubectl`. What controllers do (pods of deployments, jobs, restores) are hooks that a
 * test adds: `api.store.on('created', 'Job', (job) => …)`; `behaviours.ts` has those that several tests need.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Scope } from '../scope.ts';
import { discovery, RESOURCES, type Resource } from './kinds.ts';
import { ListPages } from './pages.ts';
import { ClusterStore, merge, Refusal, type Thing } from './store.ts';
import { acceptWebSocket } from './websocket.ts';

export { type Change, ClusterStore, Refusal, type Thing } from './store.ts';

export interface ClusterApiOptions {
  /** What a call must carry; anything passes unless set. */
  readonly token?: string;
  /** Serves HTTPS. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

interface Target {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly sub: string | undefined;
}

/** How a command in a pod ends; 0 and nothing unless set. `hang`: never. */
export interface PodRun {
  readonly exitCode?: number;
  readonly output?: string;
  readonly errors?: string;
  readonly hang?: boolean;
}

/** What happens to a call instead of what should. */
export type Mishap = (request: {
  readonly method: string;
  readonly path: string;
}) => Refusal | 'hang' | undefined;

export class ClusterApi {
  readonly store = new ClusterStore();
  /** `METHOD path`, as they came. */
  readonly calls: string[] = [];
  mishap: Mishap = () => undefined;
  /** Where a port of a pod really is, on 127.0.0.1. */
  reach: (pod: Thing, port: number) => number | undefined = () => undefined;
  /** What a command in a pod does; without an answer there is no such program in the container. */
  run: (pod: Thing, command: readonly string[]) => PodRun | undefined = () => undefined;
  /** API versions that this cluster does not have. */
  readonly absent = new Set<string>();
  /** The pages of long lists. */
  readonly pages = new ListPages(() => String(this.store.version));
  readonly #options: ClusterApiOptions;
  #server!: Server;

  constructor(options: ClusterApiOptions = {}) {
    this.#options = options;
    for (const name of ['default', 'kube-system']) {
      this.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
  }

  static async start(t: Scope, options: ClusterApiOptions = {}): Promise<ClusterApi> {
    const api = new ClusterApi(options);
    const { tls } = options;
    const handler = (request: IncomingMessage, response: ServerResponse) => {
      api.#serve(request, response).catch((error) => response.destroy(error));
    };
    api.#server = tls ? (createSecureServer(tls, handler) as unknown as Server) : createServer(handler);
    api.#server.on('upgrade', (request, stream) => api.#forward(request, stream));
    api.#server.listen(0, '127.0.0.1');
    await once(api.#server, 'listening');
    t.teardown(() => api.stop());
    return api;
  }

  async stop(): Promise<void> {
    this.store.stop();
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  get url(): string {
    return `${this.#options.tls ? 'https' : 'http'}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** @returns path of a kubeconfig for it */
  kubeconfig(dir: string): string {
    const { token, tls } = this.#options;
    const file = join(dir, 'kubeconfig');
    const trust = tls
      ? { 'certificate-authority-data': Buffer.from(tls.cert).toString('base64') }
      : { 'insecure-skip-tls-verify': true };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: this.url, ...trust } }],
      users: [{ name: 'test', user: token === undefined ? {} : { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      'current-context': 'test',
    };
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET' } = request;
    const url = new URL(request.url ?? '/', this.url);
    this.calls.push(`${method} ${url.pathname}`);
    const text = await textOf(request);
    try {
      const mishap = this.mishap({ method, path: url.pathname });
      if (mishap === 'hang') return;
      if (mishap) throw mishap;
      this.#authorise(request);
      if (method === 'GET' && url.searchParams.get('watch') === 'true') return this.#watch(url, response);
      const body = text === '' ? undefined : JSON.parse(text);
      const [status, answer] = this.#answer(method, url, body);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    } catch (error) {
      const { status, reason, message, metadata } =
        error instanceof Refusal ? error : new Refusal(500, 'InternalError', String(error));
      const failure = { status: 'Failure', message, reason, code: status };
      const answer = { kind: 'Status', apiVersion: 'v1', metadata, ...failure };
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    }
  }

  #authorise({ headers }: IncomingMessage): void {
    const { token } = this.#options;
    if (token !== undefined && headers.authorization !== `Bearer ${token}`) {
      throw new Refusal(401, 'Unauthorized', 'Unauthorized');
    }
  }

  #answer(method: string, url: URL, body: any): [number, object] {
    const version = /^\/apis?\/((?:[^/]+\/)?v[^/]+)/.exec(url.pathname)?.[1] ?? '';
    if (this.absent.has(version)) throw new Refusal(404, 'NotFound', 'page not found');
    const described = method === 'GET' ? discovery(url.pathname.replace(/\/$/, '')) : undefined;
    if (described) return [200, described];
    if (url.pathname === '/version') return [200, { major: '1', minor: '30', gitVersion: 'v1.30.0' }];
    const { resource, namespace, name } = targetOf(url.pathname);
    const { apiVersion, kind } = resource;
    if (method === 'POST') {
      const metadata = { ...body.metadata, ...(namespace !== undefined && { namespace }) };
      if (body.kind !== kind || body.apiVersion !== apiVersion) {
        throw new Refusal(
          400,
          'BadRequest',
          `the body is a ${body.apiVersion} ${body.kind}, the path of a ${kind}`,
        );
      }
      return [201, this.store.create({ ...body, metadata })];
    }
    if (name === undefined) {
      if (method !== 'GET')
        throw new Refusal(405, 'MethodNotAllowed', 'the server does not allow this method');
      const { items, metadata } = this.pages.page(url, () =>
        this.store.all(resource, namespace).filter(selectedBy(url.searchParams)),
      );
      return [200, { kind: `${kind}List`, apiVersion, metadata, items }];
    }
    const known = this.store.find(resource, name, namespace);
    if (!known) throw new Refusal(404, 'NotFound', `${resource.plural} "${name}" not found`);
    if (method === 'GET') return [200, known];
    if (method === 'DELETE') return [200, this.store.delete(resource, name, namespace)];
    if (method === 'PUT') return [200, this.store.replace(body)];
    if (method === 'PATCH') {
      // A patch without a version is never in conflict.
      const version = body.metadata?.resourceVersion ?? known.metadata.resourceVersion;
      return [
        200,
        this.store.replace(merge(known, merge(body, { metadata: { resourceVersion: version } })) as Thing),
      ];
    }
    throw new Refusal(405, 'MethodNotAllowed', 'the server does not allow this method');
  }

  /** Changes since a version, or what there is and then its changes; `kubectl delete` waits this way. */
  #watch(url: URL, response: ServerResponse): void {
    const { resource, namespace } = targetOf(url.pathname);
    const isSelected = selectedBy(url.searchParams);
    const names = { created: 'ADDED', changed: 'MODIFIED', deleted: 'DELETED' } as const;
    const tell = (change: keyof typeof names, object: Thing) => {
      const isHere = namespace === undefined || object.metadata.namespace === namespace;
      const isOfKind = object.kind === resource.kind && object.apiVersion === resource.apiVersion;
      if (!isOfKind || !isHere || !isSelected(object)) return;
      response.write(`${JSON.stringify({ type: names[change], object })}\n`);
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    const from = url.searchParams.get('resourceVersion');
    if (from === null) for (const object of this.store.all(resource, namespace)) tell('created', object);
    else for (const { change, object } of this.store.since(Number(from))) tell(change, object);
    response.flushHeaders();
    this.store.watchers.add(tell);
    response.on('close', () => this.store.watchers.delete(tell));
  }

  /** One port of a pod by WebSocket: even channels carry data, odd ones errors, and each begins with the port's number. */
  #forward(request: IncomingMessage, stream: Duplex): void {
    const url = new URL(request.url ?? '/', this.url);
    this.calls.push(`UPGRADE ${url.pathname}`);
    const { namespace, name = '', sub } = targetOf(url.pathname);
    const pod = this.store.find('Pod', name, namespace);
    const offered = String(request.headers['sec-websocket-protocol']).split(/, */);
    const protocol = offered.find((one) => one === 'v4.channel.k8s.io');
    if (sub === 'exec' && pod && protocol !== undefined) {
      this.#exec(request, stream, { pod, protocol, query: url.searchParams });
      return;
    }
    if (sub !== 'portforward' || !pod || protocol === undefined) {
      stream.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    const port = Number(url.searchParams.get('ports'));
    const real = this.reach(pod, port);
    const number = Buffer.from([port & 0xff, port >> 8]);
    const socket = real === undefined ? undefined : connect(real, '127.0.0.1');
    const web = acceptWebSocket(request, stream, protocol, {
      message: (message) => void (message[0] === 0 && socket?.write(message.subarray(1))),
      close: () => socket?.destroy(),
    });
    web.send(Buffer.concat([Buffer.from([0]), number]));
    web.send(Buffer.concat([Buffer.from([1]), number]));
    const fail = () => {
      web.send(Buffer.concat([Buffer.from([1]), Buffer.from(`nothing listens on port ${port}`)]));
      web.close();
    };
    socket?.on('data', (chunk: Buffer) => web.send(Buffer.concat([Buffer.from([0]), chunk])));
    socket?.on('end', () => web.close());
    socket?.on('error', fail);
    if (!socket) fail();
  }

  /** A command in a pod by WebSocket: what it writes on channels 1 and 2, how it ended on channel 3. */
  #exec(
    request: IncomingMessage,
    stream: Duplex,
    { pod, protocol, query }: { pod: Thing; protocol: string; query: URLSearchParams },
  ): void {
    const refuse = (status: string) => stream.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`);
    const { token } = this.#options;
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return void refuse('401 Unauthorized');
    }
    const mishap = this.mishap({ method: 'EXEC', path: new URL(request.url ?? '/', this.url).pathname });
    if (mishap === 'hang') return;
    if (mishap) return void refuse(`${mishap.status} ${mishap.reason}`);
    const names: string[] = (pod.spec?.containers ?? []).map(({ name }: { name: string }) => name);
    const container = query.get('container') ?? '';
    if ((container === '' && names.length > 1) || (container !== '' && !names.includes(container))) {
      return void refuse('400 Bad Request');
    }
    if (query.get('stdout') !== 'true' || query.get('tty') === 'true') return void refuse('400 Bad Request');
    const command = query.getAll('command');
    const web = acceptWebSocket(request, stream, protocol, { message: () => {}, close: () => {} });
    const ran = this.run(pod, command);
    if (ran?.hang) return;
    for (const chunk of chunks(1, ran?.output ?? '')) web.send(chunk);
    for (const chunk of chunks(2, ran?.errors ?? '')) web.send(chunk);
    const { exitCode = 0 } = ran ?? {};
    const failure = {
      status: 'Failure',
      reason: 'NonZeroExitCode',
      message: `command terminated with non-zero exit code: exit status ${exitCode}`,
      details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
    };
    const missing = {
      status: 'Failure',
      reason: 'InternalError',
      message: `exec: "${command[0]}": executable file not found in $PATH`,
    };
    const status = ran === undefined ? missing : exitCode === 0 ? { status: 'Success' } : failure;
    for (const chunk of chunks(3, JSON.stringify(status))) web.send(chunk);
    web.close();
  }
}

const chunks = (channel: number, text: string): Buffer[] =>
  Array.from({ length: Math.ceil(text.length / 30_000) }, (_, at) =>
    Buffer.concat([Buffer.from([channel]), Buffer.from(text.slice(at * 30_000, (at + 1) * 30_000))]),
  );

function targetOf(path: string): Target {
  const match =
    /^\/(?:api\/(v1)|apis\/([^/]+\/[^/]+))(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
      path,
    );
  const [, core, group, namespace, plural, name, sub] = match ?? [];
  const resource = RESOURCES.find((row) => row.apiVersion === (core ?? group) && row.plural === plural);
  if (!resource) throw new Refusal(404, 'NotFound', 'the server could not find the requested resource');
  return { resource, namespace, name, sub };
}

function selectedBy(query: URLSearchParams): (object: Thing) => boolean {
  const labels = (query.get('labelSelector') ?? '').split(',').filter((term) => term !== '');
  const fields = (query.get('fieldSelector') ?? '').split(',').filter((term) => term !== '');
  return ({ metadata }) =>
    labels.every((term) => {
      const [key = '', value] = term.split(/==?/);
      const held = metadata.labels?.[key];
      return value === undefined ? held !== undefined : held === value;
    }) &&
    fields.every((term) => {
      const [key = '', value] = term.split(/==?/);
      return metadata[key.replace('metadata.', '')] === value;
    });
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
