/** An alert on a tile of the UI, as far as it decides whether the UI takes it. */
export interface UiAlert {
  readonly name: string;
  /** How its value is made. */
  readonly query: 'builder' | 'sql';
  /** The kind of what it looks at. */
  readonly source: 'logs' | 'traces' | 'gauge' | 'sum' | 'histogram';
}

/**
 * Why the UI in use (2.29) will reject an alert, said before it is upserted (O29). Pure.
 *
 * @returns undefined when nothing speaks against it
 */
export function rejectedByUi({ name, query, source }: UiAlert): string | undefined {
  if (query !== 'sql' || source !== 'sum') return undefined;
  return `The UI rejects "${name}": multi select or string select on metrics not supported (a raw-SQL alert on a metric sum). Use the query builder, or check it outside of the UI as the on-host freshness timer does.`;
}
