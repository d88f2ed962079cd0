import { isUtf8 } from 'node:buffer';
import { mapLogs } from './logs.ts';
import { mapMetrics } from './metrics.ts';
import { defaultShape, writerOf } from './row-writer.ts';
import { type Decoded, Rows, type Writers } from './rows.ts';
import { mapTraces } from './traces.ts';
import { BodyInvalid, ItemRefused, isMessage } from './values.ts';

export type Signal = 'traces' | 'metrics' | 'logs';
export type Encoding = 'json' | 'protobuf';

const SIGNALS = {
  traces: { type: 'TraceRequest', map: mapTraces },
  metrics: { type: 'MetricsRequest', map: mapMetrics },
  logs: { type: 'LogsRequest', map: mapLogs },
} as const;

/**
 * Decodes one request into rows, written as they are inserted.
 *
 * @param body inflated
 * @param nowMs the receiver's clock
 * @param writers for the tables as the database has them
 * @throws BodyInvalid nothing of it can be taken
 */
export async function decode(
  signal: Signal,
  encoding: Encoding,
  body: Buffer,
  nowMs: number,
  writers: Writers = (table) => writerOf(defaultShape(table)),
): Promise<Decoded> {
  const { type, map } = SIGNALS[signal];
  const request =
    encoding === 'json' ? parseJson(body) : (await import('./protobuf.ts')).parseProtobuf(body, type);
  if (!isMessage(request)) throw new BodyInvalid('it is no JSON object');
  const rows = new Rows(writers);
  try {
    map(request, rows, nowMs);
  } catch (error) {
    if (error instanceof ItemRefused) throw new BodyInvalid(error.message);
    throw error;
  }
  return rows;
}

/** Objects and lists in one body: its text may be small and what it makes large. */
const MOST_PARTS = 1_000_000;
const OPENS_OBJECT = 0x7b;
const OPENS_LIST = 0x5b;

/** @throws BodyInvalid it is no JSON; what it says never quotes the body */
export function parseJson(body: Buffer): unknown {
  if (body.length === 0) throw new BodyInvalid('it is empty');
  if (!isUtf8(body)) throw new BodyInvalid('it is not UTF-8');
  if (count(body, OPENS_OBJECT) + count(body, OPENS_LIST) > MOST_PARTS) {
    throw new BodyInvalid(`it has more than ${MOST_PARTS} objects and lists`);
  }
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    const position = /at position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
    throw new BodyInvalid(
      position === undefined ? 'it is not JSON, or ends too early' : `it goes wrong at character ${position}`,
    );
  }
}

function count(body: Buffer, byte: number): number {
  let found = 0;
  for (let at = body.indexOf(byte); at >= 0; at = body.indexOf(byte, at + 1)) found += 1;
  return found;
}
