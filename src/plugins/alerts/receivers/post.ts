import { createHash } from 'node:crypto';
import { Agent } from 'undici';
import type { Queued } from '../../../machines/alert/shapes.ts';
import { formats } from './formats.ts';
import type { Target } from './target.ts';

/** How a post ended. */
export type Posted =
  | { readonly kind: 'taken'; readonly status: number; readonly body: string }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly status?: number;
      readonly body?: string;
      readonly retryAfterMs?: number;
    };

/** What is read of an answer, bytes. */
const READ = 2_048;
const DEADLINE_MS = 10_000;

/**
 * Posts notices to a receiver: no redirect is followed, for the address may hold a token, and nothing of the address is
 * told but what `target.place` says.
 *
 * @param key the same for a post that is made again
 * @param now epoch milliseconds, for a `Retry-After` that names a date
 */
export async function post(
  target: Target,
  items: readonly Queued[],
  key: string,
  now: number,
  signal: AbortSignal,
): Promise<Posted> {
  const { headers, body } = formats[target.format](items, key);
  const agent = new Agent({
    connect: { timeout: DEADLINE_MS },
    headersTimeout: DEADLINE_MS,
    bodyTimeout: DEADLINE_MS,
  });
  try {
    const answer = await agent.request({
      origin: target.url.origin,
      path: `${target.url.pathname}${target.url.search}`,
      method: 'POST',
      headers: {
        ...headers,
        'user-agent': 'holdfast',
        ...(target.bearer !== undefined && { authorization: `Bearer ${target.bearer}` }),
      },
      body,
      reset: true,
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    const text = target.scrub(await beginning(answer.body));
    const { statusCode: status } = answer;
    if (status >= 200 && status < 300) return { kind: 'taken', status, body: text };
    const retryAfterMs = retryAfter(answer.headers['retry-after'], now);
    return {
      kind: 'refused',
      status,
      body: text,
      reason:
        status < 400 ? `it answered ${status}, and a redirect is not followed` : `it answered ${status}`,
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

/** The same for the same notices, however often and by whichever process they are posted; another in another data folder. */
export function keyOf(items: readonly Queued[]): string {
  const whole = items.map(({ id, at }) => `${id}@${at}`).join();
  return createHash('sha256').update(whole).digest('hex').slice(0, 32);
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
