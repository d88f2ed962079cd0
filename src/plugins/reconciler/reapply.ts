/** The actor that has the router apply its config again, at most once in a while over all legs. */
import { RouterApiToken } from '../../core/contracts/router.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { reapply } from '../../machines/reconciler/reapply.ts';
import { UNIT_KEY } from './actors.ts';
import { describeReapply } from './words.ts';
import { writeOf } from './write.ts';

const reapplyActor = defineActor({
  type: 'reconciler.reapply',
  machine: reapply,
  version: 1,
  describe: describeReapply,
});

/** An apply of all interfaces takes up to half a minute, and the router's own time-out must come before this one. */
const DEADLINE_MS = 200_000;
const REASON_LENGTH = 300;

export interface ReapplyTimes {
  readonly everyMs: number;
  readonly waitMs: number;
}

export function registerReapply(context: PluginContext<Services>, times: ReapplyTimes): void {
  context.actor(reapplyActor);
  context.effect<{ intf: string }>(
    'reconciler.request_reapply',
    ({ intf }, { correlation, cause }, { actors }) => {
      actors.send(reapplyActor, UNIT_KEY, { type: 'WANTED', intf, ...times }, { correlation, cause });
    },
    { onRecovery: 'retry' },
  );
  context.effect(
    'reconciler.reapply',
    async (_params, effect, { get, logger }) => {
      const { correlation, signal, origin } = writeOf(effect);
      const answer = await get(RouterApiToken).reapply(correlation, signal, origin);
      logger.info({ answer: answer.kind }, 'router.reapply_requested');
      switch (answer.kind) {
        case 'applied':
          return { type: 'REAPPLIED' };
        case 'pending':
          return { type: 'PENDING' };
        case 'refused':
          return { type: 'NOT_REAPPLIED', reason: maskText(answer.errors.join('; '), REASON_LENGTH) };
        case 'unknown':
          return { type: 'NOT_REAPPLIED', reason: maskText(answer.reason, REASON_LENGTH) };
      }
    },
    // After a crash it is unknown whether it was applied: it counts as the one of this hour.
    { onRecovery: 'fail', deadlineMs: DEADLINE_MS, adapter: RouterApiToken.name },
  );
}

/** The leg no longer needs it. */
export function settleReapply(
  { actors }: Pick<Services, 'actors'>,
  intf: string,
  story: { readonly correlation: string; readonly cause: number },
): void {
  if (actors.get(reapplyActor, UNIT_KEY))
    actors.send(reapplyActor, UNIT_KEY, { type: 'SETTLED', intf }, story);
}
