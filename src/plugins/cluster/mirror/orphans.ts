import { parseActorRef } from '../../../core/kernel/ids.ts';
import type { ExportPart } from '../../../core/kernel/log/portable/export.ts';
import { ADOPT, parseRecord } from '../../../core/kernel/log/record.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { ClusterError } from '../errors.ts';
import type { ClusterPosition, OrphanedBranch } from './position.ts';
import type { FoundFence } from './standing.ts';

type Log = Pick<SqliteReader, 'pages'>;

/** Older ones are forgotten: their records stay in the local log. */
const MOST = 100;

/**
 * The orphaned branches of this host (docs/cluster.md, "Takeover"): what it recorded for a singleton after another host had taken that over. Its effects
 * never ran, because its records were not on the stream before the fence. They stay in its own log.
 */
export class OrphanedBranches {
  readonly #file: ClusterPosition;
  readonly #log: Log;

  constructor(file: ClusterPosition, log: Log) {
    this.#file = file;
    this.#log = log;
  }

  /** Those that hold records, the newest last. */
  list(): readonly OrphanedBranch[] {
    return this.#all().filter(({ records }) => (records ?? 0) > 0);
  }

  /** A fence is found again after each interruption, and on each later stream. */
  isNew(fence: FoundFence): boolean {
    return !this.#all().some((branch) => branch.to !== undefined && isOf(branch, fence));
  }

  begin(fence: FoundFence, incarnation: number, types: readonly string[]): void {
    const { singleton, token, by, atSeq: after } = fence;
    const others = this.#all().filter((branch) => !isOf(branch, fence));
    this.#file.set({
      orphans: [...others, { singleton, token, by, incarnation, after, types }].slice(-MOST),
    });
  }

  /** Closes a branch whose singleton has ended here. @param upTo the newest record then */
  end(fence: FoundFence, upTo: number): OrphanedBranch | undefined {
    const branch = this.#all().find((one) => isOf(one, fence));
    return branch && this.#close(branch, upTo);
  }

  /** Notes that one was written to a file. @param number of `list`, from 1 */
  exported(number: number, at: number): void {
    const branch = this.list()[number - 1];
    if (!branch) throw new ClusterError('HF_CLUSTER_BRANCH', { number });
    this.#file.set({
      orphans: this.#all().map((one) => (one === branch ? { ...one, exportedAt: at } : one)),
    });
  }

  /** After a crash: what was open then has ended by now. @param upTo the newest record */
  endAll(upTo: number): readonly OrphanedBranch[] {
    return this.#all()
      .filter(({ to }) => to === undefined)
      .map((branch) => this.#close(branch, upTo));
  }

  #close(branch: OrphanedBranch, to: number): OrphanedBranch {
    const closed = { ...branch, to, records: actorsBetween(this.#log, { ...branch, to }).records };
    this.#file.set({ orphans: this.#all().map((one) => (one === branch ? closed : one)) });
    return closed;
  }

  #all(): readonly OrphanedBranch[] {
    return this.#file.current.orphans ?? [];
  }
}

/** The part of the local log that an orphaned branch is, for an export. */
export function exportPartOf(log: Log, branch: OrphanedBranch): ExportPart {
  const { from, to, actors } = actorsBetween(log, branch);
  return { from, to, actors };
}

function actorsBetween(log: Log, { after, to = Number.MAX_SAFE_INTEGER, types }: OrphanedBranch) {
  const wanted = new Set(types);
  const actors = new Set<string>();
  const found = { from: after + 1, to: after, records: 0 };
  for (const page of log.pages({ from: after + 1, to })) {
    for (const { seq, actor, body } of page) {
      if (!wanted.has(parseActorRef(actor).type)) continue;
      // The singleton has come back: from here on its records count again.
      if (body.includes(`"${ADOPT}"`) && parseRecord(seq, body).event.type === ADOPT)
        return { ...found, actors };
      actors.add(actor);
      found.records += 1;
      found.to = seq;
    }
  }
  return { ...found, actors };
}

/** The same fence stands on a later stream, too. */
function isOf(branch: OrphanedBranch, { singleton, token }: FoundFence): boolean {
  return branch.singleton === singleton && branch.token === token;
}
