import { type ZodType, z } from 'zod';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isJson, type Json, nestsDeeper } from '../../../core/kernel/json.ts';

/** What hosts of a cluster say to each other has this meaning; hosts of another one do not work together. */
export const PROTOCOL = 1;
/** Of a message between hosts, bytes. */
export const LARGEST_MESSAGE = 64 * 1024;
/** Any plain data. */
export const json = z.custom<Json>(isJson, 'plain data is wanted');
const DEEPEST = 64;
const TELL_EVERY_MS = 60_000;
/** What others write may be part of a reason. */
const MOST_REASONS = 50;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a body that another host sent, perhaps one of another version.
 *
 * @param largest bytes that it may have
 * @returns undefined when it is not as the schema says
 */
export function readBody<T>(schema: ZodType<T>, bytes: Uint8Array, largest: number): T | undefined {
  return schema.safeParse(readJson(bytes, largest)).data;
}

/** @returns undefined when the bytes are no JSON of that size */
export function readJson(bytes: Uint8Array, largest: number): unknown {
  if (bytes.length > largest) return undefined;
  try {
    const text = utf8.decode(bytes);
    return nestsDeeper(text, DEEPEST) ? undefined : JSON.parse(text);
  } catch {
    return undefined; // neither UTF-8 nor JSON
  }
}

/** Counts what was dropped, and logs it: the first of a reason at once, then once a minute. */
export class Drops {
  readonly #event: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #counts = new Map<string, number>();
  readonly #toldAt = new Map<string, number>();

  /** @param event name of the line in the log */
  constructor(event: string, clock: Clock, logger: Logger) {
    this.#event = event;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** How many were dropped. */
  get count(): number {
    return this.#counts.values().reduce((sum, count) => sum + count, 0);
  }

  add(given: string, details: Readonly<Record<string, string | number>> = {}): void {
    const isKnown = this.#counts.has(given) || this.#counts.size < MOST_REASONS;
    const reason = isKnown ? given : 'others';
    const count = (this.#counts.get(reason) ?? 0) + 1;
    this.#counts.set(reason, count);
    const now = this.#clock.monotonic();
    const told = this.#toldAt.get(reason);
    if (told !== undefined && now - told < TELL_EVERY_MS) return;
    this.#toldAt.set(reason, now);
    this.#logger.warn({ reason, count, ...details }, this.#event);
  }
}
