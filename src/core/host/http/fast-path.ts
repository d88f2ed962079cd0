import type { IncomingMessage, ServerResponse } from 'node:http';
import { newCorrelation } from '../../kernel/ids.ts';
import type { Logger } from '../logging/logger.ts';
import type { Admission } from './admission.ts';
import type { InFlight } from './drain.ts';
import type { Measure } from './measure.ts';

/** A POST of JSON whose length is told and within the limit, that the door lets pass. */
export interface PlainPost {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  /** Correlation id. */
  readonly id: string;
}

/** A route that plain posts reach without the framework. It is declared there too, for all that is not plain. */
export interface ShortRoute {
  /** As it is declared, for metrics. */
  readonly pattern: string;
  /** Of path and query as they come. */
  readonly url: RegExp;
  /**
   * Looks at a request whose body is not read yet, and does nothing else.
   *
   * @param matched by its URL
   * @returns what answers it, or undefined to leave it to the declared route
   */
  readonly open: (post: PlainPost, matched: RegExpExecArray) => ((body: Buffer) => Promise<void>) | undefined;
}

export interface ShortWayParts {
  readonly admission: Admission;
  readonly inFlight: InFlight;
  /** Bytes. */
  readonly bodyLimit: number;
  readonly measure: Measure;
  readonly log: Logger;
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/** The headers that every answer of a surface bears. */
export const headersOfAll = (id: string): Record<string, string> => ({
  'x-correlation-id': id,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
});

/**
 * A fast path past the framework for a surface's busiest route: its hooks and body parsers take as long as all else that
 * a plain post may cost. Whatever is in any way unusual, and whatever is refused, goes by the framework: one place says no.
 */
export class ShortWay {
  readonly #parts: ShortWayParts;
  #route: ShortRoute | undefined;

  constructor(parts: ShortWayParts) {
    this.#parts = parts;
  }

  use(route: ShortRoute): void {
    this.#route = route;
  }

  /** @returns whether the request is taken; if not, nothing has happened to it */
  takes(raw: IncomingMessage, response: ServerResponse): boolean {
    const { inFlight, measure, log } = this.#parts;
    const route = this.#route;
    if (!route || raw.method !== 'POST' || inFlight.draining.aborted) return false;
    const matched = route.url.exec(raw.url ?? '');
    if (!matched || !this.#isPlain(raw)) return false;
    const post = { raw, response, id: newCorrelation() };
    const answer = this.#open(route, post, matched);
    if (!answer) return false;
    const started = performance.now();
    const told = { raw, response, route: route.pattern, correlation: post.id, started };
    let handled = false;
    inFlight.enter(response, () => measure.ended({ ...told, handled }));
    whenRead(raw, (body) => {
      handled = true;
      answer(body).catch((err) => {
        log.error({ err, route: route.pattern, correlation: post.id }, 'http.failed');
        response.destroy();
      });
    });
    return true;
  }

  #isPlain({ headers }: IncomingMessage): boolean {
    const { 'content-type': type, 'content-length': length } = headers;
    if (type === undefined || !JSON_TYPE.test(type)) return false;
    return Number(length) > 0 && Number(length) <= this.#parts.bodyLimit;
  }

  #open(route: ShortRoute, post: PlainPost, matched: RegExpExecArray): ReturnType<ShortRoute['open']> {
    try {
      this.#parts.admission.check(post.raw);
      return route.open(post, matched);
    } catch {
      return undefined; // the framework checks again, and answers
    }
  }
}

/** Calls back with a whole body; not at all when it breaks off, for then nobody waits for an answer. */
function whenRead(raw: IncomingMessage, read: (body: Buffer) => void): void {
  const parts: Buffer[] = [];
  raw.on('data', (part: Buffer) => parts.push(part));
  raw.on('end', () => read(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)));
  raw.on('error', () => {});
}
