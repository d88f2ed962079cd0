import type { SurfaceError } from '../../core/host/http/contract.ts';

/** The body of an error below `/api/`; elsewhere it is the coded error itself. */
export function errorBody(error: SurfaceError, path: string | undefined): unknown {
  if (!path?.startsWith('/api/')) return error;
  const { code, what, remedy } = error;
  return { error: { code, message: what, action: remedy } };
}
