import { type ChildProcess, fork } from 'node:child_process';
import { createClient } from '@clickhouse/client';
import { createChdbConnection } from 'chdb/connection';
import type { ColumnarDatabase } from '../src/core/contracts/columnar-database.ts';
import { decode } from '../src/plugins/otlp/decode/decode.ts';
import { readRows } from '../src/plugins/otlp/decode/row-writer.ts';
import { receive } from '../test/plugins/otlp/rig.ts';
import { openColumnar } from '../test/support/columnar.ts';
import { type Benchmark, fastest, perSecond, quantile, type Result, withScope } from './measure.ts';
import { killed, overload } from './otlp/product.ts';
import { bodyOf, type Order, type Sent } from './otlp/send.ts';

const SPANS = 20_000;
/** Rows that a user of the bare client inserts at once. */
const BARE = 1_000;
const ROUNDS = 2;
const SIZES = [100, 1_000];
const PRODUCERS = 32;
const HALF_MS = 5_000;

/** Sends from a process of its own. */
function ask(sender: ChildProcess, order: Order): Promise<Sent> {
  const answered = new Promise<Sent>((resolve) => sender.once('message', (sent) => resolve(sent as Sent)));
  sender.send(order);
  return answered;
}

async function run(): Promise<readonly Result[]> {
  const rig = await openColumnar();
  const client = createClient({ connection: createChdbConnection({ path: rig.engine.place }) as never });
  const sender = fork(new URL('./otlp/send.ts', import.meta.url).pathname);
  try {
    const results = await withScope(async (scope) => {
      const { http, key } = await receive(scope, rig.database, { lingerMs: 20 });
      const results: Result[] = [];
      let cpu: Record<string, number> = {};
      let half = 0;
      const rate = async (name: string, work: () => Promise<unknown>) => {
        await rig.empty('otel_traces');
        const before = process.cpuUsage();
        const began = performance.now();
        await work();
        const seconds = (performance.now() - began) / 1_000;
        const { user, system } = process.cpuUsage(before);
        cpu[name] = Math.min(cpu[name] ?? Number.POSITIVE_INFINITY, (user + system) / SPANS);
        return SPANS / seconds;
      };
      const { rows } = await decode('traces', 'json', bodyOf('json', 1_000), Date.now());
      const values = rows.map(({ layout, text }) => {
        const { Timestamp, ...row } = readRows(layout, Buffer.from(text))[0] as Record<string, string>;
        return { Timestamp: `${Timestamp?.slice(0, 10)}.${Timestamp?.slice(10)}`, ...row };
      });
      for (const encoding of ['json', 'protobuf'] as const) {
        for (const size of SIZES) {
          const body = bodyOf(encoding, size);
          const order = { http, key, encoding, size, requests: SPANS / size, atOnce: PRODUCERS };
          cpu = {};
          const lag = watchLoop();
          let stall = { wall: 0, busy: 0 };
          const rates = await fastest(ROUNDS, {
            ours: () =>
              rate('ours', async () => {
                lag();
                const { statuses } = await ask(sender, order);
                if (statuses[200] !== order.requests) throw new Error(`answered ${JSON.stringify(statuses)}`);
                const { wall, busy } = lag();
                stall = { wall: Math.max(stall.wall, wall), busy: Math.max(stall.busy, busy) };
              }),
            decoding: () =>
              rate('decoding', async () => {
                for (let at = 0; at < SPANS; at += size) await decode('traces', encoding, body, Date.now());
              }),
            bare: () =>
              rate('bare', async () => {
                for (let at = 0; at < SPANS; at += BARE)
                  await client.insert({ table: 'telemetry.otel_traces', values, format: 'JSONEachRow' });
              }),
          });
          const what = `${encoding === 'json' ? 'JSON' : 'protobuf'}, ${size.toLocaleString('en')} spans a request`;
          const ratio = rates.ours / rates.bare;
          half ||= rates.ours;
          results.push(
            {
              what,
              ours: perSecond(rates.ours),
              baseline: `${perSecond(rates.bare)}, the same rows by the bare client`,
              ratio,
              target: '≥ 0.50',
              met: ratio >= 0.5,
            },
            {
              what: '  processor a span',
              ours: `${cpu.ours?.toFixed(0)} µs`,
              baseline: `${cpu.bare?.toFixed(0)} µs bare client, ${cpu.decoding?.toFixed(0)} µs decoding`,
              ratio: (cpu.ours ?? 0) / (cpu.bare ?? 1),
            },
            {
              what: '  beside decoding alone; longest stall of the event loop',
              ours: `${stall.wall.toFixed(0)} ms, ${stall.busy.toFixed(0)} of them at work`,
              baseline: `${perSecond(rates.decoding)} decoded`,
              ratio: rates.ours / rates.decoding,
            },
          );
        }
      }
      const inserts = watchInserts(rig.database);
      const everyMs = (1_000 * PRODUCERS * 100) / (half / 2);
      const order = { http, key, encoding: 'json', size: 100, requests: 100_000 } as const;
      const { took } = await ask(sender, { ...order, atOnce: PRODUCERS, everyMs, untilMs: HALF_MS });
      const own = inserts();
      const inserting: number[] = [];
      for (const until = performance.now() + HALF_MS / 2; performance.now() < until; ) {
        const began = performance.now();
        await client.insert({
          table: 'telemetry.otel_traces',
          values: values.slice(0, 100),
          format: 'JSONEachRow',
        });
        inserting.push(performance.now() - began);
      }
      results.push({
        what: 'answer at half load, JSON, 100 a request, p50 / p99',
        ours: `${quantile(took, 0.5).toFixed(1)} / ${quantile(took, 0.99).toFixed(1)} ms`,
        baseline: `${quantile(inserting, 0.5).toFixed(1)} / ${quantile(inserting, 0.99).toFixed(1)} ms, one bare insert`,
        ratio: quantile(took, 0.99) / quantile(inserting, 0.99),
        target: '≤ 3.00',
        met: quantile(took, 0.99) <= 3 * quantile(inserting, 0.99),
      });
      results.push({
        what: '  of that in the insert itself, p50 / p99',
        ours: `${quantile(own.took, 0.5).toFixed(1)} / ${quantile(own.took, 0.99).toFixed(1)} ms`,
        baseline: `${(own.rows / own.took.length).toFixed(0)} rows at once on the average`,
        ratio: quantile(own.took, 0.99) / quantile(took, 0.99),
      });
      return results;
    });
    return [...results, ...(await overload()), ...(await killed())];
  } finally {
    sender.kill();
    await client.close();
    await rig.close();
  }
}

/**
 * @returns tells how long the event loop was held at most since it was asked last, milliseconds, and how much processor
 *   time it spent at one go: on a machine that others use too, much of the first is theirs
 */
function watchLoop(): () => { readonly wall: number; readonly busy: number } {
  let last = performance.now();
  let spent = process.threadCpuUsage();
  let worst = { wall: 0, busy: 0 };
  setInterval(() => {
    const now = performance.now();
    const { user, system } = process.threadCpuUsage(spent);
    worst = {
      wall: Math.max(worst.wall, now - last - 1),
      busy: Math.max(worst.busy, (user + system) / 1_000),
    };
    last = now;
    spent = process.threadCpuUsage();
  }, 1).unref();
  return () => {
    const told = worst;
    worst = { wall: 0, busy: 0 };
    return told;
  };
}

/** @returns ends the watch, and tells how long each insert took, milliseconds, and how many rows they had in all */
function watchInserts(database: ColumnarDatabase): () => { readonly took: number[]; readonly rows: number } {
  const { insert } = database;
  const took: number[] = [];
  let all = 0;
  database.insert = async (table, rows, options) => {
    const began = performance.now();
    await insert.call(database, table, rows, options);
    took.push(performance.now() - began);
    all += 'bytes' in rows ? rows.rows : rows.length;
  };
  return () => {
    database.insert = insert;
    return { took, rows: all };
  };
}

export const otlpBenchmark: Benchmark = {
  name: 'otlp',
  summary: 'spans by OTLP over HTTP, until they are in the embedded columnar database',
  run,
};
