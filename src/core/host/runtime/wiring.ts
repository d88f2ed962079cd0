import { Cron } from 'croner';
import { z } from 'zod';
import type { Bus, Envelope } from '../../../bus/bus.ts';
import { ALERT_RAISE, type AlertRaised, alertRaised } from '../../contracts/alerts.ts';
import type { Route } from '../../kernel/actors/definition.ts';
import { EFFECT_DONE, type EffectHandler, type EffectRegistration } from '../../kernel/actors/effect.ts';
import type { Clock } from '../../kernel/clock.ts';
import { CoreError } from '../../kernel/errors/core-error.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { actorRef } from '../../kernel/ids.ts';
import type { HttpSurface } from '../http/contract.ts';
import { type Exchanges, HTTP_REPLY, type Reply } from '../http/exchanges.ts';
import { serveOperation } from '../operations/serve.ts';
import type { RuntimeServices } from '../plugin/host.ts';
import type { Owned, ScheduleRegistration } from '../plugin/registrations.ts';
import { pruneRunning } from '../retention/prune-running.ts';

/**
 * Sends what is published on the bus to the actors that routes name. A request that waits
 * for a decision is refused while the log cannot take one; other messages wait in the mailbox.
 */
export function connectRoutes(
  routes: readonly Owned<Route>[],
  { bus, actors, exchanges, log, logger, metrics }: RuntimeServices,
): void {
  const dropped = metrics.counter('events_dropped_total', {
    help: 'Events that found the mailbox full.',
    labels: ['topic'],
  });
  for (const { topic, to, map, owner } of routes) {
    bus.subscribe(topic, `route of ${owner}`, (envelope: Envelope) => {
      const { correlation, cause, blobs } = envelope;
      if (!actors.accepting() && exchanges.has(correlation)) {
        const { reason = 'too much waits for it already' } = log.status();
        exchanges.fail(correlation, new CoreError('HF_LOG_WRITE', { reason }));
        return;
      }
      for (const { key, event } of map(envelope)) {
        try {
          actors.deliver(actorRef(to, key), event, { correlation, cause, blobs });
        } catch (error) {
          exchanges.fail(correlation, error);
          if (!isCoded(error, 'HF_ACTOR_OVERLOADED')) throw error;
          dropped.inc({ topic: topic.name });
          logger.error(
            { code: error.code, topic: topic.name, actor: actorRef(to, key), correlation },
            'event.dropped',
          );
        }
      }
    });
  }
}

/**
 * Publishes each schedule's topic at its times, on the runtime's own clock. Times missed while the process was down
 * are not made up for: what must not be missed is a durable timer.
 *
 * @returns ends them all
 */
export function startSchedules(
  schedules: readonly Owned<ScheduleRegistration>[],
  bus: Bus,
  clock: Clock,
): () => void {
  const cancels = schedules.map(({ cron, topic }) => {
    const pattern = new Cron(cron, { paused: true, timezone: 'UTC' });
    let cancel = () => {};
    const arm = () => {
      const next = pattern.nextRun(new Date(clock.now()));
      if (!next) return;
      cancel = clock.after(next.getTime() - clock.now(), () => {
        bus.publish(topic, {});
        arm();
      });
    };
    arm();
    return () => cancel();
  });
  return () => {
    for (const cancel of cancels) cancel();
  };
}

/**
 * The effects that every machine may ask for without a plugin: an answer to the HTTP request of a story, and an
 * alert. Both may run twice after a crash; an answer that nobody waits for any more is `gone`.
 */
export function builtinEffects(exchanges: Exchanges, bus: Bus): EffectRegistration[] {
  const reply: EffectHandler<Reply & { readonly to?: string }> = ({ to, ...answer }, { correlation }) => {
    const heard = exchanges.settle(to ?? correlation, answer);
    return { type: EFFECT_DONE, effect: HTTP_REPLY, ...(!heard && { gone: true }) };
  };
  const alert: EffectHandler<AlertRaised> = (raised, { correlation, cause }) => {
    bus.publish(alertRaised, raised, { correlation, cause });
  };
  return [
    { type: HTTP_REPLY, onRecovery: 'retry', handler: reply },
    { type: ALERT_RAISE, onRecovery: 'retry', handler: alert, adapter: 'alerts' },
  ];
}

const pruneBody = z.strictObject({
  olderThanMs: z.int().nonnegative().optional(),
  keepBytes: z.int().nonnegative().optional(),
  /** Absolute path. */
  folder: z.string().startsWith('/').max(4_096),
});

const shredBody = z.strictObject({ keys: z.array(z.string().min(1).max(128)).max(100_000) });

/** What commands ask of the log of a running instance, on its control socket. */
export function logControl(
  surface: HttpSurface,
  { log, dataDir, clock }: Pick<RuntimeServices, 'log' | 'dataDir' | 'clock'>,
): void {
  serveOperation(surface, '/log/prune', pruneBody, ({ folder, ...request }) =>
    pruneRunning(log, dataDir, request, folder, clock.now()),
  );
  serveOperation(surface, '/log/shred', shredBody, async ({ keys }) => {
    await log.shred(keys);
    return { keys };
  });
}
