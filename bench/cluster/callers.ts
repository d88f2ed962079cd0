import type { Scope } from '../../test/support/scope.ts';
import { read } from '../../test/support/until.ts';
import type { Loaded, Order } from '../gateway/load.ts';
import { Program } from '../gateway/program.ts';
import { session } from '../gateway/session.ts';
import type { BenchHost } from './host.ts';

/** With a cluster or without one. */
export type Kind = 'clustered' | 'alone';

export type Two<T> = readonly [T, T];

/** The hosts that are called, of each kind. */
export type Pairs = Readonly<Record<Kind, Two<Target>>>;

/** A processor of the machine, with a load, an upstream and the route to it. */
export interface Place {
  readonly processor: number;
  readonly route: string;
  readonly load: Program;
}

export interface Target {
  readonly host: BenchHost;
  /** Headers of requests, by route. */
  readonly sessions: ReadonlyMap<string, Order['headers']>;
}

/** The load shares the machine, so it has its place on a processor like everything else. */
export async function place(scope: Scope, processor: number): Promise<Place & { readonly url: string }> {
  const begin = (name: string) => {
    const program = Program.start(name, processor);
    scope.teardown(() => program.stop());
    return program;
  };
  const upstream = begin('upstream');
  const { url } = await upstream.said<{ url: string }>();
  const load = begin('load');
  await load.said();
  return { processor, route: `near${processor}`, load, url };
}

/** A host with a session of each route. */
export async function target(host: BenchHost, routes: readonly string[]): Promise<Target> {
  const sessions = new Map<string, Order['headers']>();
  for (const route of routes) {
    // Another host knows of the key some milliseconds later.
    const find = () => session(host.mcpUrl(route));
    sessions.set(route, await read('a session', find, (found) => found['mcp-session-id'] !== '', 50));
  }
  return { host, sessions };
}

/** @throws when a call failed */
export async function called(
  { load, route }: Place,
  { host, sessions }: Target,
  order: Pick<Order, 'clients' | 'ms' | 'calls' | 'everyMs'>,
): Promise<Loaded> {
  const done = await load.ask<Loaded>({
    ...{ ...order, tool: 'small', url: host.mcpUrl(route), prefix: `${route}-` },
    headers: sessions.get(route) ?? {},
  });
  if (done.failed > 0)
    throw new Error(`${host.name}: ${done.failed} of ${done.calls} calls failed, first with ${done.failure}`);
  return done;
}
