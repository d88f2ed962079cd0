import type { Bus } from '../../../bus/bus.ts';
import type { EffectGuard } from '../../kernel/actors/effect.ts';
import { EffectDispatcher } from '../../kernel/actors/effects.ts';
import { recover } from '../../kernel/actors/recover.ts';
import { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { jumpBeforeStart } from '../clock/before-start.ts';
import type { Senders } from '../http/peer.ts';
import type { PendingReplies } from '../http/pending-replies.ts';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Registrations } from '../plugin/registrations.ts';
import type { AlertsOfHost } from './alerts-of-host.ts';
import { builtinEffects, observeEffects, observeFailures } from './wiring.ts';

/** What the actors of a runtime are made with. */
interface ActorServices {
  readonly bus: Bus;
  readonly alerts: AlertsOfHost;
  readonly log: EventLog;
  /** Absolute path. */
  readonly dataDir: string;
  readonly pendingReplies: PendingReplies;
  readonly senders: Senders;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The work that can be on another host; absent without a cluster. */
  readonly singletons?: MovableActors | undefined;
}

/** Types of actors that can be on another host, and when their effects may be carried out here. */
interface MovableActors {
  readonly actorTypes: readonly string[];
  guardOf(actorType: string): EffectGuard | undefined;
}

/** The effects and timers of recovered actors. */
export interface RecoveredEffects {
  /** Continues the effects and timers that the log left open. The plugins must have started: their handlers run. */
  readonly resume: () => void;
  /** Takes up what actors left open that begin to act here later; see `EffectDispatcher`. */
  readonly leftOpen: EffectDispatcher['leftOpen'];
  readonly restOf: EffectDispatcher['restOf'];
  readonly endOf: EffectDispatcher['endOf'];
  /** @param drainMs how long handlers may go on before they are interrupted, milliseconds */
  readonly stop: (drainMs: number) => Promise<void>;
}

/**
 * Brings the registered actors to the states that the log left them in. Events may be sent to them at once; what the log
 * left open waits for `resume`.
 *
 * @throws HF_LOG_CORRUPT, HF_LOG_RANGE the records cannot be read
 * @throws HF_MACHINE_VERSION the log was written by another version of a machine, and the actor has no `migrate` for it
 */
export function recoverActors(
  registrations: Registrations,
  { bus, alerts, log, dataDir, pendingReplies, senders, metrics, clock, logger, singletons }: ActorServices,
): { readonly actors: ActorSystem; readonly effects: RecoveredEffects } {
  const recovered = readStates(dataDir);
  const actors = new ActorSystem(
    log,
    clock,
    recovered.newest,
    observeFailures(alerts.publisher(bus), logger),
  );
  for (const definition of registrations.actors) actors.register(definition);
  actors.onClockJump((jump) => logger.warn({ ...jump }, 'clock.jumped'));
  if (singletons) actors.holdBack(singletons.actorTypes);
  actors.restore(recovered, jumpBeforeStart(recovered, clock));
  actors.recordSendersOf(senders);
  const handlers = [...builtinEffects(pendingReplies, bus, alerts), ...registrations.effects];
  const dispatcher = new EffectDispatcher(
    actors,
    clock,
    new Map(handlers.map((handler) => [handler.type, handler])),
    observeEffects(metrics, logger),
  );
  if (singletons) dispatcher.guardWith((type) => singletons.guardOf(type));
  actors.runEffectsWith(dispatcher);
  // Read now: effects that are requested from here on are not left open, they run.
  const resume = dispatcher.leftOpen(actors.states());
  return {
    actors,
    effects: {
      resume,
      leftOpen: (states) => dispatcher.leftOpen(states),
      restOf: (types, patienceMs) => dispatcher.restOf(types, patienceMs),
      endOf: (types) => dispatcher.endOf(types),
      stop: (drainMs) => dispatcher.stop(drainMs),
    },
  };
}

function readStates(dataDir: string): ReturnType<typeof recover> {
  const reader = new SqliteReader(dataDir);
  try {
    return recover(reader);
  } finally {
    reader.close();
  }
}
