import { execFileSync } from 'node:child_process';
import { setTimeout as after } from 'node:timers/promises';
import type { Listened, Listening } from './listeners.ts';
import type { Load, Order } from './load.ts';
import { Program } from './program.ts';
import { KEY, session } from './session.ts';
import type { Usage } from './usage.ts';

/** What so many open streams were like. */
export interface OpenStreams {
  readonly count: number;
  readonly openMs: number;
  /** Of the gateway's memory, for one of them. */
  readonly bytesEach: number;
  /** Until all have heard one event of their upstream, milliseconds. */
  readonly heardMs: number;
  /** Calls that were made meanwhile. */
  readonly meanwhile: Load;
  /** Until the upstream has heard of the end of all, milliseconds. */
  readonly closedMs: number;
}

export interface Parts {
  readonly url: string;
  /** Of a session that is open. */
  readonly headers: Record<string, string>;
  readonly upstream: Program;
  readonly gateway: Program;
  readonly load: Program;
}

/** How many streams a process can have here, with two sockets each; never more than are wanted. */
export function possible(wanted: number): number {
  const files =
    Number(execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' })) || Number.MAX_SAFE_INTEGER;
  return Math.min(wanted, Math.floor((files - 200) / 2));
}

/** The programs that streams and calls go through, until they are all stopped together. */
export async function startPrograms(dataDir: string): Promise<Parts & { readonly stop: () => void }> {
  const upstream = Program.start('upstream', 1);
  const { url: direct } = await upstream.said<{ url: string }>();
  const gateway = Program.start('gateway', 0, [direct, dataDir, KEY]);
  const load = Program.start('load', 1);
  const [{ url }] = await Promise.all([gateway.said<{ url: string }>(), load.said()]);
  const stop = () => {
    for (const program of [load, gateway, upstream]) program.stop();
  };
  return { url, headers: await session(url), upstream, gateway, load, stop };
}

/** Opens streams through the gateway, talks on them, calls beside them, and leaves all at once. */
export async function openStreams(
  { url, headers, upstream, gateway, load }: Parts,
  count: number,
): Promise<OpenStreams> {
  const listeners = Program.start('listeners', 1);
  try {
    await listeners.said();
    const listen = async (order: Listening) => {
      const told = await listeners.ask<Listened & { error?: string }>(order);
      if (told.error !== undefined) throw new Error(told.error);
      return told;
    };
    const rss = async () => (await gateway.ask<Usage>({ collect: true })).rssMb * 2 ** 20;
    const atUpstream = async (say?: string) => (await upstream.ask<{ streams: number }>({ say })).streams;
    const before = await rss();
    const { ms: openMs } = await listen({ do: 'open', url, headers, count });
    const bytesEach = ((await rss()) - before) / count;
    if ((await atUpstream('hello')) !== count) throw new Error('the upstream has not all of the streams');
    const { ms: heardMs } = await listen({ do: 'hear', text: 'hello' });
    const order: Order = { url, clients: 8, ms: 1_000, tool: 'small', headers, prefix: 'bench-' };
    const meanwhile = await load.ask<Load>(order);
    const left = performance.now();
    await listen({ do: 'close' });
    while ((await atUpstream()) > 0) await after(20);
    return { count, openMs, bytesEach, heardMs, meanwhile, closedMs: performance.now() - left };
  } finally {
    listeners.stop();
  }
}
