import { setImmediate as turn } from 'node:timers/promises';
import type { ActorDefinition } from '../../core/kernel/actors/definition.ts';
import { type ActorState, applyRecord } from '../../core/kernel/actors/transition.ts';
import { machineOf } from '../../core/kernel/actors/versions.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import type { ReadRange } from '../../core/kernel/log/event-log.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { parseRecord } from '../../core/kernel/log/record.ts';
import type { RawRecord, SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { type Candidate, candidatesOf } from '../../core/kernel/replay/guards.ts';
import { seqOfPlace } from '../log/place.ts';
import { type Family, familyOf } from '../log/record-page.ts';
import { actorMatcher, isAddress } from '../log/select.ts';
import { arrived, type Filter, type Here, type LogRequest, stayed, type Viewer } from './viewer.ts';

/** What is read in one go before keys and signals are heard again. */
const PAGE = 1_000;
/** A state is kept every so many records of the actor that is walked over, and so many of them. */
const KEEP_EVERY = 500;
const MOST_KEPT = 64;
/** The most records that are searched for the outcome of one. */
const LOOK_AHEAD = 5_000;

/** A record with everything that its page shows. */
export interface Detail {
  readonly family: Family;
  /** The actor before it; absent for its first record, and where the log does not hold the beginning. */
  readonly before: ActorState | undefined;
  /** The transitions that were asked; empty where no machine is known. */
  readonly candidates: readonly Candidate[];
}

/** The log as the viewer walks over it: pages of records, and states by the nearest one kept before. */
export class StepLog {
  readonly #log: SqliteReader;
  readonly #definitions: ReadonlyMap<string, ActorDefinition>;
  readonly #kept = new Map<string, ActorState>();
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
  async begin(place: string | undefined): Promise<Here> {
    const here = await this.#at(place === undefined ? this.first : await seqOfPlace(this.#log, place));
    if (here) return here;
    throw new KernelError('HF_LOG_RANGE', { seq: place ?? 1, first: this.first, last: this.last });
  }

  /** Carries out a key's request to the log. @param signal ends a long search */
  async fulfil(viewer: Viewer, request: LogRequest, signal: AbortSignal): Promise<Viewer> {
    const { here, filter } = viewer;
    switch (request.kind) {
      case 'walk': {
        const found = await this.#walk(here.seq, request.by, filter, signal);
        return found ? arrived(viewer, found) : stayed(viewer, edge(request.by < 0, filter));
      }
      case 'end': {
        const back = request.of === 'last';
        const found = await this.#find(back ? this.last : this.first, back, filter, signal);
        return found ? arrived(viewer, found) : stayed(viewer, 'no record fits');
      }
      case 'story': {
        const story = { story: here.correlation };
        const found = await this.#walk(here.seq, request.back ? -1 : 1, story, signal);
        const ends = `the story ${request.back ? 'begins' : 'ends'} here`;
        return found ? arrived(viewer, found) : stayed(viewer, ends);
      }
      case 'cause': {
        const { cause } = this.#log.record(here.seq);
        const found = cause === undefined ? undefined : await this.#exactly(cause);
        if (found) return arrived(viewer, found);
        return stayed(
          viewer,
          cause === undefined ? 'it has no cause: it came from outside' : 'its cause is not in this log',
        );
      }
      case 'effect': {
        const [child] = (await familyOf(this.#log, here.seq, LOOK_AHEAD)).children;
        return child ? arrived(viewer, child) : stayed(viewer, 'it led to nothing');
      }
      case 'search': {
        const found = await this.#search(here.seq, request.text, filter, signal);
        return found ? arrived(viewer, found) : stayed(viewer, `${request.text}: not found`);
      }
      case 'place':
        return this.#jump(viewer, request.text);
      case 'narrow': {
        const found =
          (await this.#find(here.seq, false, request.filter, signal)) ??
          (await this.#find(here.seq, true, request.filter, signal));
        return found
          ? arrived({ ...viewer, filter: request.filter }, found)
          : stayed(viewer, 'no record fits that');
      }
      case 'suspend':
      case 'quit':
        return viewer;
    }
  }

  /** Records around one, as the filter has them: at most so many before it and behind it. */
  async around(seq: number, filter: Filter, before: number, behind: number): Promise<LogRecord[]> {
    const signal = AbortSignal.timeout(60_000);
    const earlier = await this.#take(seq - 1, true, filter, before, signal);
    const later = await this.#take(seq, false, filter, 1 + behind, signal);
    return [...earlier.reverse(), ...later].map(({ seq: number, body }) => parseRecord(number, body));
  }

  async detail(seq: number): Promise<Detail> {
    const family = await familyOf(this.#log, seq, LOOK_AHEAD);
    const { record } = family;
    const before = record.from === undefined ? undefined : await this.#stateBefore(record);
    const definition = this.#definitions.get(parseActorRef(record.actor).type);
    const machine = definition && machineOf(definition, record.version);
    const decided = machine && before && !record.stale && record.failed === undefined;
    return { family, before, candidates: decided ? candidatesOf(machine, before, record.event) : [] };
  }

  async #stateBefore({ seq, actor }: LogRecord): Promise<ActorState | undefined> {
    const saved = this.#log.snapshotOf(actor, seq - 1);
    let state = saved === undefined ? undefined : (JSON.parse(saved) as ActorState);
    for (const kept of this.#kept.values()) {
      if (kept.ref === actor && kept.seq < seq && kept.seq > (state?.seq ?? 0)) state = kept;
    }
    state = state && structuredClone(state);
    let folded = 0;
    const range = { from: (state?.seq ?? 0) + 1, to: seq - 1, actor };
    for (const page of this.#log.pages(range)) {
      for (const raw of page) {
        state = applyRecord(state, parseRecord(raw.seq, raw.body));
        folded += 1;
        if (folded % KEEP_EVERY === 0) this.#keep(state);
      }
      if (page.length === PAGE) await turn();
    }
    if (state && folded > KEEP_EVERY / 10) this.#keep(state);
    return state;
  }

  #keep(state: ActorState): void {
    this.#kept.set(`${state.ref} ${state.seq}`, structuredClone(state));
    if (this.#kept.size <= MOST_KEPT) return;
    const [oldest = ''] = this.#kept.keys();
    this.#kept.delete(oldest);
  }

  async #jump(viewer: Viewer, text: string): Promise<Viewer> {
    try {
      const seq = await seqOfPlace(this.#log, text);
      const found = await this.#at(Math.min(Math.max(seq, this.first), this.last));
      return found ? arrived({ ...viewer, filter: {} }, found) : stayed(viewer, 'no such record');
    } catch (error) {
      if (!isCoded(error, 'HF_CLI_USAGE')) throw error;
      return stayed(viewer, `${text} is neither a record nor a time`);
    }
  }

  /** The record of that number, or in a log of some actors the nearest before it. */
  async #at(seq: number): Promise<Here | undefined> {
    for (const [raw] of this.#log.pages({ to: seq, reverse: true, limit: 1 })) return raw && hereOf(raw);
    return undefined;
  }

  async #exactly(seq: number): Promise<Here | undefined> {
    const found = await this.#at(seq);
    return found?.seq === seq ? found : undefined;
  }

  async #walk(seq: number, by: number, filter: Filter, signal: AbortSignal): Promise<Here | undefined> {
    const back = by < 0;
    const rows = await this.#take(back ? seq - 1 : seq + 1, back, filter, Math.abs(by), signal);
    const last = rows.at(-1);
    return last && hereOf(last);
  }

  async #find(seq: number, back: boolean, filter: Filter, signal: AbortSignal): Promise<Here | undefined> {
    const [found] = await this.#take(seq, back, filter, 1, signal);
    return found && hereOf(found);
  }

  /** Behind the record, and then from the beginning. */
  async #search(seq: number, text: string, filter: Filter, signal: AbortSignal): Promise<Here | undefined> {
    const wanted = text.toLowerCase();
    const has = ({ body }: RawRecord) => body.toLowerCase().includes(wanted);
    const [behind] = await this.#take(seq + 1, false, filter, 1, signal, has);
    const found = behind ?? (await this.#take(this.first, false, filter, 1, signal, has))[0];
    return found && hereOf(found);
  }

  async #take(
    from: number,
    back: boolean,
    { actor, story }: Filter,
    count: number,
    signal: AbortSignal,
    has?: (raw: RawRecord) => boolean,
  ): Promise<RawRecord[]> {
    if (count <= 0) return [];
    const isActor = actor === undefined || isAddress(actor) ? undefined : actorMatcher(actor);
    const range: ReadRange = {
      ...(back ? { to: from, reverse: true } : { from }),
      ...(actor !== undefined && isAddress(actor) && { actor }),
      ...(story !== undefined && { correlation: story }),
      limit: has || isActor ? PAGE : Math.min(count, PAGE),
    };
    const taken: RawRecord[] = [];
    for (const page of this.#log.pages(range)) {
      for (const raw of page) {
        if (isActor?.(raw.actor) === false || has?.(raw) === false) continue;
        taken.push(raw);
        if (taken.length === count) return taken;
      }
      await turn();
      signal.throwIfAborted();
    }
    return taken;
  }
}

function hereOf({ seq, actor, correlation }: RawRecord): Here {
  return { seq, actor, correlation };
}

function edge(back: boolean, { actor, story }: Filter): string {
  const which = actor === undefined && story === undefined ? 'record' : 'record that fits';
  return back ? `this is the first ${which}` : `this is the last ${which}`;
}
