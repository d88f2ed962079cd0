import {
  chainOf,
  type LastHolder,
  type LedgerMessage,
  type MirrorPosition,
  MOST_BETWEEN,
  parseMessage,
} from './message.ts';

/** A message as it stands in the ledger. */
export interface LedgerEntry {
  /** 1 and up, without gaps. */
  readonly seq: number;
  /** Absent for a message that nobody with the key of the cluster can have written: every reader skips it. */
  readonly body?: Uint8Array | undefined;
}

export interface Holder extends LastHolder {
  readonly folder: string;
  readonly protocol: number;
  readonly ttlMs: number;
  /** Where it began to hold. */
  readonly since: number;
  /** Its newest message that claims the singleton. */
  readonly beatSeq: number;
}

/** One singleton, as the messages so far have it. */
export interface Holding {
  readonly holder?: Holder | undefined;
  /** Where it was released, and to whom, while nobody holds it. */
  readonly released?: { readonly seq: number; readonly to?: string | undefined } | undefined;
  /** Who held it before, or last. */
  readonly last?: LastHolder | undefined;
}

/** What a host said of itself in its newest message. */
export interface LedgerHost {
  readonly run: string;
  readonly seq: number;
  readonly version: string;
  readonly protocol: number;
  readonly ttlMs: number;
  readonly drained: boolean;
  readonly mirror?: MirrorPosition | undefined;
}

/**
 * What became of an entry: `late` means that another message of the cluster came before it, which its sender had not read;
 * `forked`, that its sender had read other messages than this host.
 */
export type Applied = LedgerMessage | 'forged' | 'unreadable' | 'late' | 'forked';

/** After so many messages somebody says again who held what, for readers from whom the first messages are gone. */
const EARLIER_EVERY = 1_000;

/** Who holds what: a pure fold of the messages of one incarnation of the ledger. */
export class Ledger {
  readonly incarnation: string;
  /** The newest entry that was applied, 0 for none. */
  last = 0;
  chain = '';
  /** The highest number of a token so far. */
  above = 0;
  readonly #holdings = new Map<string, Holding>();
  readonly #hosts = new Map<string, LedgerHost>();
  readonly #firstNumber: number;
  /** What an earlier ledger had, and no message of this one has repeated, by the number of the token. */
  readonly #unsaid = new Map<string, number>();
  #earlierAt = 0;
  /** Where this reader begins, 0 as long as it has read nothing. */
  #first = 0;
  /** The newest one with the code of the cluster's key. */
  #genuine = 0;
  /** The chain behind each of the newest genuine entries: what a sender that had read so far has to repeat. */
  readonly #chains: { readonly seq: number; readonly chain: string }[] = [];

  /**
   * @param incarnation of the stream
   * @param before the ledger that this host read before, whose holders are remembered, but hold nothing any more
   */
  constructor(incarnation: string, before?: Ledger) {
    this.incarnation = incarnation;
    this.#firstNumber = madeAt(incarnation);
    this.above = before?.above ?? 0;
    for (const [singleton, { holder, last }] of before?.holdings ?? []) {
      const known = holder ? behind(holder, last) : last;
      if (!known) continue;
      this.#holdings.set(singleton, { last: known });
      this.#unsaid.set(singleton, known.number);
    }
  }

  /** Whether this reader knows what its next message has to follow: not while it has read strangers' messages alone. */
  get isKnown(): boolean {
    return this.#genuine > 0 || this.#first === 1 || this.last === 0;
  }

  get holdings(): ReadonlyMap<string, Holding> {
    return this.#holdings;
  }

  get hosts(): ReadonlyMap<string, LedgerHost> {
    return this.#hosts;
  }

  /** The token of whoever holds by a claim of this number. */
  token(number: number): string {
    return `${this.incarnation}:${number}`;
  }

  /** What the next message has to repeat; undefined while that is not due. */
  get earlierDue(): LedgerMessage['earlier'] {
    if (this.#unsaid.size === 0 && this.last - this.#earlierAt < EARLIER_EVERY) return undefined;
    const known = [...this.#holdings].flatMap(([singleton, { holder, last }]) => {
      const one = holder ? behind(holder, last) : last;
      return one ? [{ singleton, ...one }] : [];
    });
    return known.length > 0 ? known : undefined;
  }

  /**
   * Takes the next entry in. The first one may be any, for old ones are discarded.
   *
   * @throws RangeError it is not the next one
   */
  apply({ seq, body }: LedgerEntry): Applied {
    if (this.last > 0 && seq !== this.last + 1)
      throw new RangeError(`entry ${seq} does not follow ${this.last}`);
    this.#first ||= seq;
    this.last = seq;
    if (seq === 1) this.#chains.push({ seq: 0, chain: '' });
    if (!body) return 'forged';
    const read = parseMessage(body);
    const readTo = read?.read ?? seq - 1;
    if (!this.isKnown && (!read || readTo < this.#first - 1)) {
      // What its sender had not read may be among the messages that are gone: as if this one were, too.
      this.#first = seq + 1;
      return read ? 'late' : 'unreadable';
    }
    const before = !this.isKnown && read ? read.prev : this.chain;
    const isLate = readTo < this.#genuine;
    const readBySender = isLate ? this.#chainAt(readTo) : before;
    this.#genuine = seq;
    this.chain = chainOf(before, body);
    this.#remember(seq);
    if (!read) return 'unreadable';
    if (readBySender !== undefined && read.prev !== readBySender) return 'forked';
    if (isLate) return 'late';
    this.#host(seq, read);
    this.#earlier(seq, read);
    for (const claim of read.claims) this.#claim(seq, read, claim);
    for (const release of read.releases) this.#release(seq, read, release);
    return read;
  }

  /** Keeps the chains of all entries that a message may name which had to wait behind strangers' messages. */
  #remember(seq: number): void {
    this.#chains.push({ seq, chain: this.chain });
    if (this.#chains.length > MOST_BETWEEN + 2) this.#chains.shift();
  }

  /** @returns undefined when this reader does not know it */
  #chainAt(seq: number): string | undefined {
    return this.#chains.findLast((one) => one.seq <= seq)?.chain;
  }

  #host(seq: number, { host, run, version, protocol, ttlMs, drained, mirror, above }: LedgerMessage): void {
    this.#hosts.set(host, { run, seq, version, protocol, ttlMs, drained, mirror });
    this.above = Math.max(this.above, above);
  }

  #earlier(seq: number, { earlier }: LedgerMessage): void {
    if (!earlier) return;
    this.#earlierAt = seq;
    for (const { singleton, ...known } of earlier) {
      const { holder, released, last } = this.#holdings.get(singleton) ?? {};
      this.above = Math.max(this.above, known.number);
      if (known.number >= (this.#unsaid.get(singleton) ?? Infinity)) this.#unsaid.delete(singleton);
      // Of the holder itself it says who held it before.
      const told = known.number === holder?.number ? beforeOf(known) : known;
      if (!told) continue;
      const isOlder = told.number < (last?.number ?? -1) || (told.number === last?.number && last.before);
      if (isOlder) continue;
      this.#holdings.set(singleton, { holder, released, last: told });
    }
  }

  /** Whether the claim was due cannot be seen here: who makes one has waited, by its own clock. */
  #claim(seq: number, from: LedgerMessage, { singleton, number }: LedgerMessage['claims'][number]): void {
    const { host, run, folder, protocol, ttlMs, mirror, above } = from;
    const { holder, released, last } = this.#holdings.get(singleton) ?? {};
    const claimant = { host, run, folder, protocol, ttlMs, mirror, beatSeq: seq };
    if (number === undefined) {
      // Of this message alone, so that every reader computes the same, whatever it has read before.
      const begins = Math.max(this.#firstNumber + seq, above + 1);
      this.above = Math.max(this.above, begins);
      this.#holdings.set(singleton, {
        holder: { ...claimant, number: begins, since: seq },
        last: holder ? behind(holder, last) : last,
      });
      return;
    }
    // The claim that began this tenure may be among the messages that are gone.
    if (!holder && !released) {
      this.above = Math.max(this.above, number);
      const before = last?.number === number ? beforeOf(last) : last;
      this.#holdings.set(singleton, { holder: { ...claimant, number, since: seq }, last: before });
    } else if (holder?.run === run && holder.number === number) {
      this.#holdings.set(singleton, { holder: { ...holder, ...claimant }, last });
    }
  }

  #release(seq: number, from: LedgerMessage, release: LedgerMessage['releases'][number]): void {
    const { host, run, mirror } = from;
    const { singleton, number, to } = release;
    const { holder, released, last } = this.#holdings.get(singleton) ?? {};
    const isHolder = holder ? holder.run === run && holder.number === number : !released;
    if (!isHolder) return;
    this.#holdings.set(singleton, {
      released: { seq, to },
      last: behind({ host, run, number, mirror }, last),
    });
  }
}

/** So many holders before the last one are remembered: none of them may have begun its work. */
const MOST_BEFORE = 16;

/** Who held it last, with those before it. Of tenures of one host behind each other the first is enough: they have one log. */
function behind({ host, run, number, mirror }: LastHolder, last: LastHolder | undefined): LastHolder {
  const holder = { host, run, number, ...(mirror && { mirror }) };
  if (!last) return holder;
  // Of a later tenure only an earlier ledger told: this one has lost its end, and is read from its beginning again.
  if (last.number > number) return last;
  const [next, ...others] = last.before ?? [];
  const { before: _, ...one } = last;
  const { mirror: known } = last;
  // How far it came is what it said last.
  const before =
    next?.host === last.host
      ? [{ ...next, ...(known && { mirror: known }) }, ...others]
      : [one, ...(last.before ?? [])];
  return { ...holder, before: before.slice(0, MOST_BEFORE) };
}

function beforeOf({ before: [next, ...others] = [] }: LastHolder): LastHolder | undefined {
  return next && { ...next, ...(others.length > 0 && { before: others }) };
}

/**
 * An incarnation begins with the time at which it was made, so that the numbers of a later one are higher although the
 * stream counts from 1 again: no ledger grows by a message a millisecond.
 *
 * @param now epoch milliseconds
 * @param random letters and digits that no other incarnation has
 */
export function newIncarnation(now: number, random: string): string {
  return `${now}-${random}`;
}

/** When an incarnation was made, epoch milliseconds, by the clock of whoever made it. */
export function madeAt(incarnation: string): number {
  const at = Number(incarnation.split('-')[0]);
  return Number.isSafeInteger(at) ? at : 0;
}

/** Of two tokens `<incarnation>:<number>` of a singleton the one with the larger number came later. */
export function numberOf(token: string): number {
  return Number(token.slice(token.lastIndexOf(':') + 1));
}
