import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
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
 * @param isFixed the answer is the same at any time, as that of a record is
 */
export function useAnswer<T>(
  path: string | undefined,
  query: Readonly<Record<string, string | number | boolean | undefined>> = {},
  isFixed = false,
): Answer<T> {
  const answer = useMemo<Signal<Answer<T>>>(() => signal({ loading: true }), [path]);
  const key = path === undefined ? undefined : withQuery(path, query);
  const isPast = isFixed || query.at !== undefined;
  // A past moment does not depend on what comes in.
  const tick = isPast || at.value !== undefined ? 0 : pulse.value;
  useEffect(() => {
    if (key === undefined) return undefined;
    const known = isPast ? (past.get(key) as T | undefined) : undefined;
    if (known !== undefined) {
      answer.value = { data: known, loading: false };
      return undefined;
    }
    const abort = new AbortController();
    answer.value = { ...answer.value, loading: true };
    get<T>(key, {}, abort.signal).then(
      (data) => {
        if (isPast) keep(key, data);
        answer.value = { data, loading: false };
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError(0, 'fault', String(error));
        answer.value = { ...answer.value, error: shown, loading: false };
      },
    );
    return () => abort.abort();
  }, [key, tick, answer]);
  return answer.value;
}
