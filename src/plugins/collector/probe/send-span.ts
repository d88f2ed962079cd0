import { z } from 'zod';
import { type HttpAnswer, HttpCallError, HttpClient } from '../../../core/host/http/client.ts';

const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 65_536, excess: 'cut', keepAlive: false });

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
    const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
    const headers = { authorization: key };
    return judge(await http.call({ method: 'POST', url, headers, json: body, signal }), key);
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    return {
      end: 'unreachable',
      text: `nobody takes it at ${endpoint}: ${error.reason}`,
      remedy: 'Look whether the receiver runs and listens there: `holdfast status`.',
    };
  }
}

function judge(answer: HttpAnswer, key: string): Sent {
  const { status } = answer;
  const shown = answer.excerpt(200, key) || '(nothing)';
  if (status === 200) {
    const rejected = Number(answerShape.safeParse(answer.json()).data?.partialSuccess?.rejectedSpans ?? 0);
    if (!(rejected > 0)) return { end: 'accepted' };
    const remedy = 'The receiver and Holdfast disagree on OTLP JSON: look at the versions of both.';
    return {
      end: 'refused',
      text: `the receiver answered 200 and rejected the span: ${shown}`,
      remedy,
    };
  }
  const said = `the receiver answered ${status}: ${shown}`;
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
