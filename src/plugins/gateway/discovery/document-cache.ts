import { LRUCache } from 'lru-cache';
import type { Dispatcher } from 'undici';
import type { RouteEntry } from '../routes/entry.ts';
import { type DocumentAnswer, readDocument } from './read-document.ts';

const DOCUMENT_KEPT_MS = 5 * 60_000;
/** A document that appears must not need a restart to be seen. */
const NONE_KEPT_MS = 30_000;
/** After a look that failed; doubled by each further one. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/** What is known of an upstream's document. */
export interface DocumentStatus {
  /** What it said when it was last heard; undefined when it never was. */
  readonly last?: 'document' | 'none';
  /** Since then, milliseconds. */
  readonly ageMs?: number;
  /** Why the newest look failed, if it did. */
  readonly trouble?: string;
}

interface Kept {
  /** The newest that says something; a failure only where there is none. */
  readonly answer: DocumentAnswer;
  /** When it was heard. */
  readonly at: number;
  readonly askAgainAt: number;
  /** Looks in a row that failed, and why the newest did. */
  readonly failures: number;
  readonly trouble?: string;
}

/**
 * The documents of upstreams, read when they are asked for. A document is kept for minutes, "has none" for half a
 * minute (G13). A look that fails says nothing of either: what was known stays, and another look follows soon. However
 * many ask at once, the upstream is asked once.
 */
export class DocumentCache {
  readonly #agent: Dispatcher;
  readonly #now: () => number;
  readonly #kept: LRUCache<string, Kept>;
  readonly #asking = new Map<string, Promise<DocumentAnswer>>();

  /** @param now milliseconds of a clock that only goes on */
  constructor(agent: Dispatcher, now: () => number) {
    this.#agent = agent;
    this.#now = now;
    this.#kept = new LRUCache({ max: 1_000 });
  }

  /** What to serve. @param upstream URL of its MCP endpoint */
  async of(upstream: URL): Promise<DocumentAnswer> {
    const key = keyOf(upstream);
    const kept = this.#kept.get(key);
    if (kept && this.#now() < kept.askAgainAt) return kept.answer;
    const newest = await this.look(upstream);
    return this.#kept.get(key)?.answer ?? newest;
  }

  /** Asks now. @returns what was heard, or why nothing was */
  look(upstream: URL): Promise<DocumentAnswer> {
    const key = keyOf(upstream);
    const asking =
      this.#asking.get(key) ??
      readDocument(this.#agent, upstream)
        .then((answer) => {
          this.#keep(key, answer);
          return answer;
        })
        .finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  /** @returns undefined when nobody has asked for it */
  known(upstream: URL): DocumentStatus | undefined {
    const kept = this.#kept.peek(keyOf(upstream));
    if (!kept) return undefined;
    const { answer, at, trouble } = kept;
    return {
      ...(answer.kind !== 'unreachable' && { last: answer.kind, ageMs: this.#now() - at }),
      ...(trouble !== undefined && { trouble }),
    };
  }

  #keep(key: string, answer: DocumentAnswer): void {
    const now = this.#now();
    if (answer.kind !== 'unreachable') {
      const keptMs = answer.kind === 'document' ? DOCUMENT_KEPT_MS : NONE_KEPT_MS;
      this.#kept.set(key, { answer, at: now, askAgainAt: now + keptMs, failures: 0 });
      return;
    }
    const { failures, ...last } = this.#kept.get(key) ?? { answer, at: now, failures: 0 };
    const waitMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
    const trouble = answer.reason;
    this.#kept.set(key, { ...last, askAgainAt: now + waitMs, failures: failures + 1, trouble });
  }
}

const keyOf = ({ origin, pathname }: URL): string => origin + pathname;

/** What the gateway serves: what the upstream says of its login, or its entry where the upstream says nothing. */
export function served(answer: DocumentAnswer, entry: RouteEntry): DocumentAnswer {
  if (answer.kind !== 'none' || entry.disposition !== 'relay' || !entry.authorizationServers) return answer;
  const { authorizationServers, scopes } = entry;
  const document = {
    authorization_servers: authorizationServers,
    ...(scopes && { scopes_supported: scopes }),
  };
  return { kind: 'document', document };
}
