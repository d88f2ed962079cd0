import { signal } from '@preact/signals';
import type { LogAnswer } from '../api/types.ts';
import type { PageFacts } from '../export/facts.ts';
import { ApiError, get } from './api.ts';

/** How the page stands to the instance. */
export type Connection = 'connecting' | 'live' | 'lost' | 'ended' | 'file';

export const connection = signal<Connection>('connecting');
/** What log this is; undefined until it is known. */
export const log = signal<LogAnswer | undefined>(undefined);
/** What an exported page says of itself, and whether its records are those that were written. */
export const exported = signal<(PageFacts & { readonly chain: string }) | undefined>(undefined);
/** The seq of the newest record that is known of. */
export const newest = signal(0);
/** Goes up when there is something new, at most once a second: pages that show now ask again. */
export const pulse = signal(1);

/** Records that came are shown together, so that a thousand a second are no more work than ten: milliseconds. */
const TOGETHER_MS = 100;
const RETRY_MS = 2_000;
const PULSE_MS = 1_000;

/** The newest record that came and is not shown yet. */
let came = 0;
let isShowing = false;
let isPulsing = false;

function show(): void {
  isShowing = false;
  newest.value = Math.max(newest.value, came);
  if (isPulsing) return;
  isPulsing = true;
  setTimeout(() => {
    isPulsing = false;
    pulse.value += 1;
  }, PULSE_MS);
}

function take(seq: number): void {
  came = Math.max(came, seq);
  if (isShowing) return;
  isShowing = true;
  setTimeout(show, TOGETHER_MS);
}

/** Finds out what log this is, and follows it for as long as the page is open; tries again when the instance is away. */
export async function follow(): Promise<void> {
  try {
    const facts = await get<LogAnswer>('/api/log');
    const other = log.value !== undefined && log.value.instance !== facts.instance;
    log.value = facts;
    // What pages asked before they listened, or while the connection was lost, may be old by now.
    if (other || facts.last > newest.value || connection.value !== 'connecting') pulse.value += 1;
    newest.value = other ? facts.last : Math.max(newest.value, facts.last);
    if (facts.mode !== 'live') {
      connection.value = 'file';
      return;
    }
    listen(facts.last);
  } catch (error) {
    // Sessions end with their instance. Whoever logs in again, in any window of this browser, goes on here.
    connection.value = error instanceof ApiError && error.status === 401 ? 'ended' : 'lost';
    setTimeout(() => void follow(), RETRY_MS);
  }
}

function listen(after: number): void {
  const source = new EventSource(`/api/events?after=${after}`);
  source.addEventListener('open', () => {
    connection.value = 'live';
  });
  source.addEventListener('record', (event) => take(Number(event.lastEventId)));
  source.addEventListener('gap', (event) => {
    const { to } = JSON.parse(event.data) as { to: number };
    newest.value = Math.max(newest.value, to);
  });
  source.addEventListener('error', () => {
    // The instance may be another one when it comes back: ask who it is instead of going on where this one was.
    source.close();
    connection.value = 'lost';
    setTimeout(() => void follow(), RETRY_MS);
  });
}
