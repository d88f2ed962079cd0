import { type BucketSize, TokenBucket } from '../../../core/host/token-bucket.ts';

/** Requests that are begun one by one, before the next have to wait for each other. */
const PACE: BucketSize = { burst: 10, perSecond: 1 };

interface Group<Reply> {
  callers: number;
  readonly reply: Promise<Reply>;
}

/**
 * Requests of `apply_current_config` that are the same: one that comes while another runs, or after a burst, waits with all
 * that come meanwhile, and one apply and one record answer them all. Each caller's answer is that of an apply which began
 * after its request, so it is true for what the kernel had then (R11).
 */
export class ReapplyRequests<Request, Reply> {
  readonly #begin: (request: Request, callers: number) => Promise<Reply>;
  readonly #bucket = new TokenBucket(PACE, performance.now());
  #running: Promise<unknown> | undefined;
  #waiting: Group<Reply> | undefined;

  /** @param begin applies once, for so many callers */
  constructor(begin: (request: Request, callers: number) => Promise<Reply>) {
    this.#begin = begin;
  }

  /** @param request the first of those that wait together is the one in the record */
  add(request: Request): Promise<Reply> {
    if (this.#waiting) {
      this.#waiting.callers += 1;
      return this.#waiting.reply;
    }
    const waitMs = this.#running !== undefined ? undefined : this.#bucket.take(performance.now());
    if (waitMs === 0) return this.#run(request, 1);
    const group: Group<Reply> = {
      callers: 1,
      reply: this.#whenFree(waitMs ?? 0).then(() => this.#start(request, group)),
    };
    this.#waiting = group;
    return group.reply;
  }

  #start(request: Request, { callers }: Group<Reply>): Promise<Reply> {
    this.#waiting = undefined;
    return this.#run(request, callers);
  }

  #run(request: Request, callers: number): Promise<Reply> {
    const reply = this.#begin(request, callers);
    const running = reply.then(
      () => {},
      () => {},
    );
    this.#running = running;
    void running.then(() => {
      if (this.#running === running) this.#running = undefined;
    });
    return reply;
  }

  /** @param waitMs how long at least, when nothing runs */
  async #whenFree(waitMs: number): Promise<void> {
    await this.#running;
    for (
      let ms = waitMs || this.#bucket.take(performance.now());
      ms > 0;
      ms = this.#bucket.take(performance.now())
    ) {
      await new Promise((resolve) => setTimeout(resolve, ms).unref());
    }
  }
}
