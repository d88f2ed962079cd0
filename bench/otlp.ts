import { createClient } from '@clickhouse/client';
import { createChdbConnection } from 'chdb/connection';
import { Agent, request } from 'undici';
import { decode, type Encoding } from '../src/plugins/otlp/decode/index.ts';
import { build } from '../src/plugins/otlp/decode/protobuf.ts';
import { type Receiving, receive } from '../test/plugins/otlp/rig.ts';
import { openColumnar } from '../test/support/columnar.ts';
import { type Benchmark, fastest, perSecond, quantile, type Result, withScope } from './measure.ts';

const SPANS = 10_000;
const ROUNDS = 2;
const SIZES = [100, 1_000];
const PRODUCERS = 8;
const MEDIA = { json: 'application/json', protobuf: 'application/x-protobuf' } as const;
const CALM_ROUNDS = 200;

/** A request of so many spans, as an instrumented HTTP server sends them. */
function requestOf(count: number) {
  const start = BigInt(Date.now()) * 1_000_000n;
  const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } });
  const spans = Array.from({ length: count }, (_, at) => ({
    traceId: (at + 1).toString(16).padStart(32, '0'),
    spanId: (at + 1).toString(16).padStart(16, '0'),
    name: `POST /server_${at % 10}/mcp`,
    kind: 2,
    startTimeUnixNano: String(start + BigInt(at)),
    endTimeUnixNano: String(start + BigInt(at) + 1_000_000n),
    attributes: [
      attribute('http.target', `/server_${at % 10}/mcp`),
      attribute('http.method', 'POST'),
      { key: 'http.status_code', value: { intValue: '200' } },
      attribute('user_id', `user-${at % 50}`),
    ],
    status: {},
  }));
  const resource = [attribute('service.name', 'shop'), attribute('host.name', 'host-1')];
  return {
    resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope: { name: 'http' }, spans }] }],
  };
}

function bodyOf(encoding: Encoding, count: number): Buffer {
  const message = requestOf(count);
  if (encoding === 'json') return Buffer.from(JSON.stringify(message));
  const type = build().lookupType('TraceRequest');
  const bytes = JSON.parse(JSON.stringify(message), (key, value) =>
    key === 'traceId' || key === 'spanId' ? [...Buffer.from(value, 'hex')] : value,
  );
  return Buffer.from(type.encode(type.fromObject(bytes)).finish());
}

/** Sends requests, some at once. @returns milliseconds each took */
async function send(
  { http, key }: Receiving,
  agent: Agent,
  body: Buffer,
  encoding: Encoding,
  count: number,
  atOnce: number,
) {
  const took: number[] = [];
  let left = count;
  const producer = async () => {
    while (left > 0) {
      left -= 1;
      const began = performance.now();
      const { statusCode, body: answer } = await request(`${http}/v1/traces`, {
        method: 'POST',
        dispatcher: agent,
        headers: { 'content-type': MEDIA[encoding], authorization: key },
        body,
      });
      await answer.dump();
      if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
      took.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, producer));
  return took;
}

async function run(): Promise<readonly Result[]> {
  const rig = await openColumnar();
  const client = createClient({ connection: createChdbConnection({ path: rig.engine.place }) as never });
  const agent = new Agent({ connections: PRODUCERS });
  try {
    return await withScope(async (scope) => {
      const receiving = await receive(scope, rig.database, { lingerMs: 20 });
      const results: Result[] = [];
      const rate = async (work: () => Promise<unknown>) => {
        await rig.empty('otel_traces');
        const began = performance.now();
        await work();
        return SPANS / ((performance.now() - began) / 1_000);
      };
      const { rows } = await decode('traces', 'json', bodyOf('json', 1_000), Date.now());
      const values = rows.map(({ text }) => {
        const {
          Flags: _,
          ScopeAttributes: _s,
          ScopeDroppedAttrCount: _d,
          ResourceSchemaUrl: _u,
          ScopeSchemaUrl: _c,
          ...row
        } = JSON.parse(text);
        return { ...row, Timestamp: `${row.Timestamp.slice(0, 10)}.${row.Timestamp.slice(10)}` };
      });
      for (const encoding of ['json', 'protobuf'] as const) {
        for (const size of SIZES) {
          const body = bodyOf(encoding, size);
          const lag = watchLoop();
          let stall = 0;
          const rates = await fastest(ROUNDS, {
            ours: () =>
              rate(async () => {
                lag();
                await send(receiving, agent, body, encoding, SPANS / size, PRODUCERS);
                stall = Math.max(stall, lag());
              }),
            decoding: () =>
              rate(async () => {
                for (let at = 0; at < SPANS; at += size) await decode('traces', encoding, body, Date.now());
              }),
            bare: () =>
              rate(async () => {
                for (let at = 0; at < SPANS; at += 1_000)
                  await client.insert({ table: 'otel_traces', values, format: 'JSONEachRow' });
              }),
          });
          const what = `${encoding === 'json' ? 'JSON' : 'protobuf'}, ${size.toLocaleString('en')} spans a request`;
          const ratio = rates.ours / rates.bare;
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
              what: '  beside decoding alone; longest stall of the event loop',
              ours: `${stall.toFixed(0)} ms`,
              baseline: `${perSecond(rates.decoding)} decoded`,
              ratio: rates.ours / rates.decoding,
            },
          );
        }
      }
      const calm = bodyOf('json', 100);
      const took = await send(receiving, agent, calm, 'json', CALM_ROUNDS, 1);
      const decoding: number[] = [];
      for (let at = 0; at < CALM_ROUNDS; at += 1) {
        const began = performance.now();
        await client.insert({ table: 'otel_traces', values: values.slice(0, 100), format: 'JSONEachRow' });
        decoding.push(performance.now() - began);
      }
      results.push({
        what: 'answer to 100 spans of one producer, p50 / p99',
        ours: `${quantile(took, 0.5).toFixed(1)} / ${quantile(took, 0.99).toFixed(1)} ms`,
        baseline: `${quantile(decoding, 0.5).toFixed(1)} / ${quantile(decoding, 0.99).toFixed(1)} ms, bare insert`,
        ratio: quantile(took, 0.5) / quantile(decoding, 0.5),
      });
      return results;
    });
  } finally {
    await agent.close();
    await client.close();
    await rig.close();
  }
}

/** @returns tells how long the event loop was held at most since it was asked last, milliseconds */
function watchLoop(): () => number {
  let last = performance.now();
  let worst = 0;
  setInterval(() => {
    const now = performance.now();
    worst = Math.max(worst, now - last - 1);
    last = now;
  }, 1).unref();
  return () => {
    const told = worst;
    worst = 0;
    return told;
  };
}

export const otlpBenchmark: Benchmark = {
  name: 'otlp',
  summary: 'spans by OTLP over HTTP, until they are in the embedded columnar database',
  run,
};
