import { setTimeout as delay } from 'node:timers/promises';
import { until } from './until.ts';

/** How many attempts a call has, and how long a client waits between two of them, milliseconds. */
const ATTEMPTS = 1_000;
const AGAIN_MS = 10;

/** What a client sees of a host that stops or has not started: its listener may also end between handshake and request. */
const NOT_THERE = ['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET'];

/** Clients that call the tool `work` without a pause, and try a call at the next host when one refuses it, as behind a balancer. */
export class RestlessClients {
  answered = 0;
  refused = 0;
  /** Calls that a client would have to give up. */
  readonly failures: string[] = [];
  readonly #post: (call: number, attempt: number) => Promise<Response>;
  readonly #clients: readonly Promise<void>[];
  #calls = 0;
  #isOver = false;

  /** @param post makes one attempt of a call: the tool answers `done` */
  constructor(count: number, post: (call: number, attempt: number) => Promise<Response>) {
    this.#post = post;
    this.#clients = Array.from({ length: count }, async () => {
      while (!this.#isOver) {
        this.#calls += 1;
        await this.#call(this.#calls);
      }
    });
  }

  /** Resolves when further calls were answered. */
  async more(): Promise<void> {
    const before = this.answered;
    await until('calls are answered', () => this.answered >= before + 20 || this.failures.length > 0);
  }

  /** Resolves when the last calls were answered. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #call(number: number): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      try {
        const answer = await this.#post(number, attempt);
        const text = await answer.text();
        if (answer.status === 200 && text.includes('done')) {
          this.answered += 1;
          return;
        }
        if (answer.status !== 503 || answer.headers.get('retry-after') === null) {
          this.failures.push(`${answer.status} ${text}`);
          return;
        }
        this.refused += 1;
      } catch (error) {
        const { code = '' } = (error as { cause?: { code?: string } }).cause ?? {};
        if (!NOT_THERE.includes(code)) this.failures.push(`${error} ${code}`);
      }
      await delay(AGAIN_MS);
    }
    this.failures.push('nobody answered');
  }
}
