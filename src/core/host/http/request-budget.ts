import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { HostError } from '../errors/host-error.ts';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type BucketSize, TokenBucket } from '../token-bucket.ts';
import type { Uid } from './peer.ts';

/** Peers that are remembered; the one that was silent longest is forgotten first, and begins anew. */
const PEERS = 10_000;
const LINE_EVERY_MS = 60_000;

/** What one peer may ask for, unless its surface says otherwise: far more than people, programs and pages need. */
export const USUAL_WRITES: BucketSize = { burst: 1_000, perSecond: 50 };

interface Peer {
  readonly bucket: TokenBucket;
  /** Refused since the last line. */
  refused: number;
  lineAt: number;
}

export interface RequestBudgetOptions {
  readonly size: BucketSize;
  readonly logger: Logger;
  /** Called for each refusal. */
  readonly onRefused: () => void;
}

/**
 * Holds the writes of each peer to a rate, so that nobody fills the disk or keeps everybody else waiting. What is refused
 * leaves no record: a count, and one log line a minute for each peer.
 */
export class RequestBudget {
  readonly #options: RequestBudgetOptions;
  readonly #peers = new LRUCache<string, Peer>({ max: PEERS });

  constructor(options: RequestBudgetOptions) {
    this.#options = options;
  }

  /**
   * Counts one write.
   *
   * @param name of its peer (`peerOf`)
   * @returns the seconds after which it may come again; undefined when it may go on now
   */
  spend(name: string): number | undefined {
    const now = performance.now();
    const { size, logger, onRefused } = this.#options;
    const peer = this.#peers.get(name) ?? {
      bucket: new TokenBucket(size, now),
      refused: 0,
      lineAt: Number.NEGATIVE_INFINITY,
    };
    this.#peers.set(name, peer);
    const waitMs = peer.bucket.take(now);
    if (waitMs === 0) return undefined;
    peer.refused += 1;
    onRefused();
    if (now - peer.lineAt >= LINE_EVERY_MS) {
      logger.warn({ peer: name, refused: peer.refused, ...size }, 'http.over_budget');
      peer.refused = 0;
      peer.lineAt = now;
    }
    return Math.ceil(waitMs / 1_000);
  }
}

/**
 * Holds the requests of callers without a known key to a rate, on a listener that decides itself who may call: beyond it
 * nothing of them is recorded or read. Callers with a key never come here, also where they share the address.
 *
 * @param surface named in the refusal, the log line and the metric
 * @returns takes the address of one caller (undefined through a socket), and gives the refusal when it makes too many
 */
export function strangerBudget(
  surface: string,
  size: BucketSize,
  { logger, metrics }: { readonly logger: Logger; readonly metrics?: Metrics | undefined },
): (address: string | undefined) => HoldfastError | undefined {
  const options = { size, logger: logger.child({ surface }) };
  const budget = new RequestBudget({ ...options, onRefused: overBudgetMetric(surface, metrics) });
  return (address) => {
    const seconds = budget.spend(peerOf(address, undefined));
    return seconds === undefined ? undefined : new HostError('HF_HTTP_BUDGET', { surface, seconds });
  };
}

/** @returns counts one refusal */
export function overBudgetMetric(surface: string, metrics: Metrics | undefined): () => void {
  const refusals = metrics?.counter('http_over_budget_total', {
    help: 'Requests that were refused because their peer makes more than it may.',
    labels: ['surface'],
  });
  return () => refusals?.inc({ surface });
}

/**
 * Who counts as one: a user of this machine where that is known, an address, the network of 64 bits of an IPv6 address, or
 * all who share a Unix socket. Whoever calls from loopback may take any of its 16 million addresses, so these are one.
 */
export function peerOf(address: string | undefined, uid: Uid | undefined): string {
  if (typeof uid === 'number') return `uid ${uid}`;
  if (address === undefined) return 'unix';
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.range() === 'loopback') return 'loopback';
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
