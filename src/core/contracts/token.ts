declare const provided: unique symbol;

/** Names something that one plugin provides and others use; carries its type. */
export interface Token<T> {
  readonly name: string;
  readonly [provided]?: T;
}

/** @param name dotted, e.g. `router.api`; it appears in boot errors and in `holdfast graph` */
export function defineToken<T>(name: string): Token<T> {
  return Object.freeze({ name });
}

declare const contributed: unique symbol;

/** Names something that any number of plugins bring and one plugin looks after; carries its type. */
export interface ContributionPoint<T> {
  readonly name: string;
  readonly [contributed]?: T;
}

/** @param name dotted, e.g. `mcp.routes`; it appears in errors and in `holdfast plugin list` */
export function defineContributionPoint<T>(name: string): ContributionPoint<T> {
  return Object.freeze({ name });
}

/** Something that a plugin contributed. */
export interface Contributed<T> {
  /** Name of the plugin. */
  readonly owner: string;
  /** The plugin's options when it made it. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly value: T;
}
