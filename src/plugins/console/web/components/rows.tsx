import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Rows beyond the visible ones on both sides, so that a turn of the wheel shows no gap. */
const SPARE = 10;

interface Props<Row> {
  readonly rows: readonly Row[];
  /** Pixels; all rows have this height, so that a million of them need no measuring. */
  readonly height: number;
  readonly keyOf: (row: Row) => string | number;
  readonly draw: (row: Row) => ComponentChildren;
  /** Index of the row that has to be seen. */
  readonly focus?: number | undefined;
  /** Called when the end comes near, to have more. */
  readonly onEnd?: (() => void) | undefined;
  readonly label: string;
  /** Called with the index of the first row that is seen, when it changes. */
  readonly onScroll?: ((first: number) => void) | undefined;
  /** Each other value leads back to the top. */
  readonly topAt?: string;
}

/** A long list of which only the visible rows are in the page. */
export function Rows<Row>({ rows, height, keyOf, draw, focus, onEnd, label, onScroll, topAt }: Props<Row>) {
  const box = useRef<HTMLElement>(null);
  const [top, setTop] = useState(0);
  const [view, setView] = useState(600);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const sizes = new ResizeObserver(() => setView(element.clientHeight));
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current;
    if (!element || focus === undefined || focus < 0) return;
    const start = focus * height;
    if (start < element.scrollTop) element.scrollTop = start - height;
    else if (start + height > element.scrollTop + element.clientHeight)
      element.scrollTop = start + 2 * height - element.clientHeight;
  }, [focus, height, rows]);
  useEffect(() => {
    if (topAt !== undefined && box.current) box.current.scrollTop = 0;
  }, [topAt]);
  const seen = Math.floor(top / height);
  useEffect(() => onScroll?.(seen), [seen]);
  const first = Math.max(0, seen - SPARE);
  const last = Math.min(rows.length, Math.ceil((top + view) / height) + SPARE);
  useEffect(() => {
    if (last >= rows.length - SPARE) onEnd?.();
  }, [last, rows.length, onEnd]);
  return (
    <section
      class="rows"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls has to be reached by the keyboard
      tabIndex={0}
      aria-label={label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="all" style={{ height: `${rows.length * height}px` }}>
        <ol class="window" style={{ transform: `translateY(${first * height}px)` }}>
          {rows.slice(first, last).map((row) => (
            <li key={keyOf(row)} class="row" style={{ height: `${height}px` }}>
              {draw(row)}
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}
