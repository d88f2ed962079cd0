/** The load: so many clients that each send one call after the other. Its own process. */
import { setTimeout as after } from 'node:timers/promises';
import { Pool } from 'undici';

export interface Order {
  readonly url: string;
  readonly clients: number;
  readonly ms: number;
  /** Ends it also when so many are done. */
  readonly calls?: number;
  /** Each client begins a call this often, milliseconds, in turn with the others; else as soon as its last is answered. */
  readonly everyMs?: number;
  readonly tool: 'small' | 'big' | 'stream';
  readonly headers: Record<string, string>;
  readonly prefix: string;
}

export interface Load {
  readonly calls: number;
  readonly failed: number;
  /** Calls a second. */
  readonly rate: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Until the first byte of the body, milliseconds. */
  readonly first: number;
}

export interface Loaded extends Load {
  /** The first answer that was not 200. */
  readonly failure?: string;
}

process.on('message', async (order: Order) => process.send?.(await load(order)));
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

/** The connections to each target stay open between its turns, as those of real clients do. */
const pools = new Map<string, { readonly clients: number; readonly pool: Pool }>();

async function connected(origin: string, clients: number): Promise<Pool> {
  const known = pools.get(origin);
  if (known?.clients === clients) return known.pool;
  await known?.pool.close();
  const pool = new Pool(origin, { connections: clients, pipelining: 1 });
  pools.set(origin, { clients, pool });
  return pool;
}

async function load({
  url,
  clients,
  ms,
  calls = Number.POSITIVE_INFINITY,
  everyMs = 0,
  tool,
  headers,
  prefix,
}: Order): Promise<Loaded> {
  const { origin, pathname } = new URL(url);
  const pool = await connected(origin, clients);
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: `${prefix}${tool}`, arguments: { text: 'y'.repeat(200) } },
  });
  const sent = {
    ...headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const took: number[] = [];
  const firsts: number[] = [];
  let failed = 0;
  let failure: string | undefined;
  let begun = 0;
  const until = performance.now() + ms;
  const client = async (_: unknown, index: number) => {
    let due = performance.now() + (everyMs * index) / clients;
    while (performance.now() < until && begun < calls) {
      if (everyMs > 0) await after(Math.max(0, due - performance.now()));
      due += everyMs;
      begun += 1;
      const started = performance.now();
      const answer = await pool.request({ path: pathname, method: 'POST', headers: sent, body });
      let first = 0;
      const chunks: Buffer[] = [];
      for await (const chunk of answer.body) {
        first ||= performance.now() - started;
        if (answer.statusCode !== 200) chunks.push(chunk);
      }
      if (answer.statusCode !== 200) {
        failed += 1;
        failure ??= `${answer.statusCode} ${Buffer.concat(chunks).toString().slice(0, 500)}`;
      }
      firsts.push(first);
      took.push(performance.now() - started);
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - started) / 1_000;
  took.sort((a, b) => a - b);
  firsts.sort((a, b) => a - b);
  const at = (values: number[], q: number) =>
    values[Math.min(values.length - 1, Math.floor(values.length * q))] ?? 0;
  return {
    calls: took.length,
    failed,
    ...(failure !== undefined && { failure }),
    rate: took.length / seconds,
    p50: at(took, 0.5),
    p99: at(took, 0.99),
    first: at(firsts, 0.5),
  };
}
