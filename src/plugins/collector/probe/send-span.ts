import { request } from 'undici';
import { z } from 'zod';

const DEADLINE_MS = 10_000;
const LARGEST_ANSWER = 64 * 1024;

const answerShape = z.looseObject({
  partialSuccess: z.looseObject({ rejectedSpans: z.union([z.string(), z.number()]).nullish() }).nullish(),
});

type Sent =
  | { readonly end: 'accepted' }
  | { readonly end: 'unreachable' | 'refused'; readonly text: string; readonly remedy: string };

/** Sends one span as OTLP JSON, exactly as the documents show it. @param endpoint base of a receiver */
export async function sendSpan(
  endpoint: string,
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
    const answer = await request(`${endpoint.replace(/\/+$/, '')}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: key },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    const text = await textOf(answer.body);
    return judge(answer.statusCode, text.replaceAll(key, '…'));
  } catch (error) {
    if (signal.aborted) throw error;
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'nothing came in time';
    return {
      end: 'unreachable',
      text: `nobody takes it at ${endpoint}: ${why}`,
      remedy: 'Look whether the receiver runs and listens there: `holdfast status`.',
    };
  }
}

function judge(status: number, text: string): Sent {
  if (status === 200) {
    const rejected = Number(answerShape.safeParse(jsonOf(text)).data?.partialSuccess?.rejectedSpans ?? 0);
    if (!(rejected > 0)) return { end: 'accepted' };
    const remedy = 'The receiver and Holdfast disagree on OTLP JSON: look at the versions of both.';
    return {
      end: 'refused',
      text: `the receiver answered 200 and rejected the span: ${shown(text)}`,
      remedy,
    };
  }
  const said = `the receiver answered ${status}: ${shown(text)}`;
  if (status === 401 || status === 403) {
    const remedy =
      'It accepts another ingest key than the one known here: `holdfast doctor stack` shows where ours comes from.';
    return { end: 'refused', text: said, remedy };
  }
  if (status === 429 || status === 503) {
    return {
      end: 'refused',
      text: said,
      remedy: 'It is overloaded or its database is away: try again soon.',
    };
  }
  return { end: 'refused', text: said, remedy: 'Look whether an OTLP/HTTP receiver is what listens there.' };
}

/** What a stranger said, fit for a line. */
function shown(text: string): string {
  return text.replace(/\p{C}+/gu, ' ').slice(0, 200) || '(nothing)';
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > LARGEST_ANSWER) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
