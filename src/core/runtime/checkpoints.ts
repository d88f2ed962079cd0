import { z } from 'zod';
import { type Bus, defineTopic, type Topic } from '../../bus/index.ts';
import type { ActorSystem } from '../actors/index.ts';
import type { EventLog, SnapshotsSaved } from '../log/event-log.ts';

/** Snapshots of actors were saved; the digest becomes a record, so that the chain covers them too. */
export const checkpointSaved: Topic<SnapshotsSaved> = defineTopic(
  'log.checkpoint_saved',
  z.object({ seq: z.number(), count: z.number(), digest: z.string() }),
  'The states of the actors that changed were saved, so that a start need not read older records.',
);

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
  #saving: Promise<void> | undefined;

  /** @param everyRecords how many records a start may have to read at most, roughly */
  constructor(log: EventLog, actors: ActorSystem, bus: Bus, everyRecords: number) {
    this.#log = log;
    this.#actors = actors;
    this.#bus = bus;
    this.#everyRecords = everyRecords;
    this.#savedSeq = log.lastSeq();
    log.onDurable((seq) => {
      if (seq - this.#savedSeq >= this.#everyRecords) void this.save();
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
    const snapshots = this.#actors.takeDirty().map((state) => {
      return { actor: state.ref, seq: this.#log.lastSeq(), body: JSON.stringify(state) };
    });
    if (snapshots.length === 0) return;
    const keep = new Set(
      this.#actors.blobHolders().flatMap((state) => JSON.stringify(state).match(BLOB_KEY) ?? []),
    );
    const saved = await this.#log.saveSnapshots(snapshots, keep);
    this.#savedSeq = saved.seq;
    this.#bus.publish(checkpointSaved, saved);
  }
}
