import type { Logger } from '../../../core/host/logging/logger.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';

/** What does not pass by itself, as an election does. */
const LASTING = [
  'HF_CLUSTER_CLIENT',
  'HF_CLUSTER_STREAM_DIFFERS',
  'HF_CLUSTER_STREAM_REFUSED',
  'HF_CLUSTER_STREAM_FULL',
] as const;

/** Why a stream cannot be used: told once, while it lasts. */
export class Trouble {
  readonly #logger: Logger;
  readonly #event: string;
  #error: Error | undefined;

  constructor(logger: Logger, event: string) {
    this.#logger = logger;
    this.#event = event;
  }

  /** What a person has to fix. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** @param error of an attempt; nothing when it went well */
  note(error?: unknown): void {
    const known = this.#error?.message;
    const isLasting = error instanceof Error && LASTING.some((code) => isCoded(error, code));
    if (isLasting) this.#error = error;
    else if (error === undefined) this.#error = undefined;
    const isNew = this.#error?.message !== known && this.#error !== undefined;
    if (error !== undefined) this.#logger[isNew ? 'warn' : 'debug']({ err: error }, this.#event);
  }
}
