import { setImmediate as turn } from 'node:timers/promises';
import { type Family, familyOf } from '../../core/host/history/family.ts';
import { actorMatcher, isAddress } from '../../core/host/history/select.ts';
import type { ActorDefinition } from '../../core/kernel/actors/definition.ts';
import { type ActorState, applyRecord } from '../../core/kernel/actors/transition.ts';
import { machineOf } from '../../core/kernel/actors/versions.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import type { RawRecord, ReadRange } from '../../core/kernel/log/event-log.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { parseRecord } from '../../core/kernel/log/record.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { type Candidate, candidatesOf } from '../../core/kernel/replay/guards.ts';
import { seqOfPlace } from '../log/place.ts';
import { type Filter, type LogRequest, movedTo, type Position, type Viewer, withNote } from './viewer.ts';

/** How many records are read before the event loop runs, so that keys and signals are not held up. */
const PAGE = 1_000;
/** While an actor's records are folded, its state is cached every so many records, up to a number of states. */
const CACHE_EVERY = 500;
const MAX_CACHED_STATES = 64;
/** How many records after one are searched for the outcomes of its effects. */
const LOOK_AHEAD = 5_000;

/** A record with everything that its page shows. */
export interface Detail {
  readonly family: Family;
  /** The actor before it; absent for its first record, and where the log does not hold the beginning. */
  readonly before: ActorState | undefined;
  /** The transitions that were tried, in order; empty where the actor's machine is not available. */
  readonly candidates: readonly Candidate[];
}

/** Reads the log for the viewer. An actor's state is folded from the nearest earlier one that is saved or cached. */
export class StepLog {
  readonly #log: SqliteReader;
  readonly #definitions: ReadonlyMap<string, ActorDefinition>;
  readonly #cachedStates = new Map<string, ActorState>();
  readonly first: number;
  readonly last: number;

  /** @param definitions by type; without them no guard can be shown */
  constructor(log: SqliteReader, definitions: ReadonlyMap<string, ActorDefinition>) {
    this.#log = log;
    this.#definitions = definitions;
    this.first = log.firstSeq();
    this.last = log.lastSeq();
  }

  /** @throws HF_LOG_RANGE the log is empty, or has no such record; HF_CLI_USAGE it is no place */
  async begin(place: string | undefined): Promise<Position> {
    const here = await this.#positionAt(
      place === undefined ? this.first : await seqOfPlace(this.#log, place),
    );
    if (here) return here;
    throw new KernelError('HF_LOG_RANGE', { seq: place ?? 1, first: this.first, last: this.last });
  }

  /** @param signal ends a long search @returns the viewer at its new record, or with a note why it did not move */
  async carryOut(viewer: Viewer, request: LogRequest, signal: AbortSignal): Promise<Viewer> {
    const { here, filter } = viewer;
    switch (request.kind) {
      case 'walk': {
        const found = await this.#walk(here.seq, request.by, filter, signal);
        return found ? movedTo(viewer, found) : withNote(viewer, edgeNote(request.by < 0, filter));
      }
      case 'end': {
        const back = request.of === 'last';
        const found = await this.#find(back ? this.last : this.first, back, filter, signal);
        return found ? movedTo(viewer, found) : withNote(viewer, 'no record fits');
      }
      case 'story': {
        const story = { story: here.correlation };
        const found = await this.#walk(here.seq, request.back ? -1 : 1, story, signal);
        const ends = `the story ${request.back ? 'begins' : 'ends'} here`;
        return found ? movedTo(viewer, found) : withNote(viewer, ends);
      }
      case 'cause': {
        const { cause } = this.#log.record(here.seq);
        const found = cause === undefined ? undefined : await this.#positionOf(cause);
        if (found) return movedTo(viewer, found);
        return withNote(
          viewer,
          cause === undefined ? 'it has no cause: it came from outside' : 'its cause is not in this log',
        );
      }
      case 'effect': {
        const [child] = (await familyOf(this.#log, here.seq, LOOK_AHEAD)).children;
        return child ? movedTo(viewer, child) : withNote(viewer, 'it led to nothing');
      }
      case 'search': {
        const found = await this.#search(here.seq, request.text, filter, signal);
        return found ? movedTo(viewer, found) : withNote(viewer, `${request.text}: not found`);
      }
      case 'place':
        return this.#jump(viewer, request.text);
      case 'narrow': {
        const found =
          (await this.#find(here.seq, false, request.filter, signal)) ??
          (await this.#find(here.seq, true, request.filter, signal));
        return found
          ? movedTo({ ...viewer, filter: request.filter }, found)
          : withNote(viewer, 'no record fits that');
      }
      case 'suspend':
      case 'quit':
        return viewer;
    }
  }

  /** The record and those around it that match the filter: at most `before` earlier and `behind` later ones. */
  async around(seq: number, filter: Filter, before: number, behind: number): Promise<LogRecord[]> {
    const signal = AbortSignal.timeout(60_000);
    const earlier = await this.#read(seq - 1, true, filter, before, signal);
    const later = await this.#read(seq, false, filter, 1 + behind, signal);
    return [...earlier.reverse(), ...later].map(({ seq: number, body }) => parseRecord(number, body));
  }

  async detail(seq: number): Promise<Detail> {
    const family = await familyOf(this.#log, seq, LOOK_AHEAD);
    const { record } = family;
    const before = record.from === undefined ? undefined : await this.#stateBefore(record);
    const definition = this.#definitions.get(parseActorRef(record.actor).type);
    const machine = definition && machineOf(definition, record.version);
    const hasDecision = machine && before && !record.stale && record.failed === undefined;
    return { family, before, candidates: hasDecision ? candidatesOf(machine, before, record.event) : [] };
  }

  async #stateBefore({ seq, actor }: LogRecord): Promise<ActorState | undefined> {
    const saved = this.#log.snapshotOf(actor, seq - 1);
    let state = saved === undefined ? undefined : (JSON.parse(saved) as ActorState);
    for (const cached of this.#cachedStates.values()) {
      if (cached.ref === actor && cached.seq < seq && cached.seq > (state?.seq ?? 0)) state = cached;
    }
    state = state && structuredClone(state);
    let folded = 0;
    const range = { from: (state?.seq ?? 0) + 1, to: seq - 1, actor };
    for (const page of this.#log.pages(range)) {
      for (const raw of page) {
        state = applyRecord(state, parseRecord(raw.seq, raw.body));
        folded += 1;
        if (folded % CACHE_EVERY === 0) this.#cacheState(state);
      }
      if (page.length === PAGE) await turn();
    }
    if (state && folded > CACHE_EVERY / 10) this.#cacheState(state);
    return state;
  }

  #cacheState(state: ActorState): void {
    this.#cachedStates.set(`${state.ref} ${state.seq}`, structuredClone(state));
    if (this.#cachedStates.size <= MAX_CACHED_STATES) return;
    const [oldest = ''] = this.#cachedStates.keys();
    this.#cachedStates.delete(oldest);
  }

  async #jump(viewer: Viewer, text: string): Promise<Viewer> {
    try {
      const seq = await seqOfPlace(this.#log, text);
      const found = await this.#positionAt(Math.min(Math.max(seq, this.first), this.last));
      return found ? movedTo({ ...viewer, filter: {} }, found) : withNote(viewer, 'no such record');
    } catch (error) {
      if (!isCoded(error, 'HF_CLI_USAGE')) throw error;
      return withNote(viewer, `${text} is neither a record nor a time`);
    }
  }

  /** The record of that number; the nearest one before it where an exported log lacks it. */
  async #positionAt(seq: number): Promise<Position | undefined> {
    for (const [raw] of this.#log.pages({ to: seq, reverse: true, limit: 1 })) return raw && positionOf(raw);
    return undefined;
  }

  async #positionOf(seq: number): Promise<Position | undefined> {
    const found = await this.#positionAt(seq);
    return found?.seq === seq ? found : undefined;
  }

  async #walk(seq: number, by: number, filter: Filter, signal: AbortSignal): Promise<Position | undefined> {
    const back = by < 0;
    const rows = await this.#read(back ? seq - 1 : seq + 1, back, filter, Math.abs(by), signal);
    const last = rows.at(-1);
    return last && positionOf(last);
  }

  async #find(
    seq: number,
    back: boolean,
    filter: Filter,
    signal: AbortSignal,
  ): Promise<Position | undefined> {
    const [found] = await this.#read(seq, back, filter, 1, signal);
    return found && positionOf(found);
  }

  /** Searches after the record first, and then from the beginning of the log. */
  async #search(
    seq: number,
    text: string,
    filter: Filter,
    signal: AbortSignal,
  ): Promise<Position | undefined> {
    const wanted = text.toLowerCase();
    const matches = ({ body }: RawRecord) => body.toLowerCase().includes(wanted);
    const [behind] = await this.#read(seq + 1, false, filter, 1, signal, matches);
    const found = behind ?? (await this.#read(this.first, false, filter, 1, signal, matches))[0];
    return found && positionOf(found);
  }

  async #read(
    from: number,
    back: boolean,
    { actor, story }: Filter,
    count: number,
    signal: AbortSignal,
    matches?: (raw: RawRecord) => boolean,
  ): Promise<RawRecord[]> {
    if (count <= 0) return [];
    const isActor = actor === undefined || isAddress(actor) ? undefined : actorMatcher(actor);
    const range: ReadRange = {
      ...(back ? { to: from, reverse: true } : { from }),
      ...(actor !== undefined && isAddress(actor) && { actor }),
      ...(story !== undefined && { correlation: story }),
      limit: matches || isActor ? PAGE : Math.min(count, PAGE),
    };
    const found: RawRecord[] = [];
    for (const page of this.#log.pages(range)) {
      for (const raw of page) {
        if (isActor?.(raw.actor) === false || matches?.(raw) === false) continue;
        found.push(raw);
        if (found.length === count) return found;
      }
      await turn();
      signal.throwIfAborted();
    }
    return found;
  }
}

function positionOf({ seq, actor, correlation }: RawRecord): Position {
  return { seq, actor, correlation };
}

function edgeNote(back: boolean, { actor, story }: Filter): string {
  const which = actor === undefined && story === undefined ? 'record' : 'record that fits';
  return back ? `this is the first ${which}` : `this is the last ${which}`;
}
