import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { ColumnarDatabase } from '../../core/contracts/columnar-database.ts';
import { PROBE_SERVICE } from '../../core/contracts/columnar-tables.ts';
import type { IngestKeys } from '../../core/contracts/ingest-keys.ts';
import { isSocketBase } from '../../core/host/http/addresses.ts';
import { type HttpAnswer, HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import { plaintextHost } from '../../core/host/http/plaintext.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { ProbeEnd } from '../../machines/collector/probe.ts';

/** The result of one probe, with a text for a person. */
export interface ProbeReport {
  readonly end: ProbeEnd;
  readonly endpoint: string;
  /** The service name of its span in `otel_traces`, unique to each probe. */
  readonly service: string;
  readonly traceId: string;
  /** Until the receiver answered, and until the span was found, milliseconds. */
  readonly answeredMs?: number;
  readonly arrivedMs?: number;
  readonly text: string;
  readonly remedy?: string;
  readonly warning?: string;
}

export interface ProbeRequest {
  /** Base of an OTLP/HTTP receiver. */
  readonly endpoint: string;
  /** Whether the key may go to another machine in plaintext. */
  readonly insecure: boolean;
  /** Fingerprint of the only certificate that is trusted. */
  readonly pin: string | undefined;
  readonly keys: IngestKeys;
  readonly database: ColumnarDatabase | undefined;
  /** How long an accepted span is looked for, milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/** Sends one span, searches the database for it, and reports how far it came (O1). */
export async function runProbe({
  endpoint,
  insecure,
  pin,
  keys,
  database,
  waitMs,
  signal,
}: ProbeRequest): Promise<ProbeReport> {
  const id = randomBytes(4).toString('hex');
  const span = {
    service: `${PROBE_SERVICE}-${id}`,
    traceId: randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
  };
  const host = isSocketBase(endpoint) ? endpoint : new URL(endpoint).host;
  const about = {
    endpoint,
    service: span.service,
    traceId: span.traceId,
    ...(plaintextHost(endpoint) !== undefined && {
      warning: `${host} is called in plaintext, so the key can be read on the way: use the OTLP gateway, port 443, with a client certificate`,
    }),
  };
  let key: string;
  try {
    key = await keys.current();
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { ...about, end: 'no_key', text: error.what, remedy: error.remedy };
  }
  const started = performance.now();
  const sent = await sendSpan({ endpoint, insecure, pin }, key, span, signal);
  const answeredMs = Math.round(performance.now() - started);
  if (sent.end !== 'accepted') return { ...about, answeredMs, ...sent };
  const accepted = `${host} accepted it in ${answeredMs} ms`;
  if (!database) {
    const text = `${accepted}; no columnar database is configured to look for it`;
    return { ...about, end: 'database_away', answeredMs, text, remedy: 'Add the plugin columnar.' };
  }
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      const [row] = await database.query<{ n: string }>(
        'SELECT count() AS n FROM otel_traces WHERE ServiceName = {service:String} AND TraceId = {trace:String}',
        { service: span.service, trace: span.traceId },
        { signal, maxSeconds: 10 },
      );
      const arrivedMs = Math.round(performance.now() - started);
      if (Number(row?.n ?? 0) > 0) {
        const text = `${accepted}; it is in otel_traces after ${arrivedMs} ms`;
        return { ...about, end: 'arrived', answeredMs, arrivedMs, text };
      }
    } catch (error) {
      if (!isCoded(error)) throw error;
      const text = `${accepted}; the database can't be queried: ${error.what}`;
      return { ...about, end: 'database_away', answeredMs, text, remedy: error.remedy };
    }
    if (performance.now() - started + pause > waitMs) break;
    await sleep(pause, undefined, { signal });
  }
  const text = `${accepted}, and within ${waitMs / 1_000} s it was not in otel_traces of ${database.place}`;
  const remedy =
    'Check whether the receiver writes to this database, and its queue: `holdfast doctor stack`; a collector elsewhere reports it in its own log.';
  return { ...about, end: 'lost', answeredMs, text, remedy };
}

const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 65_536, excess: 'cut', keepAlive: false });

const answerShape = z.looseObject({
  partialSuccess: z.looseObject({ rejectedSpans: z.union([z.string(), z.number()]).nullish() }).nullish(),
});

type Sent =
  | { readonly end: 'accepted' }
  | { readonly end: 'unreachable' | 'refused'; readonly text: string; readonly remedy: string };

/** Sends one span as OTLP JSON, exactly as the documents show it. @param endpoint base of a receiver */
async function sendSpan(
  { endpoint, insecure, pin }: Pick<ProbeRequest, 'endpoint' | 'insecure' | 'pin'>,
  key: string,
  { service, traceId, spanId }: { service: string; traceId: string; spanId: string },
  signal: AbortSignal,
): Promise<Sent> {
  const now = BigInt(Date.now()) * 1_000_000n;
  const span = {
    ...{ traceId, spanId, name: 'probe', kind: 1 },
    startTimeUnixNano: String(now - 1_000_000n),
    endTimeUnixNano: String(now),
  };
  const body = {
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] },
        scopeSpans: [{ spans: [span] }],
      },
    ],
  };
  try {
    const headers = { authorization: key };
    return judge(
      await http.call({
        method: 'POST',
        base: endpoint,
        url: '/v1/traces',
        headers,
        json: body,
        insecure,
        pin,
        signal,
      }),
      key,
    );
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    return {
      end: 'unreachable',
      text: `nothing takes it at ${endpoint}: ${error.reason}`,
      remedy: 'Check whether the receiver runs and listens there: `holdfast status`.',
    };
  }
}

function judge(answer: HttpAnswer, key: string): Sent {
  const { status } = answer;
  const shown = answer.excerpt(200, key) || '(nothing)';
  if (status === 200) {
    const rejected = Number(answerShape.safeParse(answer.json()).data?.partialSuccess?.rejectedSpans ?? 0);
    if (!(rejected > 0)) return { end: 'accepted' };
    const remedy = 'The receiver and Holdfast disagree on OTLP JSON: check the versions of both.';
    return {
      end: 'refused',
      text: `the receiver answered 200 and rejected the span: ${shown}`,
      remedy,
    };
  }
  const said = `the receiver answered ${status}: ${shown}`;
  if (status === 401 || status === 403) {
    const remedy =
      'It accepts another ingest key than ours: `holdfast doctor stack` shows where ours comes from.';
    return { end: 'refused', text: said, remedy };
  }
  if (status === 429 || status === 503) {
    return {
      end: 'refused',
      text: said,
      remedy: 'It is overloaded or its database is away: try again soon.',
    };
  }
  return { end: 'refused', text: said, remedy: 'Check whether an OTLP/HTTP receiver listens there.' };
}
