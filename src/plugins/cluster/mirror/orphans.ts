import { join } from 'node:path';
import { z } from 'zod';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import type { ExportPart } from '../../../core/kernel/log/portable/export.ts';
import { ADOPT, parseRecord } from '../../../core/kernel/log/record.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { singletonActor } from '../actors.ts';
import { ClusterError } from '../errors.ts';
import { numberOf } from '../leases/ledger.ts';
import { DurableList } from './durable-list.ts';
import type { MetFence } from './standing.ts';

type Log = Pick<SqliteReader, 'pages' | 'lastSeq'>;

const FILE = 'cluster-orphans.json';
/** Older ones are forgotten: their records stay in the local log. */
const MOST = 100;

const orphanedBranch = z.object({
  singleton: z.string(),
  token: z.string(),
  /** The host that took the singleton over. */
  by: z.string(),
  /** Of this host's stream. */
  incarnation: z.int().min(1),
  /** The last record that counts. */
  after: z.int().min(0),
  /** Types of its actors. */
  types: z.array(z.string()).readonly(),
  /** The newest record when the singleton had ended here, or the last before it came back; absent until then. */
  to: z.int().min(0).optional(),
  /** How many records of those types lie between, less those that an earlier branch holds; counted at the end. */
  records: z.int().min(0).optional(),
  /** That it ended is not told yet. */
  isUntold: z.literal(true).optional(),
  /** When an operator wrote it to a file; epoch milliseconds. */
  exportedAt: z.int().optional(),
});

/** Records that a host made for a singleton after another one had taken it over: never merged into the story. */
export type OrphanedBranch = Readonly<z.output<typeof orphanedBranch>>;

/**
 * The orphaned branches of this host, `<dataDir>/cluster-orphans.json` (docs/cluster.md, "Takeover"): what it recorded for a singleton after another host had taken that over. Its effects
 * never ran, because its records were not on the stream before the fence. They stay in its own log.
 */
export class OrphanedBranches {
  readonly #branches: DurableList<OrphanedBranch>;
  readonly #log: Log;

  /** @param onError hears of a branch that cannot be read, which counts as absent */
  constructor(dataDir: string, log: Log, onError: (error: unknown) => void) {
    this.#branches = new DurableList(join(dataDir, FILE), orphanedBranch, onError);
    this.#log = log;
  }

  /** Resolves when the file says what was changed last. */
  saved(): Promise<void> {
    return this.#branches.saved();
  }

  /** Those that hold records, the newest last. */
  list(): readonly OrphanedBranch[] {
    return this.#all().filter(({ records }) => (records ?? 0) > 0);
  }

  /** A fence is found again after each interruption, and on each later stream. */
  isNew(fence: MetFence): boolean {
    return !this.#all().some((branch) => branch.to !== undefined && isOf(branch, fence));
  }

  /** Whether this host has taken the work over again since. @param types of its actors */
  cameBack({ singleton, token, atSeq: after }: MetFence, types: readonly string[]): boolean {
    const to = this.#log.lastSeq();
    return actorsBetween(this.#log, { singleton, token, after, to, types }).until < to;
  }

  /** Those that have ended, and are not told yet. */
  get untold(): readonly OrphanedBranch[] {
    return this.#all().flatMap(({ isUntold, ...branch }) => (isUntold ? [branch] : []));
  }

  /** Notes that what was untold is told. */
  told(branches: readonly OrphanedBranch[]): void {
    this.#branches.set(
      this.#all().map((one) => {
        const { isUntold: _, ...told } = one;
        return branches.some((branch) => isOf(branch, one)) ? told : one;
      }),
    );
  }

  begin(fence: MetFence, incarnation: number, types: readonly string[]): void {
    const { singleton, token, by, atSeq: after } = fence;
    const others = this.#all().filter((branch) => !isOf(branch, fence));
    this.#branches.set([...others, { singleton, token, by, incarnation, after, types }].slice(-MOST));
  }

  /** Closes a branch whose singleton has ended here. @param upTo the newest record then */
  end(fence: MetFence, upTo: number): void {
    const branch = this.#all().find((one) => isOf(one, fence));
    if (branch) this.#close(branch, upTo);
  }

  /** Notes that one was written to a file. @param number of `list`, from 1 */
  exported(number: number, at: number): void {
    const branch = this.list()[number - 1];
    if (!branch) throw new ClusterError('HF_CLUSTER_BRANCH', { number });
    this.#branches.set(this.#all().map((one) => (one === branch ? { ...one, exportedAt: at } : one)));
  }

  /** After a crash: what was open then has ended by now. @param upTo the newest record */
  endAll(upTo: number): void {
    for (const branch of this.#all()) if (branch.to === undefined) this.#close(branch, upTo);
  }

  #close(branch: OrphanedBranch, to: number): void {
    // Several hosts may have fenced the same work.
    const others = this.#all().filter((one) => one !== branch && one.singleton === branch.singleton);
    const holding = (seq: number) => others.find(({ after, to = after }) => after < seq && seq <= to);
    let { after } = branch;
    for (let one = holding(after + 1); one?.to !== undefined; one = holding(after + 1)) after = one.to;
    const isHeld = (seq: number) => holding(seq) !== undefined;
    const { records, until } = actorsBetween(this.#log, { ...branch, after, to }, isHeld);
    const closed = { ...branch, after, to: until, records, ...(records > 0 && UNTOLD) };
    this.#branches.set(this.#all().map((one) => (one === branch ? closed : one)));
  }

  #all(): readonly OrphanedBranch[] {
    return this.#branches.current;
  }
}

const UNTOLD = { isUntold: true } as const;

/** The part of the local log that an orphaned branch is, for an export. */
export function exportPartOf(log: Log, branch: OrphanedBranch): ExportPart {
  const { from, to, actors } = actorsBetween(log, branch);
  return { from, to, actors };
}

function actorsBetween(
  log: Log,
  branch: Pick<OrphanedBranch, 'singleton' | 'token' | 'after' | 'to' | 'types'>,
  isHeld: (seq: number) => boolean = () => false,
) {
  const { after, to = Number.MAX_SAFE_INTEGER, types } = branch;
  const wanted = new Set(types);
  const actors = new Set<string>();
  const found = { from: after + 1, to: after, records: 0, until: to };
  for (const page of log.pages({ from: after + 1, to })) {
    for (const { seq, actor, body } of page) {
      if (!wanted.has(parseActorRef(actor).type)) continue;
      const isAdoption = body.includes(`"${ADOPT}"`) && parseRecord(seq, body).event.type === ADOPT;
      // The singleton has come back: from here on its records count again.
      if (isAdoption && !isOlder(log, seq, branch)) return { ...found, until: seq - 1, actors };
      if (isHeld(seq)) continue;
      actors.add(actor);
      found.records += 1;
      found.to = seq;
    }
  }
  return { ...found, actors };
}

/** Whether a takeover here was by an older token than that of the fence: it had not reached the stream when that was placed. */
function isOlder(
  log: Log,
  adoption: number,
  { singleton, token }: Pick<OrphanedBranch, 'singleton' | 'token'>,
): boolean {
  let taking: string | undefined;
  for (const page of log.pages({ actor: `${singletonActor.type}/${singleton}`, to: adoption }))
    for (const { seq, body } of page) {
      const { type, token: by } = parseRecord(seq, body).event;
      if (type === 'TAKING') taking = String(by);
    }
  return taking !== undefined && numberOf(taking) < numberOf(token);
}

/** The same fence stands on a later stream, too. */
function isOf(branch: OrphanedBranch, { singleton, token }: Pick<MetFence, 'singleton' | 'token'>): boolean {
  return branch.singleton === singleton && branch.token === token;
}
