import type { SurfaceError } from '../../../core/host/http/contract.ts';
import { restBody } from './rest-errors.ts';

/** What clients look for. */
export const NOT_FOUND = 'route not found';
/** Paths that answer errors in the shape of the REST paths, whether there is such a path or not. */
const REST = /^\/(?:key|budget|v1)\//;

/** The gateway's own shapes of what its surface refuses; clients of MCP look for `detail`. */
export function surfaceErrorBody(
  { code, status, what, remedy }: SurfaceError,
  path: string | undefined,
): unknown {
  const message = `${what} ${remedy}`;
  if (path !== undefined && REST.test(path)) return restBody({ status, message });
  return { detail: code === 'HF_HTTP_NOT_FOUND' ? NOT_FOUND : message, code };
}
