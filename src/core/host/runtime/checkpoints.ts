import type { Bus } from '../../../bus/bus.ts';
import type { ActorState } from '../../kernel/actors/state.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog, Snapshot } from '../../kernel/log/event-log.ts';
import { checkpointSaved } from '../lifecycle/run.ts';

/** Bodies that nobody names any more stay until a checkpoint: so many bytes of records and bodies call for one. */
const EVERY_BYTES = 64 * 1024 * 1024;
const BLOB_KEY = /fp_[0-9a-f]{32}/g;

/**
 * Saves the states of actors from time to time, and drops the stored bodies that no state names any more: a body
 * lives as long as an actor's context or an open effect bears its key.
 */
export class Checkpoints {
  readonly #log: EventLog;
  readonly #actors: ActorSystem;
  readonly #bus: Bus;
  readonly #everyRecords: number;
  #savedSeq: number;
  #bytes = 0;
  #saving: Promise<void> | undefined;

  /** @param everyRecords how many records a start may have to read at most, roughly */
  constructor(log: EventLog, actors: ActorSystem, bus: Bus, everyRecords: number) {
    this.#log = log;
    this.#actors = actors;
    this.#bus = bus;
    this.#everyRecords = everyRecords;
    this.#savedSeq = log.lastSeq();
    log.onDurable((seq, { bytes }) => {
      this.#bytes += bytes;
      const isDue = seq - this.#savedSeq >= this.#everyRecords || this.#bytes >= EVERY_BYTES;
      if (isDue && !this.#saving) this.save().catch(unlessClosed);
    });
  }

  /** Saves what changed since the last time. One at a time: a second call waits for the first. */
  save(): Promise<void> {
    this.#saving ??= this.#save().finally(() => {
      this.#saving = undefined;
    });
    return this.#saving;
  }

  async #save(): Promise<void> {
    this.#bytes = 0;
    const changed = this.#actors.takeDirty().map(asItIsNow);
    if (changed.length === 0) return;
    const saved = await this.#log.saveSnapshots(asText(changed), () => this.#bodiesInUse());
    this.#savedSeq = saved.seq;
    this.#bus.publish(checkpointSaved, saved);
  }

  #bodiesInUse(): Set<string> {
    return new Set(
      this.#actors.blobHolders().flatMap((state) => JSON.stringify(state).match(BLOB_KEY) ?? []),
    );
  }
}

/** A state is changed in place, what it holds is replaced: so much copying keeps it as it is. */
function asItIsNow(state: Readonly<ActorState>): ActorState {
  return { ...state, timers: { ...state.timers }, effects: { ...state.effects } };
}

/** Only when they are asked for: to make JSON of a hundred thousand at once would stall everything else. */
function* asText(states: readonly ActorState[]): Generator<Snapshot> {
  for (const state of states) yield { actor: state.ref, body: JSON.stringify(state) };
}

/** What was not saved at a stop is folded at the next start. */
function unlessClosed(error: unknown): void {
  if (!isCoded(error, 'HF_LOG_CLOSED')) throw error;
}
