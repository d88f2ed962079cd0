import { setTimeout as after } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { createParser } from 'eventsource-parser';
import type { McpCommand } from '../../../src/core/contracts/mcp-routes.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { type Clock, systemClock } from '../../../src/core/kernel/clock.ts';
import { StdioServer } from '../../../src/plugins/gateway/local/stdio/stdio-server.ts';
import { routeSchema } from '../../../src/plugins/gateway/routes/entry.ts';
import { tempDir } from '../../support/temp.ts';

export const PROGRAM = new URL('../../support/stdio-program.ts', import.meta.url).pathname;
const MEDIA = 'application/json, text/event-stream';
/** What each message of the stateless revision says of its sender. */
const STATELESS = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The command of the tests' own program. */
export const program = (mode = 'sessions', ...args: string[]): McpCommand => ({
  run: process.execPath,
  args: [PROGRAM, mode, ...args],
});

interface Options {
  readonly clock?: Clock;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly folder?: string;
}

/** A server on standard input and output, without a gateway in front of it. */
export class StdioRig {
  readonly server: StdioServer;
  readonly lines: string[] = [];

  constructor(t: ExecutionContext<unknown>, command: McpCommand, options: Options = {}) {
    const { clock = systemClock, secrets = {}, folder = tempDir(t) } = options;
    const entry = routeSchema.parse({ name: 'tested', disposition: 'credential_free', command });
    if (!entry.command) throw new Error('no command');
    this.server = new StdioServer({
      name: entry.name,
      command: entry.command,
      folder,
      clock,
      logger: createLogger({ destination: { write: (line) => void this.lines.push(line) } }),
      readSecret: async (reference) => {
        const value = secrets[reference];
        if (value === undefined) throw new Error('there is none');
        return value;
      },
    });
    t.teardown(() => this.server.close());
  }

  request(
    method: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<Response> {
    const media =
      body === undefined
        ? { accept: 'text/event-stream' }
        : { accept: MEDIA, 'content-type': 'application/json' };
    return this.server.fetch(
      new Request('http://tested.invalid/mcp', {
        method,
        headers: { ...media, ...headers },
        ...(body && { body: JSON.stringify({ jsonrpc: '2.0', ...body }) }),
        ...(signal && { signal }),
      }),
    );
  }

  /** A session as clients begin it. @returns its headers */
  async begin(protocolVersion = '2025-11-25'): Promise<Record<string, string>> {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } };
    const answer = await this.request('POST', { id: 0, method: 'initialize', params });
    const session = answer.headers.get('mcp-session-id');
    if (session === null) throw new Error(`no session: ${answer.status} ${await answer.text()}`);
    const headers = { 'mcp-session-id': session, 'mcp-protocol-version': protocolVersion };
    await this.request('POST', { method: 'notifications/initialized' }, headers);
    return headers;
  }

  /** Calls a tool in a session. */
  call(
    session: Readonly<Record<string, string>>,
    name: string,
    given: object = {},
    id: string | number = 1,
    _meta?: object,
  ): Promise<Response> {
    const params = { name, arguments: given, ...(_meta && { _meta }) };
    return this.request('POST', { id, method: 'tools/call', params }, session);
  }

  /** Sends a request of the stateless revision. */
  ask(
    method: string,
    params: { readonly name?: string; readonly arguments?: object; readonly [key: string]: unknown } = {},
    { id = 1, _meta = {}, signal }: { id?: string | number; _meta?: object; signal?: AbortSignal } = {},
  ): Promise<Response> {
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
    const own = { ...params, _meta: { ...STATELESS, ..._meta } };
    return this.request('POST', { id, method, params: own }, headers, signal);
  }
}

/** The messages of an answer, JSON or events. */
export async function messagesOf(answer: Response): Promise<any[]> {
  const text = await answer.text();
  if (answer.headers.get('content-type')?.startsWith('application/json')) return [JSON.parse(text)];
  const messages: any[] = [];
  createParser({ onEvent: ({ data }) => messages.push(JSON.parse(data)) }).feed(text);
  return messages;
}

/** What a tool of the tests' own program said. */
export async function said(answer: Response | Promise<Response>): Promise<any> {
  const text = (await messagesOf(await answer)).at(-1)?.result?.content?.[0]?.text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Waits until something holds: it must, before the test's own time is over. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await after(10);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What `fetch` rejects with when a process ends before its answer: the gateway says that the connection broke off. */
export const BROKEN_OFF = { code: 'ECONNRESET' } as const;
