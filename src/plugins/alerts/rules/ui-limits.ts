/** An alert on a tile of the UI, as far as it decides whether the UI takes it. */
export interface UiAlert {
  readonly name: string;
  /** How its value is made. */
  readonly query: 'builder' | 'sql';
  /** The kind of what it looks at. */
  readonly source: 'logs' | 'traces' | 'gauge' | 'sum' | 'histogram';
  /** What is made of the samples; `age` is the time since the newest value. */
  readonly take?: string;
  /** How long it looks back, which is also how often. */
  readonly interval?: string;
}

/** Intervals that the UI offers. */
const INTERVALS = ['1m', '5m', '15m', '30m', '1h', '6h', '12h', '1d'];

/**
 * Why the UI in use (2.29) will reject an alert, said before it is upserted (O29). Pure.
 *
 * @returns undefined when nothing speaks against it
 */
export function rejectedByUi({ name, query, source, take, interval }: UiAlert): string | undefined {
  if (query === 'sql' && source === 'sum') {
    return `The UI rejects "${name}": multi select or string select on metrics not supported (a raw-SQL alert on a metric sum). Use the query builder, or check it outside of the UI as the on-host freshness timer does.`;
  }
  if (take === 'age') {
    return `The UI can't make "${name}": it computes no age of a last success. The on-host freshness timer does.`;
  }
  if (interval !== undefined && !INTERVALS.includes(interval)) {
    return `The UI rejects "${name}": its interval ${interval} is none of ${INTERVALS.join(', ')}.`;
  }
  return undefined;
}
