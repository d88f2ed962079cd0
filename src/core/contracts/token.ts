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
