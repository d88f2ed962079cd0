import { setTimeout as delay } from 'node:timers/promises';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { type Posted, postOnce } from '../webhook/post-once.ts';

export type Format = 'ntfy' | 'json';

/** Whom to tell. */
export interface To {
  readonly url: URL;
  readonly bearer?: string;
  readonly format: Format;
  /** As the receiver counts. */
  readonly priority: string;
}

export interface Stale {
  readonly title: string;
  readonly text: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Hours. */
  readonly age?: number | undefined;
  /** E.g. `36h`. */
  readonly window: string;
  /** The same for the same fault within an hour, so that a receiver may know it again. */
  readonly key: string;
}

/** Posts at most, and milliseconds between them. */
const TRIES = 3;
const PAUSE_MS = 200;

/**
 * Reads the receiver as it is now.
 *
 * @throws HF_CONFIG_SECRET_* a file is not there, or others may read it
 * @throws HF_CLI_USAGE the address is none
 */
export function readReceiver(
  address: { readonly url?: string | undefined; readonly urlFile?: string | undefined },
  tokenFile: string | undefined,
  rest: Pick<To, 'format' | 'priority'>,
): To {
  const text = address.urlFile === undefined ? (address.url ?? '') : readTokenFile(address.urlFile);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    const reason = 'the address of the webhook must be http or https, without a user in it';
    throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'freshness' });
  }
  return { url, ...rest, ...(tokenFile !== undefined && { bearer: readTokenFile(tokenFile) }) };
}

/** Posts, and again when it fails: the next run is an hour away. */
export async function tell(stale: Stale, to: To, signal: AbortSignal): Promise<Posted> {
  for (let tried = 1; ; tried += 1) {
    const { url, bearer } = to;
    const answer = await postOnce({ url, bearer, ...payload(stale, to) }, Date.now(), signal);
    if (answer.kind === 'taken' || tried === TRIES) return answer;
    await delay(PAUSE_MS * tried, undefined, { signal });
  }
}

function payload({ title, text, at, age, window, key }: Stale, { format, priority }: To) {
  if (format === 'ntfy') {
    const headers = { 'content-type': 'text/plain; charset=utf-8', title, priority, tags: 'rotating_light' };
    return { headers: { ...headers, 'idempotency-key': key }, body: text };
  }
  const alert = {
    title,
    state: 'firing',
    value: age ?? null,
    threshold: `above ${window}`,
    window,
    at: new Date(at).toISOString(),
    labels: { priority, source: 'backup-freshness.timer' },
    runbook: null,
    text,
  };
  const headers = { 'content-type': 'application/json', 'idempotency-key': key };
  return { headers, body: JSON.stringify(alert) };
}
