import { createClient } from '@clickhouse/client';
import { createChdbConnection } from 'chdb/connection';
import { openColumnar } from '../test/support/columnar.ts';
import { type Benchmark, fastest, perSecond, type Result } from './measure.ts';

const BATCHES = [1_000, 10_000];
const SPANS = 40_000;
const ROUNDS = 3;

/** A span as the receiver makes it of what an instrumented HTTP server sends. */
function spans(count: number): Record<string, unknown>[] {
  const now = Date.now();
  return Array.from({ length: count }, (_, at) => ({
    Timestamp: new Date(now + at).toISOString(),
    TraceId: (at % 5_000).toString(16).padStart(32, '0'),
    SpanId: at.toString(16).padStart(16, '0'),
    ParentSpanId: '',
    TraceState: '',
    SpanName: `POST /server_${at % 10}/mcp`,
    SpanKind: 'Server',
    ServiceName: `service-${at % 5}`,
    ResourceAttributes: {
      'service.name': `service-${at % 5}`,
      'host.name': 'host-1',
      'telemetry.sdk.language': 'nodejs',
    },
    ScopeName: 'http',
    ScopeVersion: '1.0.0',
    SpanAttributes: {
      'http.target': `/server_${at % 10}/mcp`,
      'http.method': 'POST',
      'http.status_code': '200',
      user_id: `user-${at % 50}`,
    },
    Duration: String(1_000_000 + at),
    StatusCode: 'Unset',
    StatusMessage: '',
  }));
}

/** As a program would write it without us: times as the engine takes them, rows as objects. */
function bare(rows: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  return rows.map(({ Timestamp, ...row }) => {
    return { Timestamp: String(Timestamp).replace('T', ' ').replace('Z', ''), ...row };
  });
}

async function run(): Promise<readonly Result[]> {
  const rig = await openColumnar();
  const client = createClient({ connection: createChdbConnection({ path: rig.engine.place }) as never });
  const stalls = { ours: 0, bare: 0 };
  try {
    const rows = spans(SPANS);
    const values = bare(rows);
    const results: Result[] = [];
    for (const batch of BATCHES) {
      const insertAll = async (kind: keyof typeof stalls, insert: (from: number) => Promise<unknown>) => {
        await rig.empty('otel_traces');
        const lag = watchLoop();
        const began = performance.now();
        for (let from = 0; from < SPANS; from += batch) await insert(from);
        const rate = SPANS / ((performance.now() - began) / 1_000);
        stalls[kind] = Math.max(stalls[kind], lag());
        return rate;
      };
      stalls.ours = 0;
      stalls.bare = 0;
      const rates = await fastest(ROUNDS, {
        ours: () =>
          insertAll('ours', (from) => rig.database.insert('otel_traces', rows.slice(from, from + batch))),
        bare: () =>
          insertAll('bare', (from) =>
            client.insert({
              table: 'telemetry.otel_traces',
              values: values.slice(from, from + batch),
              format: 'JSONEachRow',
            }),
          ),
      });
      const ratio = rates.ours / rates.bare;
      results.push({
        what: `spans inserted, batches of ${batch}`,
        ours: perSecond(rates.ours),
        baseline: `${perSecond(rates.bare)}, the bare client`,
        ratio,
        target: '≥ 0.50',
        met: ratio >= 0.5,
      });
      results.push({
        what: '  longest stall of the event loop',
        ours: `${stalls.ours.toFixed(1)} ms`,
        baseline: `${stalls.bare.toFixed(1)} ms, the bare client`,
        ratio: stalls.ours / stalls.bare,
      });
    }
    return results;
  } finally {
    await client.close();
    await rig.close();
  }
}

/** @returns ends the watch and tells how long the loop was held at most, milliseconds */
function watchLoop(): () => number {
  let last = performance.now();
  let worst = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    worst = Math.max(worst, now - last - 1);
    last = now;
  }, 1);
  return () => {
    clearInterval(timer);
    return worst;
  };
}

export const ingestBenchmark: Benchmark = {
  name: 'ingest',
  summary: 'spans into the embedded columnar database, beside the bare client with the same rows and tables',
  run,
};
