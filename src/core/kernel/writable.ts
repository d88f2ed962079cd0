/** The same, while it is being made. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };
