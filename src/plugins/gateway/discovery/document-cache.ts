import { LRUCache } from 'lru-cache';
import type { HttpClient } from '../../../core/host/http/client.ts';
import type { RouteEntry } from '../routes/entry.ts';
import { type DocumentAnswer, readDocument } from './read-document.ts';

const DOCUMENT_KEPT_MS = 5 * 60_000;
/** Shorter, so that a new document is found soon. */
const NONE_KEPT_MS = 30_000;
/** Wait after a failed attempt; each further failure doubles it. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/** What the cache knows of an upstream's document. */
export interface DocumentStatus {
  /** Whether the upstream had one when it last answered; absent when it never did. */
  readonly last?: 'document' | 'none';
  /** Age of that answer, milliseconds. */
  readonly ageMs?: number;
  /** Why the newest attempt to read it failed. */
  readonly trouble?: string;
}

interface CachedAnswer {
  /** The newest answer; a failure only when there was never an answer. */
  readonly answer: DocumentAnswer;
  /** Time of the answer. */
  readonly at: number;
  readonly expiresAt: number;
  /** Consecutive failed attempts since then, and why the newest failed. */
  readonly failures: number;
  readonly trouble?: string;
}

/**
 * Caches the protected-resource documents of upstreams. A document is kept for minutes, "has none" for half a minute
 * (G13). When an upstream can't be reached, its last answer is served on, and the next attempt follows soon. Concurrent
 * readers share one request.
 */
export class DocumentCache {
  readonly #http: HttpClient;
  readonly #now: () => number;
  readonly #cache: LRUCache<string, CachedAnswer>;
  readonly #pending = new Map<string, Promise<DocumentAnswer>>();

  /** @param now monotonic clock, milliseconds */
  constructor(http: HttpClient, now: () => number) {
    this.#http = http;
    this.#now = now;
    this.#cache = new LRUCache({ max: 1_000 });
  }

  /** @param upstream URL of its MCP endpoint @returns what the gateway serves now */
  async get(upstream: URL): Promise<DocumentAnswer> {
    const key = keyOf(upstream);
    const cached = this.#cache.get(key);
    if (cached && this.#now() < cached.expiresAt) return cached.answer;
    const newest = await this.refresh(upstream);
    return this.#cache.get(key)?.answer ?? newest;
  }

  /** Reads the document now. @returns the answer of the upstream, or why there is none */
  refresh(upstream: URL): Promise<DocumentAnswer> {
    const key = keyOf(upstream);
    const pending =
      this.#pending.get(key) ??
      readDocument(this.#http, upstream)
        .then((answer) => {
          this.#store(key, answer);
          return answer;
        })
        .finally(() => this.#pending.delete(key));
    this.#pending.set(key, pending);
    return pending;
  }

  /** @returns undefined when the document was never read */
  status(upstream: URL): DocumentStatus | undefined {
    const cached = this.#cache.peek(keyOf(upstream));
    if (!cached) return undefined;
    const { answer, at, trouble } = cached;
    return {
      ...(answer.kind !== 'unreachable' && { last: answer.kind, ageMs: this.#now() - at }),
      ...(trouble !== undefined && { trouble }),
    };
  }

  #store(key: string, answer: DocumentAnswer): void {
    const now = this.#now();
    if (answer.kind !== 'unreachable') {
      const keptMs = answer.kind === 'document' ? DOCUMENT_KEPT_MS : NONE_KEPT_MS;
      this.#cache.set(key, { answer, at: now, expiresAt: now + keptMs, failures: 0 });
      return;
    }
    const { failures, ...last } = this.#cache.get(key) ?? { answer, at: now, failures: 0 };
    const waitMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
    const trouble = answer.reason;
    this.#cache.set(key, { ...last, expiresAt: now + waitMs, failures: failures + 1, trouble });
  }
}

const keyOf = ({ origin, pathname }: URL): string => origin + pathname;

/**
 * @returns the document of a route whose upstream's own does not count, because its clients log in for the gateway; undefined
 *   of any other
 */
export function ownDocument(entry: RouteEntry): DocumentAnswer | undefined {
  if (entry.disposition !== 'token_exchange') return undefined;
  const { issuer, authorizationServers = issuer && [issuer], loginScopes } = entry;
  if (!authorizationServers)
    return { kind: 'none', reason: 'has no issuer, and authorizationServers is not set' };
  const document = {
    authorization_servers: authorizationServers,
    ...(loginScopes && { scopes_supported: loginScopes }),
  };
  return { kind: 'document', document };
}

/** @returns the upstream's document; when it has none, the document that the entry's `authorizationServers` make */
export function servedDocument(answer: DocumentAnswer, entry: RouteEntry): DocumentAnswer {
  if (answer.kind !== 'none' || entry.disposition !== 'relay' || !entry.authorizationServers) return answer;
  const { authorizationServers, scopes } = entry;
  const document = {
    authorization_servers: authorizationServers,
    ...(scopes && { scopes_supported: scopes }),
  };
  return { kind: 'document', document };
}
