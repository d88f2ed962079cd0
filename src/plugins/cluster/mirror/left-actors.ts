import { z } from 'zod';
import { newestTakeover } from '../../../core/kernel/actors/adoption.ts';
import { type ActorState, applyRecord } from '../../../core/kernel/actors/transition.ts';
import { type ClockJump, jumpsOf } from '../../../core/kernel/clock-jumps.ts';
import { KernelError } from '../../../core/kernel/errors/kernel-error.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import { chainHash } from '../../../core/kernel/log/chain-hash.ts';
import { parseLine } from '../../../core/kernel/log/portable/format.ts';
import { ADOPT, CLOCK, checkRecord, type LogEvent } from '../../../core/kernel/log/record.ts';
import { isGenuine } from '../../../core/kernel/log/signing.ts';
import {
  type SingletonContext,
  type Software,
  type Takeover,
  untoldAfter,
} from '../../../machines/cluster/singleton.ts';
import { singletonActor } from '../actors.ts';
import { numberOf } from '../leases/ledger.ts';
import type { ChainPlace } from './batch.ts';
import { Counting, type Fence, type MirrorEntry, textsOf } from './message.ts';
import { takeoverEvent } from './takeover-events.ts';

// What a fence means, for every reader: it stands where it stands, and the first one that is newer than the token by which the
// work began last ends what counts of it. What the host records behind it counts again when the work has begun there by a token
// that is no older. A fence that is older than that token says nothing: its host came too late. Nor does one before the
// first record: the host meets it before it writes.

/** What a host left of a singleton, as of some record. */
interface Leaving {
  readonly place: ChainPlace;
  readonly states: ReadonlyMap<string, ActorState>;
  readonly begun: number | undefined;
  readonly begunWith: Software | undefined;
  readonly untold: readonly Takeover[];
}

/** Folds the records of a singleton's actors on a host's stream, and checks the chain of all. */
export class LeftActors {
  readonly #name: string;
  readonly #key: string;
  readonly #singleton: string;
  readonly #types: ReadonlySet<string>;
  /** The actor that records the tenures of the singleton. */
  readonly #tenures: string;
  readonly #states = new Map<string, ActorState>();
  #counting = new Counting();
  /** When the newest record was made, by the host's own clock. */
  #newestAt = 0;
  #place: ChainPlace | undefined;
  /** The number of the token by which it was being taken, or held, as of the newest record. */
  #tenure: number | undefined;
  #begun: number | undefined;
  /** What it was being taken with, and what it began with. */
  #software: Software | undefined;
  #begunWith: Software | undefined;
  /** Takeovers by that host of which the hosts before may not know. */
  #untold: readonly Takeover[] = [];
  /** The newest fence. */
  #fenced = 0;
  /** As of the first fence that ended it. */
  #ended: Leaving | undefined;
  /** How far the host's clock is behind that of the servers at least, milliseconds; undefined when no record says so. */
  clockBehindMs: number | undefined;

  /**
   * @param name of the stream
   * @param key that signs the host's log
   * @param types of the singleton's actors
   */
  constructor(name: string, key: string, singleton: string, types: readonly string[]) {
    this.#name = name;
    this.#key = key;
    this.#singleton = singleton;
    this.#types = new Set(types);
    this.#tenures = `${singletonActor.type}/${singleton}`;
  }

  /** The newest record that was read. */
  get place(): ChainPlace {
    return this.#place ?? { seq: 0, hash: '' };
  }

  /** The last record that counts. */
  get end(): ChainPlace {
    return this.#ended?.place ?? this.place;
  }

  /** The number of the newest token by which the work began; undefined when it never did. */
  get begun(): number | undefined {
    return this.#ended ? this.#ended.begun : this.#begun;
  }

  /** What the work began with then; undefined where the host did not record it. */
  get begunWith(): Software | undefined {
    return this.#ended ? this.#ended.begunWith : this.#begunWith;
  }

  /** Takeovers by that host of which the hosts before may not know. */
  get untold(): readonly Takeover[] {
    return this.#ended ? this.#ended.untold : this.#untold;
  }

  /** Of the singleton's actors, as of the last record that counts. */
  states(): readonly ActorState[] {
    const all = this.#ended?.states ?? this.#states;
    const states = [...all.values()].filter(({ ref }) => ref !== CLOCK.actor);
    const takeover = newestTakeover(states, () => true);
    // What the host had itself before it took the singleton over ended with that.
    return takeover?.isComplete ? states.filter(({ seq }) => seq >= takeover.first) : states;
  }

  /** How the host's clock was set. */
  clockJumps(): readonly ClockJump[] {
    return jumpsOf(this.#states.get(CLOCK.actor));
  }

  take(entry: MirrorEntry): void {
    if (entry.kind === 'fence') this.#fence(entry.fence);
    if (!this.#place && entry.kind === 'states') this.#counting = new Counting(entry.to);
    else if (!this.#counting.counts(entry)) return;
    if (!('body' in entry)) return;
    this.#place ??= { seq: entry.to, hash: entry.hash };
    const texts = textsOf(entry.body);
    for (const [index, text] of texts.entries()) {
      if (entry.kind === 'begin' && index === 0) continue;
      this.#line(text, index + 1);
    }
    const behindMs = entry.kind === 'records' ? entry.at - this.#newestAt : undefined;
    if (behindMs !== undefined) this.clockBehindMs = Math.min(this.clockBehindMs ?? behindMs, behindMs);
  }

  #fence({ singleton, token }: Fence): void {
    const number = numberOf(token);
    if (singleton !== this.#singleton || !this.#place || number <= (this.#begun ?? 0)) return;
    this.#fenced = Math.max(this.#fenced, number);
    this.#ended ??= {
      ...{ place: this.place, states: structuredClone(this.#states) },
      ...{ begun: this.#begun, begunWith: this.#begunWith, untold: this.#untold },
    };
  }

  #begins(): void {
    if (this.#tenure !== undefined) {
      this.#begun = this.#tenure;
      this.#begunWith = this.#software;
    }
    if (this.#ended && (this.#begun ?? 0) >= this.#fenced) this.#ended = undefined;
  }

  #line(text: string, line: number): void {
    const parsed = parseLine(text, this.#name, line);
    if (parsed.kind === 'state' && this.#isWanted(parsed.ref))
      this.#states.set(parsed.ref, JSON.parse(parsed.body) as ActorState);
    if (parsed.kind === 'state' && parsed.ref === this.#tenures) this.#tenureOf(parsed.body);
    if (parsed.kind === 'record') this.#record(parsed);
    if (parsed.kind !== 'signature' || parsed.signature.key !== this.#key) return;
    const { signature } = parsed;
    const isThis = signature.seq === this.place.seq;
    if (isGenuine('record', signature) && (!isThis || signature.hash === this.place.hash)) return;
    const reason = 'it is not what the host signed';
    throw new KernelError('HF_LOG_CORRUPT', { seq: signature.seq, reason });
  }

  #record({
    body,
    value,
    hash,
  }: {
    readonly body: string;
    readonly value: unknown;
    readonly hash: string;
  }): void {
    const { seq: before, hash: previous } = this.place;
    const record = checkRecord(before + 1, value, true);
    const bad = (reason: string) => new KernelError('HF_LOG_CORRUPT', { seq: before + 1, reason });
    if (record.seq !== before + 1) throw bad(`record ${record.seq} stands in its place`);
    if (chainHash(previous, body) !== hash) throw bad('its hash does not fit what stands before it');
    this.#place = { seq: record.seq, hash };
    this.#newestAt = record.at;
    if (record.actor === this.#tenures) this.#change(record.event);
    // Elsewhere its actors take no events. A takeover that was cut off has begun nothing.
    else if (this.#types.has(parseActorRef(record.actor).type) && !isCut(record.event)) this.#begins();
    if (this.#isWanted(record.actor))
      this.#states.set(record.actor, applyRecord(this.#states.get(record.actor), record));
  }

  #tenureOf(body: string): void {
    const { context } = JSON.parse(body) as { readonly context: SingletonContext };
    const { token, software, begunBy, begunWith, untold = [] } = context;
    this.#untold = untold;
    this.#software = software;
    this.#begunWith = begunWith;
    this.#tenure = token === undefined ? undefined : numberOf(token);
    this.#begun = begunBy === undefined ? undefined : numberOf(begunBy);
  }

  #change(event: LogEvent): void {
    const { type, token, software } = event;
    const { data: told } = takeoverEvent.safeParse(event);
    if (told) this.#untold = untoldAfter(this.#untold, told) ?? [];
    if (type === 'TAKING') {
      this.#tenure = numberOf(String(token));
      this.#software = softwareSchema.safeParse(software).data;
    }
    if (type === 'BEGUN') this.#begins();
    if (type === 'ENDED' || type === 'STARTED' || type === 'BEGIN_FAILED') this.#tenure = undefined;
  }

  #isWanted(ref: string): boolean {
    return ref === CLOCK.actor || this.#types.has(parseActorRef(ref).type);
  }
}

const softwareSchema = z.object({ release: z.string(), machines: z.record(z.string(), z.int()) });

/** Whether more records of the same takeover have to follow. */
function isCut({ type, part, parts }: LogEvent): boolean {
  return type === ADOPT && Number(part) < Number(parts) - 1;
}
