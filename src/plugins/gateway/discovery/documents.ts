import { LRUCache } from 'lru-cache';
import type { Dispatcher } from 'undici';
import { type DocumentAnswer, readDocument } from './document.ts';

const DOCUMENT_KEPT_MS = 5 * 60_000;
/** A document that appears must not need a restart to be seen. */
const NONE_KEPT_MS = 30_000;

/**
 * The documents of upstreams, read when they are asked for. A document is kept for minutes, "has none" for half a
 * minute, a failure not at all (G13). However many ask at once, the upstream is asked once.
 */
export class Documents {
  readonly #agent: Dispatcher;
  readonly #now: () => number;
  readonly #kept: LRUCache<string, { readonly answer: DocumentAnswer; readonly until: number }>;
  readonly #asking = new Map<string, Promise<DocumentAnswer>>();

  /** @param now milliseconds of a clock that only goes on */
  constructor(agent: Dispatcher, now: () => number) {
    this.#agent = agent;
    this.#now = now;
    this.#kept = new LRUCache({ max: 1_000 });
  }

  /** @param upstream URL of its MCP endpoint */
  async of(upstream: URL): Promise<DocumentAnswer> {
    const key = upstream.origin + upstream.pathname;
    const kept = this.#kept.get(key);
    if (kept && this.#now() < kept.until) return kept.answer;
    const asking = this.#asking.get(key) ?? this.#ask(key, upstream);
    return asking;
  }

  #ask(key: string, upstream: URL): Promise<DocumentAnswer> {
    const asking = readDocument(this.#agent, upstream)
      .then((answer) => {
        this.#keep(key, answer);
        return answer;
      })
      .finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  #keep(key: string, answer: DocumentAnswer): void {
    if (answer.kind === 'unreachable') return void this.#kept.delete(key);
    const keptMs = answer.kind === 'document' ? DOCUMENT_KEPT_MS : NONE_KEPT_MS;
    this.#kept.set(key, { answer, until: this.#now() + keptMs });
  }
}
