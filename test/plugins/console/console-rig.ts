import { Agent, request } from 'undici';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import type { Clock } from '../../../src/core/kernel/clock.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly body: any;
}

interface Sent {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** Speaks to a console from outside, as a browser does. */
export class ConsoleClient {
  cookie = '';
  readonly #url: string;
  /** One connection: who is at its other end is asked for once. */
  readonly dispatcher: Agent = new Agent({ connections: 1 });

  constructor(url: string) {
    this.#url = url;
  }

  get url(): string {
    return this.#url;
  }

  async send(path: string, { method = 'GET', headers = {}, body }: Sent = {}): Promise<Answered> {
    const answer = await request(this.url + path, {
      method,
      dispatcher: this.dispatcher,
      headers: {
        ...(this.cookie && { cookie: this.cookie }),
        ...(method === 'POST' && { origin: this.url, 'content-type': 'application/json' }),
        ...headers,
      },
      ...(method === 'POST' && { body: JSON.stringify(body ?? {}) }),
    });
    const text = await answer.body.text();
    const isJson = String(answer.headers['content-type']).includes('json');
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    };
  }

  /** @param code as `holdfast console` and `holdfast open` print it */
  async loginWith(code: string): Promise<void> {
    const { status, headers } = await this.send('/api/login', {
      method: 'POST',
      body: { code },
    });
    if (status !== 200) throw new Error(`the login was answered ${status}`);
    this.cookie = String(headers['set-cookie']).split(';', 1)[0] ?? '';
  }

  /** Asks as somebody who is logged in. */
  async ask(path: string): Promise<any> {
    const { status, text, body } = await this.send(path);
    if (status !== 200) throw new Error(`${path} was answered ${status}: ${text}`);
    return body;
  }

  /** All rows of a list: on a busy machine a search ends with what it has, and goes on from there. */
  async askAll(path: string): Promise<any[]> {
    const list = /^\/api\/(\w+)/.exec(path)?.[1] ?? '';
    const rows: any[] = [];
    for (let before = ''; ; ) {
      const page = await this.ask(`${path}${before}`);
      rows.push(...page[list]);
      if (page.next === undefined) return rows;
      before = `${path.includes('?') ? '&' : '?'}before=${page.next}`;
    }
  }
}

/** A runtime with a console. */
export class ConsoleRig extends ConsoleClient {
  readonly runtime: Runtime;
  readonly dataDir: string;
  readonly lines: string[];

  constructor(runtime: Runtime, dataDir: string, lines: string[]) {
    super(runtime.surfaces.console?.url ?? '');
    this.runtime = runtime;
    this.dataDir = dataDir;
    this.lines = lines;
  }

  static async start(
    t: Scope,
    {
      dataDir = tempDir(t),
      others = [],
      options = {},
      clock,
    }: {
      dataDir?: string;
      others?: readonly PluginEntry[];
      options?: Parameters<typeof consolePlugin>[0];
      clock?: Clock;
    } = {},
  ): Promise<ConsoleRig> {
    const lines: string[] = [];
    const { plugins } = resolveConfig(
      { plugins: [consolePlugin({ port: 0, ...options }), ...others] },
      { env: {} },
    );
    const logger = createLogger({ destination: { write: (line) => void lines.push(line) } });
    const runtime = createRuntime({ plugins, dataDir, logger, ...(clock && { clock }) });
    t.teardown(() => runtime.stop('test over'));
    await runtime.start();
    const rig = new ConsoleRig(runtime, dataDir, lines);
    t.teardown(() => rig.dispatcher.destroy());
    return rig;
  }

  /** What `holdfast console` gets. */
  async code(): Promise<string> {
    const { body } = await postControl(
      this.dataDir,
      '/console/code',
      { by: 'ada' },
      AbortSignal.timeout(PATIENCE_MS),
    );
    return (body as { code: string }).code;
  }

  async login(): Promise<void> {
    await this.loginWith(await this.code());
  }

  override async ask(path: string): Promise<any> {
    if (!this.cookie) await this.login();
    return super.ask(path);
  }

  /** Waits until everything that was recorded is durable. */
  async durable(): Promise<number> {
    const { log } = this.runtime.services;
    const { seq } = log.status();
    await log.whenDurable(seq);
    return seq;
  }
}
