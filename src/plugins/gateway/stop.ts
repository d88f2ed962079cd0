import { Slab } from '../../core/kernel/slab.ts';

/** What of an AbortSignal a call looks at: it may be one. */
export interface Ending {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** The reason with which a call is aborted whose key no longer admits it. */
export const KEY_ENDED: unique symbol = Symbol('the key no longer admits this call');

/** The one end of a call that may end for several reasons. */
export interface Stop extends Ending {
  /** Ends it also with the first of these. */
  follow(...sources: readonly Ending[]): void;
  abort(reason: unknown): void;
  /** Once the call is over: what outlives it forgets it. */
  release(): void;
}

/** The end of what may take only so long. */
export interface Deadline extends Pick<Stop, 'release'> {
  readonly signal: AbortSignal;
}

interface Follower {
  abort(reason: unknown): void;
}

/** Ends once, for whoever listens: what an AbortController with its signal does, in a twentieth of the time. */
export class CallEnding implements Ending {
  aborted = false;
  reason: unknown;
  #listeners: (() => void)[] = [];

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** Who is told of the end of a signal that outlives calls. */
const followers = new WeakMap<AbortSignal, Slab<Follower>>();

/**
 * Ends with the first of its sources, as `AbortSignal.any` does: a signal that outlives the call is listened to once,
 * however many calls follow it, and no call waits for the garbage collector to be forgotten.
 */
export function stopWith(...sources: readonly Ending[]): Stop {
  const stop = new FollowingStop();
  stop.follow(...sources);
  return stop;
}

class FollowingStop extends CallEnding implements Stop {
  readonly #forget: (() => void)[] = [];

  follow(...sources: readonly Ending[]): void {
    for (const source of sources) this.#forget.push(follow(this, source));
  }

  release(): void {
    for (const forget of this.#forget) forget();
  }
}

/**
 * The same, and at the latest after so long: the reason is then a TimeoutError, as that of `AbortSignal.timeout`.
 *
 * @param ms milliseconds
 */
export function stopWithin(ms: number, ...sources: readonly Ending[]): Deadline {
  const controller = new AbortController();
  const abort = (reason: unknown) => controller.abort(reason);
  const following = sources.map((source) => follow({ abort }, source));
  const timer = setTimeout(() => abort(new DOMException('It took too long.', 'TimeoutError')), ms);
  timer.unref();
  const release = () => {
    clearTimeout(timer);
    for (const forget of following) forget();
  };
  return { signal: controller.signal, release };
}

/** Waits for it. */
export function ending(signal: Ending): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', resolve);
  });
}

/** @returns forgets the follower */
function follow(follower: Follower, source: Ending): () => void {
  if (source.aborted) follower.abort(source.reason);
  if (source instanceof AbortSignal) {
    const following = followersOf(source);
    const place = following.add(follower);
    return () => void following.remove(place, follower);
  }
  const listener = () => follower.abort(source.reason);
  source.addEventListener('abort', listener);
  return () => source.removeEventListener('abort', listener);
}

function followersOf(source: AbortSignal): Slab<Follower> {
  const known = followers.get(source);
  if (known) return known;
  const following = new Slab<Follower>();
  followers.set(source, following);
  source.addEventListener('abort', () => {
    for (const each of following) each.abort(source.reason);
  });
  return following;
}
