import type { z } from 'zod';

/** What a kind of route composes the credential of a call from. */
export interface CredentialRequest<O> {
  /** The entry's `options`, as the kind's schema gives them. */
  readonly options: O;
  /** The route's token (`tokenFile`, `secret` or the environment), read now; undefined when it names none. */
  readonly secret: string | undefined;
}

/** A kind of route beside overwrite, relay and credential-free: how it presents itself to its upstream. */
export interface RouteKind<O extends z.ZodObject = z.ZodObject> {
  /** In small letters, e.g. `api_key_header`; shown in the place of the disposition. */
  readonly name: string;
  /** Strict zod object of what an entry may say in `options`. */
  readonly options: O;
  /** Whether a call needs a token; without one the route is listed as lacking it. */
  readonly needsSecret?: boolean;
  /** Headers that go up with each call. The caller's own `Authorization` never does. Pure and fast. */
  headers(request: CredentialRequest<z.output<O>>): Readonly<Record<string, string>>;
}

/** An entry of a kind: the settings that every route has, and the kind's own in `options`. */
export interface KindInput<O extends z.ZodObject> {
  readonly name: string;
  readonly url?: string;
  readonly tokenFile?: string;
  readonly secret?: string;
  readonly prefix?: boolean;
  readonly tools?: string[];
  readonly costs?: Record<string, number>;
  readonly writes?: boolean;
  readonly timeoutMs?: number;
  readonly options?: z.input<O>;
}

/**
 * Defines a kind of route for the gateway (C11, G1): one file, and entries in `plugins.config.ts` made by what this
 * returns.
 *
 * @example
 * export const apiKeyHeader = defineRouteKind({
 *   name: 'api_key_header',
 *   options: z.strictObject({ header: z.string().default('x-api-key') }),
 *   needsSecret: true,
 *   headers: ({ options, secret = '' }) => ({ [options.header]: secret }),
 * });
 */
export function defineRouteKind<O extends z.ZodObject>(
  kind: RouteKind<O>,
): (input: KindInput<O>) => KindInput<O> & { readonly disposition: 'custom'; readonly kind: RouteKind } {
  return (input) => ({ ...input, disposition: 'custom', kind });
}
