import type { WriteOrigin } from '../../core/contracts/router.ts';
import type { EffectContext } from '../../core/kernel/actors/effect.ts';

/** In a cluster one host at a time does the reconciler's work. */
export const SINGLETON = 'reconciler';

/** How an effect writes to the router. */
export interface Write {
  readonly correlation: string;
  readonly signal: AbortSignal;
  readonly origin: WriteOrigin;
}

/** The write of an effect, with its fencing token where this host works under a lease. */
export function writeOf({ correlation, signal, cause, fencingToken: token }: EffectContext): Write {
  const fence = token === undefined ? {} : { fence: { singleton: SINGLETON, token } };
  return { correlation, signal, origin: { cause, ...fence } };
}
