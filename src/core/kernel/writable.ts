/** A type without `readonly` on its properties, for an object that is filled step by step. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };
