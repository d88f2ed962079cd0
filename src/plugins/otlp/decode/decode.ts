import { ownSchema } from '../../../core/contracts/columnar/columns.ts';
import { type RowWriter, writerOf } from '../../../core/contracts/columnar/writer.ts';
import { SIGNAL_TABLES, type SignalTable } from '../../../core/contracts/columnar-database.ts';
import { parseJson } from './json.ts';
import { mapLogs } from './logs.ts';
import { mapMetrics } from './metrics.ts';
import { type Decoded, Rows, type Writers } from './rows.ts';
import { mapTraces } from './traces.ts';
import { BodyInvalid, ItemRefused, type Message } from './values.ts';

export type Signal = 'traces' | 'metrics' | 'logs';
export type Encoding = 'json' | 'protobuf';

const SIGNALS = {
  traces: { type: 'TraceRequest', map: mapTraces },
  metrics: { type: 'MetricsRequest', map: mapMetrics },
  logs: { type: 'LogsRequest', map: mapLogs },
} as const;

const own = new Map(SIGNAL_TABLES.map((table) => [table, writerOf(ownSchema(table))]));

/** For tables that nobody has looked at. */
export function ownWriter(table: SignalTable): RowWriter {
  return own.get(table) as RowWriter;
}

/**
 * The rows of one request, written as they are inserted.
 *
 * @param body inflated
 * @param nowMs the receiver's clock
 * @param writers of the tables as they are
 * @throws BodyInvalid nothing of it can be taken
 */
export async function decode(
  signal: Signal,
  encoding: Encoding,
  body: Buffer,
  nowMs: number,
  writers: Writers = ownWriter,
): Promise<Decoded> {
  const { type, map } = SIGNALS[signal];
  const request =
    encoding === 'json' ? parseJson(body) : (await import('./protobuf.ts')).parseProtobuf(body, type);
  if (typeof request !== 'object' || request === null || Array.isArray(request)) {
    throw new BodyInvalid('it is no JSON object');
  }
  const rows = new Rows(writers);
  try {
    map(request as Message, rows, nowMs);
  } catch (error) {
    if (error instanceof ItemRefused) throw new BodyInvalid(error.message);
    throw error;
  }
  return rows;
}
