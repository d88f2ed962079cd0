import type { ActorDefinition } from '../../src/core/kernel/actors/definition.ts';
import type { EffectRegistration } from '../../src/core/kernel/actors/effect.ts';
import { EffectDispatcher, type EffectEnd } from '../../src/core/kernel/actors/effects.ts';
import { recover } from '../../src/core/kernel/actors/recover.ts';
import { ActorSystem } from '../../src/core/kernel/actors/system.ts';
import type { Clock } from '../../src/core/kernel/clock.ts';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { VirtualClock } from './virtual-clock.ts';

/** A log, its actors and their effects as the runtime wires them, on a real data folder and virtual time. */
export interface Bench<C extends Clock = VirtualClock> {
  readonly log: SqliteLog;
  readonly clock: C;
  readonly actors: ActorSystem;
  readonly dispatcher: EffectDispatcher;
  readonly dataDir: string;
  readonly ends: EffectEnd[];
  /** Every record that the folder holds. */
  records(): Promise<LogRecord[]>;
  /** Waits until all that was decided is durable and no effect runs. */
  settled(): Promise<void>;
  /** @param drainMs how long running effects may go on, milliseconds */
  close(drainMs?: number): Promise<void>;
}

/**
 * Opens a data folder.
 *
 * @param heldBack types of actors that act only when they are taken up
 * @throws what the runtime refuses a log or its states with; the log is closed by then
 */
export async function openBench<C extends Clock = VirtualClock>(
  dataDir: string,
  definitions: readonly ActorDefinition[],
  effects: readonly EffectRegistration[] = [],
  clock: C = new VirtualClock(1_000) as Clock as C,
  heldBack: readonly string[] = [],
): Promise<Bench<C>> {
  const log = new SqliteLog({ dataDir });
  const reader = new SqliteReader(dataDir);
  const close = async () => {
    await log.close();
    reader.close();
  };
  try {
    const recovered = recover(reader);
    const actors = new ActorSystem(log, clock, recovered.newest, () => {});
    for (const definition of definitions) actors.register(definition);
    actors.holdBack(heldBack);
    actors.restore(recovered);
    const ends: EffectEnd[] = [];
    const handlers = new Map(effects.map((registration) => [registration.type, registration]));
    const dispatcher = new EffectDispatcher(actors, clock, handlers, (end) => ends.push(end));
    actors.runEffectsWith(dispatcher);
    dispatcher.leftOpen(actors.states())();
    return {
      log,
      clock,
      actors,
      dispatcher,
      dataDir,
      ends,
      records: () => Array.fromAsync(reader.read()),
      async settled() {
        do {
          await log.whenDurable(log.lastSeq());
          await new Promise((resolve) => setImmediate(resolve));
        } while (log.status().queued > 0 || dispatcher.running > 0);
      },
      async close(drainMs = 0) {
        await dispatcher.stop(drainMs);
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
