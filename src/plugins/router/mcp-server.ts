/**
 * The router as an MCP server behind the gateway, the route `router_ro`: what the `holdfast router` commands read, for
 * agents. Nothing can be written through it, and secrets are redacted. A router plugin contributes it; a route of that
 * name with an upstream replaces it.
 */
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { addTool } from '../../core/contracts/mcp-tool.ts';
import { PAGE, redact } from '../../core/host/logging/redact.ts';
import { isObject } from '../../core/kernel/json.ts';
import { version } from '../../core/kernel/version.ts';
import { findEntry } from './commands/history.ts';
import { differenceOf, fingerprintOf } from './commands/leaves.ts';
import { explainPacket, readAdvertisements, readLegs } from './commands/readings.ts';
import type { RouterTarget } from './commands/target.ts';
import type { RaSource } from './config/advertisements.ts';
import { NETWORK_CONFIG } from './secret-fields.ts';

const MOST_ENTRIES = 100;
/** More than a router takes to answer. */
const DEADLINE_MS = 20_000;

export interface RouterServerOptions {
  readonly target: RouterTarget;
  readonly dataDir: string;
  readonly raSources: readonly RaSource[];
  /** What is known of a pending transaction, for people. */
  readonly transaction: (signal: AbortSignal) => Promise<object>;
}

const address = z.string().min(2).max(80).describe('An IPv6 address; with %intf the leg it is behind');
const entry = z
  .string()
  .min(1)
  .max(64)
  .describe(
    '`active`, `seed` (before the first write), a place in the history (1 is the newest), or the beginning of an ncid',
  );

/** Makes the server of one session. */
export function routerServer({ target, dataDir, raSources, transaction }: RouterServerOptions): McpServer {
  const server = new McpServer(
    { name: 'router_ro', version },
    {
      instructions:
        "Reads a home router's network config and state. Begin with `legs`; `explain` says why a packet passes or not, `history` and `diff` what changed when. Nothing can be changed here.",
    },
  );
  const tool = <S extends z.ZodObject>(
    name: string,
    description: string,
    input: S,
    answer: (given: z.output<S>, signal: AbortSignal) => Promise<object>,
  ) => addTool(server, { name, description, input, answer });

  tool(
    'legs',
    'Lists the networks (legs) of the router: interface, label, addresses, IPv6 address set and its prefixes, whether it advertises, and the address that the reconciler keeps with its state.',
    z.object({}),
    async (_given, signal) => {
      const { legs, keptFields, collisions, adoption } = await readLegs(target, { dataDir, signal });
      return {
        from: target.from,
        legs,
        keptFields,
        collisions,
        ...(adoption && { adoption: adoption.state }),
      };
    },
  );
  tool(
    'config',
    'Shows the active network config with its secrets redacted, or the part at a path, e.g. /interface/vlan/eth1.10.',
    z.object({
      path: z
        .string()
        .max(1_024)
        .regex(/^(?:\/.*)?$/s)
        .default('')
        .describe('A JSON pointer (RFC 6901)'),
    }),
    async ({ path }, signal) => {
      const config = redact(await target.active(signal), PAGE, NETWORK_CONFIG);
      const part = partAt(config, path);
      return part === undefined ? { path, found: false } : { path, found: true, config: part };
    },
  );
  tool(
    'history',
    'Lists accepted config writes, newest first: time, ncid, who wrote, and which paths changed.',
    z.object({
      limit: z.int().min(1).max(MOST_ENTRIES).default(20),
      cursor: z
        .string()
        .regex(/^\d{1,6}$/)
        .optional()
        .describe('`nextCursor` of the answer before'),
    }),
    async ({ limit, cursor = '0' }, signal) => {
      const begin = Number(cursor);
      const entries = await target.history(begin + limit + 1, signal);
      const page = entries.slice(begin, begin + limit);
      const more = entries.length > begin + limit;
      return {
        entries: page.map(({ score, ...write }) => ({ at: new Date(score * 1_000).toISOString(), ...write })),
        ...(more && { nextCursor: String(begin + limit) }),
      };
    },
  );
  tool(
    'diff',
    'Shows what changed from one config of the history to another; secrets only as fingerprints.',
    z.object({ from: entry, to: entry.default('active') }),
    async ({ from, to }) => {
      const [before, after] = [await findEntry(target, from), await findEntry(target, to)];
      const changes = differenceOf(before.config, after.config, fingerprintOf(dataDir));
      return { before: before.label, after: after.label, changes };
    },
  );
  tool(
    'explain',
    'Walks the firewall chains for an IPv6 packet between two addresses: which chain accepts it and why, and which address set lacks a prefix.',
    z.object({ from: address, to: address }),
    (packet, signal) => explainPacket(target, packet, signal),
  );
  tool(
    'advertisements',
    'Lists the IPv6 prefixes that each leg advertises, from which sources and for how long, and conflicts between sources.',
    z.object({}),
    (_given, signal) => readAdvertisements(target, raSources, signal),
  );
  tool(
    'pending_transaction',
    'Says whether a config change waits for its commit, whose it is, and when it reverts.',
    z.object({}),
    (_given, signal) => transaction(signal),
  );

  for (const [name, description, read] of [
    [
      'config',
      'The active network config, secrets redacted',
      async (signal: AbortSignal) => redact(await target.active(signal), PAGE, NETWORK_CONFIG),
    ],
    [
      'legs',
      'The networks with their addresses and address sets',
      (signal: AbortSignal) => readLegs(target, { dataDir, signal }),
    ],
  ] as const) {
    server.registerResource(
      name,
      `router://${name}`,
      { description, mimeType: 'application/json' },
      async (uri, { mcpReq }) => {
        const signal = AbortSignal.any([mcpReq.signal, AbortSignal.timeout(DEADLINE_MS)]);
        return {
          contents: [
            { uri: uri.href, mimeType: 'application/json', text: JSON.stringify(await read(signal)) },
          ],
        };
      },
    );
  }
  return server;
}

/** @param path a JSON pointer */
function partAt(value: unknown, path: string): unknown {
  const parts = path.split('/').slice(1);
  return parts.reduce<unknown>((part, name) => {
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(part)) return part[Number(key)];
    return isObject(part) && Object.hasOwn(part, key) ? part[key] : undefined;
  }, value);
}
