declare const provided: unique symbol;

/** Names something that one plugin provides and others use; carries its type. @public */
export interface Token<T> {
  readonly name: string;
  readonly [provided]?: T;
}

/**
 * Makes the name by which one plugin provides something (`context.provide`) and others get it (`services.get`).
 *
 * @param name dotted, e.g. `router.api`; it appears in boot errors and in `holdfast graph`
 *
 * @public
 */
export function defineToken<T>(name: string): Token<T> {
  return Object.freeze({ name });
}

declare const contributed: unique symbol;

/** Names something that any number of plugins bring and one plugin looks after; carries its type. @public */
export interface ContributionPoint<T> {
  readonly name: string;
  readonly [contributed]?: T;
}

/**
 * Makes the name under which plugins bring something (`context.contribute`) and one collects it.
 *
 * @param name dotted, e.g. `mcp.routes`; it appears in errors and in `holdfast plugin list`
 *
 * @public
 */
export function defineContributionPoint<T>(name: string): ContributionPoint<T> {
  return Object.freeze({ name });
}

/** Something that a plugin contributed. @public */
export interface Contributed<T> {
  /** Name of the plugin. */
  readonly owner: string;
  /** The plugin's options when it made it. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly value: T;
}
