import type { ComponentChildren } from 'preact';
import type { Answer } from '../answer.ts';

/**
 * What a question became: its answer, or that it is on its way, or why there is none.
 *
 * @param empty said when there is an answer with nothing in it
 */
export function Shown<T>({
  of,
  isEmpty,
  empty,
  children,
}: {
  of: Answer<T>;
  isEmpty?: (data: T) => boolean;
  empty?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error } = of;
  if (data === undefined && error) return <Problem error={error} />;
  if (data === undefined) return <p class="wait">Reading the log …</p>;
  return (
    <>
      {error && <Problem error={error} />}
      {isEmpty?.(data) ? <p class="empty">{empty ?? 'There is nothing here.'}</p> : children(data)}
    </>
  );
}

/** An error that a person can do something about. */
export function Problem({
  error,
}: {
  error: { message: string; action?: string | undefined; code?: string };
}) {
  return (
    <div class="problem" role="alert">
      <strong>{error.message}</strong>
      {error.action && <p>{error.action}</p>}
      {error.code && <code>{error.code}</code>}
    </div>
  );
}

const MARKS = { ok: '✓', degraded: '!', failing: '✕', unknown: '?' } as const;

/** A status as a sign and a word, never as a colour alone. */
export function StatusMark({ status }: { status: keyof typeof MARKS }) {
  return (
    <span class={`status ${status}`}>
      <span aria-hidden="true">{MARKS[status]}</span> {status}
    </span>
  );
}
