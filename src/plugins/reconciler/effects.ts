import { type AlertRaised, alertRaised } from '../../core/contracts/alerts.ts';
import { RouterApiToken, type SetAnswer } from '../../core/contracts/router.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { Counter, Histogram, Metrics } from '../../core/host/metrics/metrics.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { LogEvent } from '../../core/kernel/log/record.ts';
import type { LegEvent, LegRecovered } from '../../machines/reconciler/leg.ts';
import { type LegAddress, readLeg } from './legs.ts';
import { LegPoster, type Posted } from './router-access.ts';

/** A router applies for eight seconds and more, and its own time-out must come before ours. */
const POST_DEADLINE_MS = 90_000;
/** A read may have to wait for a post. */
const READ_DEADLINE_MS = POST_DEADLINE_MS + 30_000;
/** A router's complaints are cut: they are told to a person, not parsed. */
const COMPLAINTS = 5;
const COMPLAINT_LENGTH = 300;

/** What a leg's machine asks for, carried out through the router's API. */
export function registerEffects(context: PluginContext, gatherMs: number, random: () => number): void {
  const parts = once(() => {
    const { services } = context;
    const { clock, log, metrics } = services;
    const poster = new LegPoster({
      api: () => services.get(RouterApiToken),
      clock,
      gatherMs,
      // The legs' records may need several commits; a leg's wish is heard of when its record is durable.
      decided: () => log.whenDurable(log.lastSeq()),
      random,
    });
    return { poster, metrics: new LegMetrics(metrics) };
  });

  context.effect<{ intf: string }>(
    'reconciler.read_leg',
    async ({ intf }, { signal }) => {
      try {
        const { ncid, addresses } = readLeg(await parts().poster.reader.read(signal), intf);
        if (ncid === '') return outcome({ type: 'UNREACHABLE', reason: 'the active config has no ncid' });
        if (!addresses) return outcome({ type: 'LEG_ABSENT', ncid });
        return outcome({ type: 'LEG_READ', ncid, addresses });
      } catch (error) {
        if (signal.aborted || !isCoded(error)) throw error;
        return outcome({ type: 'UNREACHABLE', reason: maskText(error.what, COMPLAINT_LENGTH) });
      }
    },
    { onRecovery: 'retry', deadlineMs: READ_DEADLINE_MS, adapter: RouterApiToken.name },
  );

  context.effect<LegAddress & { ncid: string }>(
    'reconciler.add_address',
    async ({ ncid, ...leg }, { correlation, cause, signal }) => {
      const { poster, metrics } = parts();
      const posted = await poster.add({ leg, ncid, correlation, cause, signal });
      metrics.tried(leg.intf, posted.answer.kind);
      return outcome(answerOf(posted));
    },
    // After a crash nobody knows what was applied: the machine is told so, and reads.
    { onRecovery: 'fail', deadlineMs: POST_DEADLINE_MS, adapter: RouterApiToken.name },
  );

  context.effect<LegRecovered>(
    'reconciler.leg_recovered',
    (leg, { at, cause, correlation }) => {
      const { bus, logger } = context.services;
      const latencyMs = leg.heardAt === undefined ? undefined : Math.max(0, at - leg.heardAt);
      if (leg.missing) {
        parts().metrics.healed(leg.intf, latencyMs);
        logger.info({ ...leg, ...(latencyMs !== undefined && { ms: latencyMs }) }, 'leg.healed');
      }
      if (leg.alerted) bus.publish(alertRaised, recoveredAlert(leg), { correlation, cause });
    },
    { onRecovery: 'retry' },
  );
}

function answerOf({ answer, posted, jitter }: Posted): LegEvent {
  switch (answer.kind) {
    case 'applied':
      return { type: 'ADDED', ncid: answer.ncid, posted };
    case 'conflict':
      return { type: 'CONFLICT', jitter };
    case 'pending':
      return { type: 'PENDING' };
    case 'refused': {
      const errors = answer.errors.slice(0, COMPLAINTS).map((text) => maskText(text, COMPLAINT_LENGTH));
      return { type: 'REFUSED', errors, jitter };
    }
    case 'unknown':
      return { type: 'UNKNOWN', reason: maskText(answer.reason, COMPLAINT_LENGTH), jitter };
  }
}

function recoveredAlert({ intf, label, address, missing }: LegRecovered): AlertRaised {
  return {
    name: 'reconciler.leg.recovered',
    severity: 'info',
    text: missing
      ? `${label} (${intf}) has ${address} again.`
      : `${label} (${intf}) can be checked again, and is whole.`,
    labels: { intf, label, address },
  };
}

/** An event of the machine as the log keeps it. */
function outcome(event: LegEvent): LogEvent {
  return event as unknown as LogEvent;
}

function once<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const HEAL_SECONDS = [0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** How often and how fast legs are fixed. */
export class LegMetrics {
  readonly #heals: Counter;
  readonly #tries: Counter;
  readonly #latency: Histogram;

  constructor(metrics: Metrics) {
    this.#heals = metrics.counter('reconciler_heals_total', {
      help: 'Legs that had lost their static address and have it again.',
      labels: ['intf'],
    });
    this.#tries = metrics.counter('reconciler_tries_total', {
      help: 'Writes for a leg, by how the router answered.',
      labels: ['intf', 'answer'],
    });
    this.#latency = metrics.histogram('reconciler_heal_seconds', {
      help: "From the router's event to the reading that shows the address again.",
      buckets: HEAL_SECONDS,
    });
  }

  tried(intf: string, answer: SetAnswer['kind']): void {
    this.#tries.inc({ intf, answer });
  }

  /** @param latencyMs undefined when no event began the story, or it did not say when it was published */
  healed(intf: string, latencyMs: number | undefined): void {
    this.#heals.inc({ intf });
    if (latencyMs !== undefined) this.#latency.observe(latencyMs / 1_000);
  }
}
