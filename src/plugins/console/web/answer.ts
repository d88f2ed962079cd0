import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { ApiError, get, withQuery } from './api.ts';
import { pulse } from './live.ts';
import { at } from './location.ts';

/** What a page knows of an answer of the API. */
export interface Answer<T> {
  /** The last answer; kept while the next one is on its way, so that nothing flickers. */
  readonly data?: T;
  readonly error?: ApiError;
  readonly loading: boolean;
}

/** When the instance last answered, by this machine's clock; 0 before that. */
export const lastAnswerAt = signal(0);

/** Answers about the past never change. */
const past = new Map<string, unknown>();
const KEPT = 200;

function keep(key: string, answer: unknown): void {
  past.set(key, answer);
  const [oldest] = past.keys();
  if (past.size > KEPT && oldest !== undefined) past.delete(oldest);
}

/**
 * Asks the API, and again when the question changes; a question about now is asked again while records come in.
 *
 * @param path undefined asks nothing
 * @param query `at` makes it a question about that moment
 * @param asked `fixed`: the answer is the same at any time, as that of a record is; `once`: it is not asked again by itself;
 *   `paused`: nor does an answer that is on its way change what is shown
 * @param round another number asks again
 */
export function useAnswer<T>(
  path: string | undefined,
  query: Readonly<Record<string, string | number | boolean | undefined>> = {},
  asked: 'live' | 'once' | 'fixed' | 'paused' = 'live',
  round = 0,
): Answer<T> {
  const answer = useMemo<Signal<Answer<T>>>(() => signal({ loading: true }), [path]);
  const running = useRef<AbortController | undefined>(undefined);
  const isStale = useRef(false);
  const paused = useRef(false);
  paused.current = asked === 'paused';
  const shownOf = useRef<string | undefined>(undefined);
  const lastTick = useRef(0);
  const key = path === undefined ? undefined : withQuery(path, query);
  const isPast = asked === 'fixed' || query.at !== undefined;
  const question = async (text: string) => {
    const known = isPast ? (past.get(text) as T | undefined) : undefined;
    if (known !== undefined) {
      answer.value = { data: known, loading: false };
      shownOf.current = text;
      return;
    }
    const abort = new AbortController();
    running.current = abort;
    isStale.current = false;
    answer.value = { ...answer.value, loading: true };
    try {
      const data = await get<T>(text, {}, abort.signal);
      lastAnswerAt.value = Date.now();
      if (isPast) keep(text, data);
      if (abort.signal.aborted) return;
      // An answer that was on its way when the page was paused would move what is looked at.
      const isDropped = paused.current && shownOf.current === text;
      if (isDropped) lastTick.current = -1; // asked for again afterwards
      answer.value = isDropped ? { ...answer.value, loading: false } : { data, loading: false };
      shownOf.current = text;
    } catch (error) {
      if (abort.signal.aborted) return;
      const shown = error instanceof ApiError ? error : new ApiError(0, 'fault', String(error));
      answer.value = { ...answer.value, error: shown, loading: false };
    } finally {
      if (running.current === abort) running.current = undefined;
    }
    if (isStale.current && running.current === undefined) await question(text);
  };
  useEffect(() => {
    if (key !== undefined) void question(key);
    return () => running.current?.abort();
  }, [key, answer, round]);
  // A past moment does not depend on what comes in.
  const isAskedAgain = asked === 'live' && !isPast && at.value === undefined;
  if (asked !== 'paused') lastTick.current = isAskedAgain ? pulse.value : 0;
  const tick = lastTick.current;
  useEffect(() => {
    if (tick <= 0) return;
    // A slow answer is waited for, and then asked for again: broken off each second it would never come.
    if (running.current !== undefined) isStale.current = true;
    else if (key !== undefined) void question(key);
  }, [tick]);
  return answer.value;
}
