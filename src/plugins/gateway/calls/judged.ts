import type { Writable } from '../../../core/kernel/writable.ts';
import type { AccessCall } from '../../../machines/gateway/key.ts';
import type { Exchange } from '../exchange.ts';
import type { Asked } from './repeats.ts';

/** What the machine decides by, filled in step by step. */
export type Facts = Writable<AccessCall>;

/** Calls to be decided, with what the machine decides by. */
export interface Judged extends Asked {
  readonly exchange: Exchange;
  /** Id of the key. */
  readonly key: string;
  /** When it is, and what is open then, is known when the machine is asked. */
  readonly facts: Facts;
}
