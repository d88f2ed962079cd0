/**
 * Makes the notice of an alert from its state and the log: which host sends it, the cause as a text, what to do first,
 * and a link.
 */
import { LRUCache } from 'lru-cache';
import { identityOf } from '../../core/host/identity.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { Notice } from '../../machines/alerts/notice.ts';
import { guidanceOf } from './guidance.ts';

/** How many records back a description of the cause is searched. */
const LONGEST_CHAIN = 10;
/** Characters of a cause. */
const LONGEST_CAUSE = 500;
/** Causes that are cached: notices of firing alerts may be repeated every minute, and a record never changes. */
const CAUSES_KEPT = 1_000;

type Sources = Pick<Services, 'actors' | 'dataDir' | 'log'>;

export class Notices {
  readonly #base: string | undefined;
  readonly #causes = new LRUCache<number, string>({ max: CAUSES_KEPT });

  /** @param base where the pages of `docs/` can be read */
  constructor(base: string | undefined) {
    this.#base = base;
  }

  /**
   * A notice with everything that a person needs to know.
   *
   * @param alert the key of the alert's actor
   * @param record the record that raised it
   */
  async complete(
    notice: Notice,
    alert: string,
    record: number | undefined,
    sources: Sources,
  ): Promise<Notice> {
    const cause = record === undefined ? undefined : await this.#causeOf(record, sources);
    return {
      ...notice,
      labels: { ...notice.labels },
      ...identityOf(sources.dataDir),
      ...guidanceOf(notice, this.#base),
      alert,
      ...(cause !== undefined && { cause }),
    };
  }

  async #causeOf(record: number, sources: Sources): Promise<string | undefined> {
    const cached = this.#causes.get(record);
    if (cached !== undefined) return cached;
    const cause = await readCause(record, sources);
    if (cause !== undefined) this.#causes.set(record, cause);
    return cause;
  }
}

/**
 * The newest record with a description, from one record back through its causes. @returns undefined if the log has none
 * any more
 */
async function readCause(record: number, { actors, log }: Sources): Promise<string | undefined> {
  let seq: number | undefined = record;
  for (let step = 0; step < LONGEST_CHAIN && seq !== undefined; step += 1) {
    const [found]: LogRecord[] = await Array.fromAsync(log.read({ from: seq, to: seq }));
    if (!found) return undefined;
    const words = actors.describe(found) ?? `got ${found.event.type}`;
    if (words !== '') return `${found.actor} ${words}`.replace(/\s+/g, ' ').slice(0, LONGEST_CAUSE);
    seq = found.cause !== undefined && found.cause < found.seq ? found.cause : undefined;
  }
  return undefined;
}
