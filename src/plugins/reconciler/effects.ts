import { type AlertRaised, alertRaised } from '../../core/contracts/alerts.ts';
import { RouterApiToken, type SetAnswer } from '../../core/contracts/router.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { Metrics } from '../../core/host/metrics/metrics.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { LegEvent, LegRecovered, ReadLeg } from '../../machines/reconciler/leg-shapes.ts';
import type { Adoption } from './adoption.ts';
import { readHeld } from './kept-fields.ts';
import type { LegAddress } from './legs.ts';
import { isOnLink, linkDoubt } from './link.ts';
import { settleReapply } from './reapply.ts';
import type { LegPoster, PostResult } from './router-access.ts';
import { writeOf } from './write.ts';

/** A router needs eight seconds and more to apply a config, and its own time-out must come before this one. */
const POST_DEADLINE_MS = 90_000;
/** A read may wait for a post. */
const READ_DEADLINE_MS = POST_DEADLINE_MS + 30_000;
/** Limits for the router's error texts, which are shown to a person. */
const ERRORS_KEPT = 5;
const ERROR_LENGTH = 300;

const HEAL_SECONDS = [0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

interface Started extends Services {
  readonly adoption: Adoption;
  /** Interfaces that are never touched. */
  readonly never: readonly string[];
  readonly poster: LegPoster;
  readonly legMetrics: LegMetrics;
}

/** Metrics: how often and how fast legs get their address back. */
export type LegMetrics = ReturnType<typeof legMetrics>;

export function legMetrics(metrics: Metrics) {
  return {
    heals: metrics.counter('reconciler_heals_total', {
      help: 'Legs that had lost their static address and have it again.',
      labels: ['intf'],
    }),
    tries: metrics.counter('reconciler_tries_total', {
      help: 'Writes for a leg, by how the router answered.',
      labels: ['intf', 'answer'],
    }),
    healSeconds: metrics.histogram('reconciler_heal_seconds', {
      help: "From the router's event to the reading that shows the address again.",
      buckets: HEAL_SECONDS,
    }),
  };
}

/** Registers the effects of a leg's machine: reading its interface and its link, adding its address, reporting its recovery. */
export function registerEffects(context: PluginContext<Started>): void {
  context.effect<ReadLeg>(
    'reconciler.read_leg',
    async (leg, { signal }, { clock, never, poster: { reader } }): Promise<LegEvent> => {
      const unreachable = (reason: string) =>
        ({ type: 'UNREACHABLE', reason, jitter: reader.jitter, at: clock.now() }) as const;
      try {
        const { ncid, addresses, refusedName } = readHeld(await reader.read(signal), leg, never);
        if (ncid === '') return unreachable('the active config has no ncid');
        if (!addresses) return { type: 'LEG_ABSENT', ncid };
        if (refusedName !== undefined) return { type: 'LEG_REFUSED', ncid, name: refusedName };
        return { type: 'LEG_READ', ncid, addresses, at: clock.now() };
      } catch (error) {
        if (signal.aborted || !isCoded(error)) throw error;
        return unreachable(maskText(error.what, ERROR_LENGTH));
      }
    },
    { onRecovery: 'retry', deadlineMs: READ_DEADLINE_MS, adapter: RouterApiToken.name },
  );

  context.effect<LegAddress & { ncid: string }>(
    'reconciler.add_address',
    async ({ ncid, ...leg }, effect, { adoption, poster, legMetrics }) => {
      // A second fence: the machine of a leg that is not adopted never asks for this.
      if (adoption.isObserving()) return { type: 'REFUSED', errors: ['the legs are not adopted'], jitter: 0 };
      const result = await poster.add({ leg, ncid, ...writeOf(effect) });
      legMetrics.tries.inc({ intf: leg.intf, answer: result.answer.kind });
      return outcomeOf(result, leg.intf, ncid);
    },
    // After a crash it is unknown what was applied, so the machine gets `effect.lost` and reads the config again.
    { onRecovery: 'fail', deadlineMs: POST_DEADLINE_MS, adapter: RouterApiToken.name },
  );

  context.effect<{ intf: string; address: string }>(
    'reconciler.read_link',
    async ({ intf, address }, { signal }, { clock, get }): Promise<LegEvent> => {
      try {
        const view = await get(RouterApiToken).interfaceState(intf, signal);
        const reason = linkDoubt(view, address);
        if (reason !== undefined) return { type: 'LINK_UNKNOWN', reason };
        return { type: 'LINK_READ', present: isOnLink(view, address), at: clock.now() };
      } catch (error) {
        if (signal.aborted || !isCoded(error)) throw error;
        return { type: 'LINK_UNKNOWN', reason: maskText(error.what, ERROR_LENGTH) };
      }
    },
    { onRecovery: 'retry', adapter: RouterApiToken.name },
  );

  context.effect<{ intf: string; label: string; address: string }>(
    'reconciler.link_recovered',
    ({ intf, label, address }, { cause, correlation }, services) => {
      settleReapply(services, intf, { correlation, cause });
      services.bus.publish(
        alertRaised,
        {
          name: 'reconciler.leg.applied',
          severity: 'info',
          text: `${label} (${intf}): ${address} is on the link.`,
          labels: { intf, label, address },
        },
        { correlation, cause },
      );
    },
    { onRecovery: 'retry' },
  );

  context.effect<LegRecovered>(
    'reconciler.leg_recovered',
    (leg, { at, cause, correlation }, { bus, logger, legMetrics }) => {
      const latencyMs = leg.eventAt === undefined ? undefined : Math.max(0, at - leg.eventAt);
      if (leg.missing) {
        legMetrics.heals.inc({ intf: leg.intf });
        if (latencyMs !== undefined) legMetrics.healSeconds.observe(latencyMs / 1_000);
        logger.info({ ...leg, ...(latencyMs !== undefined && { ms: latencyMs }) }, 'leg.healed');
      }
      if (leg.alerted) bus.publish(alertRaised, recoveredAlert(leg), { correlation, cause });
    },
    { onRecovery: 'retry' },
  );
}

/** The router's answer to a post, as an event of the leg. */
function outcomeOf({ answer, posted, refused, jitter }: PostResult, intf: string, ncid: string): LegEvent {
  const name = refused?.get(intf);
  if (name !== undefined) return { type: 'LEG_REFUSED', ncid, name };
  switch (answer.kind) {
    case 'applied':
      return { type: 'ADDED', ncid: answer.ncid, posted };
    case 'conflict':
      return { type: 'CONFLICT', jitter };
    case 'pending':
      return { type: 'PENDING' };
    case 'refused':
      return { type: 'REFUSED', errors: boundedErrors(answer), jitter };
    case 'unknown':
      return { type: 'UNKNOWN', reason: maskText(answer.reason, ERROR_LENGTH), jitter };
  }
}

function boundedErrors({ errors }: Extract<SetAnswer, { kind: 'refused' }>): string[] {
  return errors.slice(0, ERRORS_KEPT).map((text) => maskText(text, ERROR_LENGTH));
}

function recoveredAlert({ intf, label, address, missing }: LegRecovered): AlertRaised {
  return {
    name: 'reconciler.leg.recovered',
    severity: 'info',
    text: missing
      ? `${label} (${intf}) has ${address} again.`
      : `${label} (${intf}) can be checked again, and has ${address}.`,
    labels: { intf, label, address },
  };
}
