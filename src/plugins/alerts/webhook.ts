import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';

/** How a post ended. */
export type Posted =
  | { readonly kind: 'taken'; readonly status: number; readonly body: string }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly status?: number;
      readonly body?: string;
      /** The wait that the receiver requests, milliseconds. */
      readonly retryAfterMs?: number;
    };

export interface WebhookRequest {
  readonly url: URL;
  readonly bearer?: string | undefined;
  /** Whether the bearer token may go to another machine in plaintext. */
  readonly insecure?: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The beginning of an answer is kept, to be shown with the alert. */
const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 2_048, excess: 'cut', keepAlive: false });

/**
 * Posts once. Failures of the receiver or the network are results and not errors.
 *
 * @param now epoch milliseconds, for a `Retry-After` that names a date
 */
export async function postOnce(
  { url, bearer, insecure, headers, body }: WebhookRequest,
  now: number,
  signal: AbortSignal,
): Promise<Posted> {
  try {
    const answer = await http.call({
      method: 'POST',
      url: url.href,
      headers: {
        ...headers,
        'user-agent': 'holdfast',
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      },
      body,
      insecure,
      signal,
    });
    const text = answer.textWithout(secretsOf(url, bearer));
    const { status } = answer;
    if (answer.ok) return { kind: 'taken', status, body: text };
    const retryAfterMs = retryAfter(answer.header('retry-after'), now);
    const more = status < 400 ? ', and a redirect is not followed' : '';
    return {
      kind: 'refused',
      status,
      body: text,
      reason: `it answered ${status}${more}`,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  } catch (error) {
    if (!(error instanceof HttpCallError) || error.failure === 'timeout') {
      return { kind: 'refused', reason: 'it did not answer in time' };
    }
    return { kind: 'refused', reason: `it cannot be reached (${error.networkCode})` };
  }
}

/**
 * The secret parts of a receiver: its token, and the path and the query of its address; texts under 4 characters are
 * none.
 */
function secretsOf(url: URL, bearer: string | undefined): string[] {
  const path = url.pathname.slice(1);
  const values = [...url.searchParams.values()];
  return [bearer, path, ...path.split('/'), ...values].filter(
    (each): each is string => each !== undefined && each.length >= 4,
  );
}

function retryAfter(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
