import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Operation } from './engine.ts';

/** A request to the engine's thread. Bodies are parsed there: a large one would stall everybody else here. */
export interface EngineRequest {
  readonly id: number;
  readonly operation: Operation;
  readonly collection: string;
  readonly body?: Uint8Array | undefined;
}

export type EngineReply =
  | { readonly id: number; readonly result: string }
  | { readonly id: number; readonly code: HoldfastError['code']; readonly details: HoldfastError['details'] };
