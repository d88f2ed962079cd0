import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import { McpServer } from '@modelcontextprotocol/server';
import type { ExecutionContext } from 'ava';
import { z } from 'zod';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { PluginHost } from '../../../src/core/host/plugin/host.ts';
import { type Clock, systemClock } from '../../../src/core/kernel/clock.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import type { ApprovalView } from '../../../src/plugins/gateway/approvals/view.ts';
import { credentialFree, gateway } from '../../../src/plugins/gateway/index.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { Rig } from './rig.ts';
import { until } from './talkers.ts';

export type Options = NonNullable<Parameters<typeof gateway>[0]>;
const { signal } = new AbortController();

/** Waits of a person are virtual; those of commits and connections, which are short, end by themselves. */
export class LongWaits extends VirtualClock {
  override after(delayMs: number, callback: () => void): () => void {
    return delayMs <= 1_000 ? systemClock.after(delayMs, callback) : super.after(delayMs, callback);
  }
}

/** A server whose calls are counted, because somebody should have been asked. */
export class Counting {
  readonly wiped: string[] = [];
  text = 'Wipes a page.';
  /** Before which it answers no call. */
  answer: Promise<void> | undefined;

  readonly serve = (): McpServer => {
    const server = new McpServer({ name: 'pages', version: '1' });
    const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] });
    const wipes = { description: this.text, inputSchema: z.object({ page: z.string() }) };
    server.registerTool('wipe', wipes, async ({ page }) => {
      this.wiped.push(page);
      await this.answer;
      return text(`wiped ${page}`);
    });
    server.registerTool('read', { inputSchema: z.object({}) }, async () => text('read'));
    return server;
  };
}

interface Setting {
  readonly server?: Counting;
  readonly dataDir?: string;
  readonly clock?: Clock;
  readonly options?: Options;
  readonly others?: readonly PluginEntry[];
}

/** A gateway with one server of which one tool asks a person. */
export class ApprovalRig {
  readonly rig: Rig;
  readonly server: Counting;
  readonly key: string;

  private constructor(rig: Rig, server: Counting, key: string) {
    this.rig = rig;
    this.server = server;
    this.key = key;
  }

  static async open(
    t: ExecutionContext<unknown>,
    { server = new Counting(), dataDir = tempDir(t), clock, options, others }: Setting = {},
    key?: string,
  ): Promise<ApprovalRig> {
    const routes = [
      credentialFree({ name: 'pages', server: server.serve, toolSettings: { wipe: { approval: 'ask' } } }),
    ];
    const rig = await Rig.start(t, { routes, ...options }, dataDir, clock, others);
    return new ApprovalRig(
      rig,
      server,
      key ?? (await rig.mint({ alias: 'desk', servers: ['pages', 'wiki'] })),
    );
  }

  connect(t: ExecutionContext<unknown>, route = 'pages'): Promise<Client> {
    return this.rig.connect(t, route, this.key);
  }

  async list(): Promise<readonly ApprovalView[]> {
    const { body } = await postControl(this.rig.dataDir, '/gateway/approvals', {}, signal);
    return (body as { approvals: readonly ApprovalView[] }).approvals;
  }

  decide(id: string, verdict: 'approved' | 'denied', why = 'said so') {
    return postControl(
      this.rig.dataDir,
      '/gateway/approvals/decide',
      { id, verdict, why, by: 'ann' },
      signal,
    );
  }

  /** @returns the first record that a replay decides otherwise; undefined is none */
  async divergence(): Promise<unknown> {
    await this.rig.records();
    const { definition } = gateway();
    const host = new PluginHost([{ definition, options: definition.options.parse({ routes: [] }) }]);
    const definitions = new Map(host.register().actors.map((actor) => [actor.type, actor]));
    const reader = new SqliteReader(this.rig.dataDir);
    try {
      return verifyLog(reader, definitions).divergence;
    } finally {
      reader.close();
    }
  }

  /** @returns what waits for a person, once there are so many */
  async waiting(t: ExecutionContext<unknown>, count = 1): Promise<readonly ApprovalView[]> {
    const { actors } = this.rig.runtime.services;
    const states = () => actors.states('gateway.approval').filter(({ value }) => value === 'waiting');
    await until(t, `${count} calls wait`, () => states().length === count);
    return (await this.list()).filter(({ state }) => state === 'waiting');
  }
}

/** One call of the tool that asks. @returns its text, and whether it is an error */
export function wipe(
  client: Pick<Client, 'callTool'>,
  page = 'home',
  options: Pick<RequestOptions, 'onprogress' | 'signal'> = {},
): Promise<string> {
  const given = { name: 'pages-wipe', arguments: { page } };
  const said = client
    .callTool(given, undefined, { timeout: 600_000, ...options })
    .then(
      ({ content, isError }) => `${isError ? 'refused: ' : ''}${(content as { text: string }[])[0]?.text}`,
    );
  said.catch(() => {}); // a test that fails earlier does not wait for it
  return said;
}
