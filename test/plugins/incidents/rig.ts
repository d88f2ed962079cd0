import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { ExecutionContext } from 'ava';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { incidents } from '../../../src/plugins/incidents/index.ts';
import { tempDir } from '../../support/temp.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import { Rig } from '../gateway/rig.ts';

/** A tool's answer. */
export interface Answered {
  readonly failed: boolean;
  readonly text: string;
  readonly fields: any;
}

export interface Investigation {
  readonly rig: Rig;
  readonly client: Client;
  /** Calls a tool of the route by its own name. */
  ask(tool: string, args?: object): Promise<Answered>;
}

/** A gateway with the `incidents` route and other plugins, and an agent whose key has that route alone. */
export async function investigate(
  t: ExecutionContext<any>,
  {
    others = [],
    clock,
    dataDir = tempDir(t),
    options = {},
  }: {
    readonly others?: readonly PluginEntry[];
    readonly clock?: VirtualClock;
    readonly dataDir?: string;
    readonly options?: Parameters<typeof incidents>[0];
  } = {},
): Promise<Investigation> {
  const rig = await Rig.start(t, {}, dataDir, clock, [incidents(options), ...others]);
  const client = await rig.connect(
    t,
    'incidents',
    await rig.mint({ alias: 'agent', servers: ['incidents'] }),
  );
  return {
    rig,
    client,
    async ask(tool, args = {}) {
      const { isError, content, structuredContent } = (await client.callTool({
        name: `incidents-${tool}`,
        arguments: { ...args },
      })) as any;
      return { failed: isError === true, text: content[0].text, fields: structuredContent };
    },
  };
}
