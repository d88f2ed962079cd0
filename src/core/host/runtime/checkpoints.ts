import type { Bus } from '../../../bus/bus.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { FINGERPRINT_DIGITS, FINGERPRINT_PREFIX } from '../../kernel/ids.ts';
import type { EventLog, Snapshot } from '../../kernel/log/event-log.ts';
import { checkpointSaved } from '../lifecycle/run.ts';

/** How the key of a stored body stands in a state. */
const BLOB_KEY = new RegExp(`${FINGERPRINT_PREFIX}[0-9a-f]{${FINGERPRINT_DIGITS}}`, 'g');

/**
 * Saves the states of actors whenever the log asks for it, and drops the stored bodies that no state names any more: a
 * body is kept as long as an actor's context or an open effect holds its key.
 */
export class Checkpoints {
  readonly #log: EventLog;
  readonly #actors: ActorSystem;
  readonly #bus: Bus;
  #saving: Promise<void> | undefined;

  constructor(log: EventLog, actors: ActorSystem, bus: Bus) {
    this.#log = log;
    this.#actors = actors;
    this.#bus = bus;
    log.onCheckpointDue(() => {
      if (!this.#saving) this.save().catch(unlessClosed);
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
    const changed = this.#actors.takeDirty().map(copyOf);
    if (changed.length === 0) return;
    const saved = await this.#log.saveSnapshots(asText(changed), () => this.#bodiesInUse());
    this.#bus.publish(checkpointSaved, saved);
  }

  #bodiesInUse(): Set<string> {
    return new Set(
      this.#actors.blobHolders().flatMap((state) => JSON.stringify(state).match(BLOB_KEY) ?? []),
    );
  }
}

/** A state is changed in place, but what its fields hold is replaced: this copy does not change any more. */
function copyOf(state: Readonly<ActorState>): ActorState {
  return { ...state, timers: { ...state.timers }, effects: { ...state.effects } };
}

/** Makes JSON of one state at a time, as they are read: a hundred thousand at once would stall everything else. */
function* asText(states: readonly ActorState[]): Generator<Snapshot> {
  for (const state of states) yield { actor: state.ref, body: JSON.stringify(state) };
}

/** States that were not saved at a stop are folded from the records at the next start. */
function unlessClosed(error: unknown): void {
  if (!isCoded(error, 'HF_LOG_CLOSED')) throw error;
}
