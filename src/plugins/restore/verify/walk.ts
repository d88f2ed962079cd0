import type {
  DigestedPoint,
  MemoryStore,
  PointId,
  RecordedPoint,
} from '../../../core/contracts/memory-store.ts';
import { mergeJoin } from '../../../core/host/merge-join.ts';
import { comparePointIds, DigestSum } from '../../../machines/memory/points.ts';
import type { PointList, Report } from '../../../machines/restore/drill-shapes.ts';
import type { ProgressBoard } from '../steps.ts';

const BATCH = 100;

export interface WalkOptions {
  readonly live: MemoryStore;
  readonly restored: MemoryStore;
  readonly collection: string;
  /** Seeds with their recorded fingerprints; undefined for what the list or the live store says. */
  readonly seeds: ReadonlyMap<PointId, string | undefined>;
  readonly fingerprint: (point: DigestedPoint) => string;
  /** Ids that are listed of each kind of difference. */
  readonly listed: number;
  readonly progress: ProgressBoard;
  readonly signal: AbortSignal;
}

/** What was found of all points. */
export interface Walked {
  readonly points: Omit<Report['points'], 'digest' | 'unlisted'>;
  readonly seeds: Report['seeds'];
  readonly drift: Report['drift'];
  readonly moving: PointList;
  /** Over the restored points, and how many they are. */
  readonly digest: string;
  readonly restored: number;
}

/** Ids of one kind of difference: all counted, and the first of them named. */
class Ids {
  #total = 0;
  readonly #ids: PointId[] = [];
  readonly #listed: number;

  constructor(listed: number) {
    this.#listed = listed;
  }

  add(id: PointId): void {
    this.#total += 1;
    if (this.#ids.length < this.#listed) this.#ids.push(id);
  }

  get list(): PointList {
    return { total: this.#total, ids: this.#ids };
  }
}

/** A point by its fingerprints; undefined where it is not there. */
interface Seen {
  readonly id: PointId;
  readonly restored: string | undefined;
  readonly live: string | undefined;
}

/**
 * Compares every restored point, with its id, payload and vectors, and every live one.
 *
 * @param recorded what the restored points must be; without it, they are compared with the live ones
 * @param hasLive whether the live store has the collection
 */
export async function walk(
  { live, restored, collection, fingerprint, progress, signal, ...options }: WalkOptions,
  recorded: AsyncIterable<readonly RecordedPoint[]> | undefined,
  hasLive: boolean,
): Promise<Walked> {
  const found = new Findings(options);
  const sum = new DigestSum();
  let [seen, count] = [0, 0];
  let waiting: Seen[] = [];
  const settle = async () => {
    const ids = waiting.map(({ id }) => id);
    const again = hasLive ? await live.points(collection, ids, signal) : [];
    const now = new Map(again.map((point) => [point.id, fingerprint(point)]));
    for (const one of waiting) found.compareWithLive(one, now.get(one.id));
    waiting = [];
  };
  const lists = [
    recorded ?? none(),
    restored.digests(collection, signal),
    hasLive ? live.digests(collection, signal) : none(),
  ] as const;
  for await (const page of mergeJoin(comparePointIds, ...lists)) {
    for (const {
      id,
      found: [record, one, other],
    } of page) {
      const point: Seen = { id, restored: one && fingerprint(one), live: other && fingerprint(other) };
      if (point.restored !== undefined) {
        sum.add(point.restored);
        count += 1;
      }
      if (recorded) found.compareWithRecord(point, record?.states ?? [undefined]);
      else if (point.restored === point.live) found.same += 1;
      else if (waiting.push(point) === BATCH) await settle();
      found.checkSeed(point, record?.states.at(-1));
    }
    seen += page.length;
    progress.at(seen);
  }
  if (waiting.length > 0) await settle();
  return { ...found.end(), digest: sum.text, restored: count };
}

async function* none(): AsyncGenerator<never> {}

class Findings {
  same = 0;
  readonly #seeds: Map<PointId, string | undefined>;
  readonly #ids: Record<'missing' | 'unexpected' | 'changed' | 'unsettled', Ids>;
  readonly #drift: Record<'added' | 'deleted' | 'changed', Ids>;
  readonly #moving: Ids;
  readonly #seedsFound = { checked: 0, missing: [] as PointId[], changed: [] as PointId[] };

  constructor({ listed, seeds }: Pick<WalkOptions, 'listed' | 'seeds'>) {
    const ids = () => new Ids(listed);
    this.#seeds = new Map(seeds);
    this.#ids = { missing: ids(), unexpected: ids(), changed: ids(), unsettled: ids() };
    this.#drift = { added: ids(), deleted: ids(), changed: ids() };
    this.#moving = ids();
  }

  /** @param states fingerprints that the restored point may have */
  compareWithRecord({ id, restored, live }: Seen, states: readonly (string | undefined)[]): void {
    if (states.includes(restored)) this.same += Number(restored !== undefined);
    else if (states.length > 1) this.#ids.unsettled.add(id);
    else this.#differs(id, states[0], restored);
    const last = states.at(-1);
    if (last === live) return;
    if (last === undefined) this.#drift.added.add(id);
    else if (live === undefined) this.#drift.deleted.add(id);
    else this.#drift.changed.add(id);
  }

  /** @param now the live point's fingerprint, read once more: what changed since was being written and proves nothing */
  compareWithLive({ id, restored, live }: Seen, now: string | undefined): void {
    if (now !== live) this.#moving.add(id);
    else this.#differs(id, live, restored);
  }

  checkSeed({ id, restored, live }: Seen, recorded: string | undefined): void {
    if (!this.#seeds.has(id)) return;
    const expected = this.#seeds.get(id) ?? recorded ?? live;
    this.#seeds.delete(id);
    // A seed that nobody ever stored cannot be missed.
    if (expected === undefined) return;
    this.#seedsFound.checked += 1;
    if (restored === undefined) this.#seedsFound.missing.push(id);
    else if (restored !== expected) this.#seedsFound.changed.push(id);
  }

  end(): Omit<Walked, 'digest' | 'restored'> {
    for (const [id, expected] of this.#seeds) {
      if (expected === undefined) continue;
      this.#seedsFound.checked += 1;
      this.#seedsFound.missing.push(id);
    }
    const [ids, drift] = [this.#ids, this.#drift];
    return {
      points: {
        same: this.same,
        missing: ids.missing.list,
        unexpected: ids.unexpected.list,
        changed: ids.changed.list,
        unsettled: ids.unsettled.list,
      },
      seeds: this.#seedsFound,
      drift: { added: drift.added.list, deleted: drift.deleted.list, changed: drift.changed.list },
      moving: this.#moving.list,
    };
  }

  #differs(id: PointId, expected: string | undefined, restored: string | undefined): void {
    if (restored === undefined) this.#ids.missing.add(id);
    else if (expected === undefined) this.#ids.unexpected.add(id);
    else this.#ids.changed.add(id);
  }
}
