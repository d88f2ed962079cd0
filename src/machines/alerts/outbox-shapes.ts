import type { Queued } from './alert-shapes.ts';

/** How a receiver answered. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The queue of one receiver. Times are epoch milliseconds. */
export interface OutboxContext {
  readonly receiver: string;
  readonly gatherMs: number;
  /** Oldest first. */
  readonly queue: readonly Queued[];
  /** Ids that were queued of late, to know one that comes again. */
  readonly recent: readonly string[];
  /** How many of the queue are in the post that is under way, or is made again: it stays the same one until it is taken. */
  readonly sending: number;
  readonly sent: number;
  readonly sentAt?: number | undefined;
  /** Posts in a row that failed. */
  readonly failures: number;
  readonly failingSince?: number | undefined;
  readonly reason?: string | undefined;
  /** What the receiver itself asked to wait, milliseconds. */
  readonly askedMs?: number | undefined;
  /** What it said last, bounded and without its own address. */
  readonly answer?: Answer | undefined;
  /** Notices that were given up for age or for want of room. */
  readonly lost: number;
}

export type OutboxEvent =
  | { readonly type: 'QUEUE'; readonly item: Queued }
  | { readonly type: 'CONFIGURE'; readonly gatherMs: number }
  | { readonly type: 'POSTED'; readonly at: number; readonly answer: Answer }
  | {
      readonly type: 'REFUSED';
      readonly at: number;
      readonly reason: string;
      readonly answer?: Answer;
      readonly retryAfterMs?: number;
    }
  /** Somebody fixed the receiver and does not want to wait. */
  | { readonly type: 'RETRY'; readonly at: number }
  | { readonly type: 'effect.failed'; readonly code?: string };

export interface OutboxArgs {
  readonly context: OutboxContext;
  readonly event: OutboxEvent;
}

/** Notices that wait at most; the oldest makes room. */
export const QUEUE_KEPT = 200;
export const RECENT_KEPT = 200;
export const BATCH = 20;
/** An alert so old says nothing any more. */
export const KEPT_MS = 86_400_000;
/** Failures in a row after which other receivers are told. */
export const TELL_AFTER = 5;
/** Told to every receiver but the one that it is of. */
export const RECEIVER_AWAY = 'alerts.receiver_away';
