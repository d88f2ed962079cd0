import { mkdtempSync, rmSync } from 'node:fs';
import {
  createServer as createPlain,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createTls } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createChdbConnection } from 'chdb/connection';

/** How the next requests are (not) answered. */
export type Fault = 'none' | 'hang' | 'half' | 'reset' | 'proxy' | 'full' | 'busy' | 'reader' | 'old';

export interface ColumnarServer {
  readonly url: string;
  fault: Fault;
  /** What it accepts; a change is a rotation. */
  password: string;
  /** Requests so far. */
  readonly seen: { readonly count: number; readonly settings: readonly Record<string, string>[] };
  /** Runs a statement past everything. */
  run(sql: string): Promise<void>;
  /** Goes away and comes back at the same port. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Settings of the HTTP layer, which the engine does not know. */
const OF_HTTP = [
  'wait_end_of_query',
  'default_format',
  'database',
  'query',
  'query_id',
  'session_id',
  'role',
  'enable_http_compression',
];

const OF_NEW_SERVERS = new Set([
  'output_format_json_quote_denormals',
  'max_partitions_per_insert_block',
  'cancel_http_readonly_queries_on_client_close',
]);

/**
 * A ClickHouse as seen by HTTP: the real engine (chdb) behind a small bridge that speaks the part of the protocol that
 * clients use. It is no ClickHouse server: its own HTTP layer, users and limits are not tested by it.
 */
export async function startColumnarServer(tls?: {
  readonly key: Buffer;
  readonly cert: Buffer;
}): Promise<ColumnarServer> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-columnar-server-'));
  const keeper = createChdbConnection({ path: join(folder, 'data') });
  const settings: Record<string, string>[] = [];
  const state = { fault: 'none' as Fault, password: '', count: 0 };

  const listener: RequestListener = (request, response) => {
    answer(request, response).catch((error: Error) => refuse(response, error.message));
  };
  let server: Server = listen();
  const port = await bound(server, 0);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://server');
    const body = await read(request);
    state.count += 1;
    const given = Object.fromEntries(url.searchParams);
    settings.push(given);
    const { fault } = state;
    if (fault === 'hang') return;
    if (fault === 'reset') return void request.socket.destroy();
    if (fault === 'proxy')
      return void response
        .writeHead(502, { 'content-type': 'text/html' })
        .end('<html>502 Bad Gateway</html>');
    // As ClickHouse 18.16.1 answers: it knows neither the settings nor the format.
    if (fault === 'old') {
      const unknown = Object.keys(given).find((name) => OF_NEW_SERVERS.has(name));
      const text =
        unknown !== undefined
          ? `Code: 115, e.displayText() = DB::Exception: Unknown setting ${unknown}, e.what() = DB::Exception`
          : /FORMAT JSONCompactEachRow/.test(body)
            ? 'Code: 73, e.displayText() = DB::Exception: Unknown format, e.what() = DB::Exception'
            : undefined;
      return void response
        .writeHead(text ? 404 : 200, { 'content-type': 'text/plain' })
        .end(text ?? '18.16.1\n');
    }
    if (fault === 'full')
      return refuse(
        response,
        'Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)',
      );
    if (fault === 'busy')
      return refuse(
        response,
        'Code: 202. DB::Exception: Too many simultaneous queries. Maximum: 100. (TOO_MANY_SIMULTANEOUS_QUERIES)',
      );
    // As to a user of a profile with `readonly = 2`.
    if (fault === 'reader' && given.readonly !== undefined)
      return refuse(
        response,
        "Code: 164. DB::Exception: Cannot modify 'readonly' setting in readonly mode. (READONLY)",
      );
    if (!admits(request))
      return refuse(
        response,
        'Code: 516. DB::Exception: default: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)',
        403,
      );
    const query = given.query === undefined ? body : `${given.query}\n${body}`;
    const text = await execute(query, given);
    if (fault === 'half') return void response.writeHead(200).end(text.slice(0, Math.ceil(text.length / 2)));
    response.writeHead(200, { 'content-type': 'text/plain', 'x-clickhouse-summary': '{}' }).end(text);
  }

  function admits({ headers }: IncomingMessage): boolean {
    const [, basic = ''] = (headers.authorization ?? '').split(' ');
    const [, ...password] = Buffer.from(basic, 'base64').toString().split(':');
    return password.join(':') === state.password;
  }

  async function execute(query: string, given: Record<string, string>): Promise<string> {
    const connection = createChdbConnection({ path: join(folder, 'data') });
    try {
      if (given.database) await connection.chdb.queryAsync(`USE ${given.database}`);
      const names = Object.keys(given).filter((name) => !OF_HTTP.includes(name));
      for (const name of names.sort((a, b) => Number(a === 'readonly') - Number(b === 'readonly')))
        await connection.chdb.queryAsync(
          `SET ${name} = '${given[name]?.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`,
        );
      const format = given.default_format;
      return (await connection.chdb.queryAsync(query, format === undefined ? {} : { format })).text();
    } finally {
      await connection.close();
    }
  }

  function listen(): Server {
    return tls ? createTls(tls, listener) : createPlain(listener);
  }

  async function stop(): Promise<void> {
    (server as ReturnType<typeof createPlain>).closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  return {
    url: `${tls ? 'https' : 'http'}://localhost:${port}`,
    get fault() {
      return state.fault;
    },
    set fault(fault) {
      state.fault = fault;
    },
    get password() {
      return state.password;
    },
    set password(password) {
      state.password = password;
    },
    get seen() {
      return { count: state.count, settings };
    },
    async run(sql) {
      await keeper.chdb.queryAsync(sql);
    },
    stop,
    async restart() {
      server = listen();
      await bound(server, port);
    },
    async close() {
      await stop();
      await keeper.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function bound(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve));
  server.unref();
  return (server.address() as AddressInfo).port;
}

async function read(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

function refuse(response: ServerResponse, text: string, status = 500): void {
  const [, code = '1002'] = /Code: (\d+)\./.exec(text) ?? [];
  response.writeHead(status, { 'content-type': 'text/plain', 'x-clickhouse-exception-code': code }).end(text);
}
