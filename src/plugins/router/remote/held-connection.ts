import { connect, type Socket } from 'node:net';
import { hostOf } from '../../../core/host/http/addresses.ts';
import type { Clock } from '../../../core/kernel/clock.ts';

/** A server may close a connection as soon as it is made: the next one is made at the earliest after this, milliseconds. */
const LEAST_MS = 1_000;

/**
 * A connection to the router's API on which nothing is asked. Its end shows at once that the router has stopped, even when
 * no call is under way: a restart publishes nothing, and is often over before the next reading. Servers also close such a
 * connection after a while, so its end is only a reason to read the config.
 */
export class HeldConnection {
  readonly #to: { readonly host: string; readonly port: number };
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #socket: Socket | undefined;
  #madeAt = Number.NEGATIVE_INFINITY;
  #cancelNext: (() => void) | undefined;
  #stopped = false;

  /**
   * @param url base of the router's API
   * @param onEnd a connection that had been made has ended
   */
  constructor(url: string, clock: Clock, onEnd: () => void) {
    const api = new URL(url);
    const { protocol, port } = api;
    this.#to = { host: hostOf(api), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** The API answers: makes a connection where none is held. */
  hold(): void {
    if (this.#stopped || this.#socket || this.#cancelNext) return;
    const waitMs = this.#madeAt + LEAST_MS - this.#clock.monotonic();
    if (waitMs <= 0) this.#make();
    else this.#cancelNext = this.#clock.after(waitMs, () => this.#make());
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelNext?.();
    this.#socket?.destroy();
  }

  #make(): void {
    this.#cancelNext = undefined;
    this.#madeAt = this.#clock.monotonic();
    let wasMade = false;
    const socket = connect({ ...this.#to, keepAlive: true });
    this.#socket = socket;
    socket.once('connect', () => {
      wasMade = true;
    });
    // A server that waited in vain for a request may say so, and only then close.
    socket.resume();
    socket.on('error', () => {});
    socket.once('close', () => {
      this.#socket = undefined;
      if (wasMade && !this.#stopped) this.#onEnd();
    });
  }
}
