import type { z } from 'zod';
import type { OpenapiInput } from './upstream-entry.ts';

/** The input of a kind of route for one call. @experimental */
export interface CredentialRequest<O> {
  /** The entry's `options`, as the kind's schema parsed them. */
  readonly options: O;
  /** The route's token (`tokenFile`, `secret` or the environment) as it is now; undefined when the entry names none. */
  readonly secret: string | undefined;
}

/** A custom kind of route: which headers carry the credential for its upstream. @experimental */
export interface RouteKind<O extends z.ZodObject = z.ZodObject> {
  /** In lower case, e.g. `api_key_header`; shown in place of the disposition. */
  readonly name: string;
  /** Strict zod object of an entry's `options`. */
  readonly options: O;
  /** Whether a call needs a token; without one the route is listed as lacking it. */
  readonly needsSecret?: boolean;
  /** @returns the headers for the upstream. The caller's own `Authorization` is never forwarded. Pure and fast. */
  headers(request: CredentialRequest<z.output<O>>): Readonly<Record<string, string>>;
}

/** An entry of a custom kind: the settings of every route, and those of the kind in `options`. @experimental */
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
  readonly insecure?: boolean;
  /** An HTTP API in place of an MCP server. */
  readonly openapi?: OpenapiInput;
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
 * @experimental
 */
export function defineRouteKind<O extends z.ZodObject>(
  kind: RouteKind<O>,
): (input: KindInput<O>) => KindInput<O> & { readonly disposition: 'custom'; readonly kind: RouteKind } {
  return (input) => ({ ...input, disposition: 'custom', kind });
}
