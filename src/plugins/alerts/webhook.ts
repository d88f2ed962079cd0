import { Agent } from 'undici';

/** How a post ended. */
export type Posted =
  | { readonly kind: 'taken'; readonly status: number; readonly body: string }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly status?: number;
      readonly body?: string;
      /** What the receiver itself asks to wait, milliseconds. */
      readonly retryAfterMs?: number;
    };

export interface WebhookRequest {
  readonly url: URL;
  readonly bearer?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What is read of an answer, bytes. */
const READ = 2_048;
const DEADLINE_MS = 10_000;

/**
 * Posts once. Nothing is thrown for what the receiver or the network does.
 *
 * @param now epoch milliseconds, for a `Retry-After` that names a date
 */
export async function postOnce(
  { url, bearer, headers, body }: WebhookRequest,
  now: number,
  signal: AbortSignal,
): Promise<Posted> {
  const scrub = scrubber(url, bearer);
  const agent = new Agent({
    connect: { timeout: DEADLINE_MS },
    headersTimeout: DEADLINE_MS,
    bodyTimeout: DEADLINE_MS,
  });
  try {
    const answer = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'POST',
      headers: {
        ...headers,
        'user-agent': 'holdfast',
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      },
      body,
      reset: true,
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    const text = scrub(await beginning(answer.body));
    const { statusCode: status } = answer;
    if (status >= 200 && status < 300) return { kind: 'taken', status, body: text };
    const retryAfterMs = retryAfter(answer.headers['retry-after'], now);
    const more = status < 400 ? ', and a redirect is not followed' : '';
    return {
      kind: 'refused',
      status,
      body: text,
      reason: `it answered ${status}${more}`,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? (error as Error).name;
    const late = /TIMEOUT|TimeoutError|ABORT/i.test(String(code));
    return { kind: 'refused', reason: late ? 'it did not answer in time' : `it cannot be reached (${code})` };
  } finally {
    agent.destroy().catch(() => {});
  }
}

/** Takes what is secret of an address, and its token, out of a text. */
export function scrubber(url: URL, bearer?: string): (text: string) => string {
  const path = url.pathname.slice(1);
  const values = [...url.searchParams.values()];
  const secrets = [bearer, path, ...path.split('/'), ...values].filter(
    (each): each is string => each !== undefined && each.length >= 4,
  );
  return (text) => secrets.reduce((left, each) => left.replaceAll(each, '[redacted]'), text);
}

async function beginning(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= READ) break;
  }
  return Buffer.concat(chunks).subarray(0, READ).toString('utf8');
}

function retryAfter(header: string | string[] | undefined, now: number): number | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  if (text === undefined) return undefined;
  const ms = /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
