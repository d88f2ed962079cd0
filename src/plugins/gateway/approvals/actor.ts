/** The actors of calls that wait for a person, and how those who wait hear of a decision. */
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { approval, type SettledParams } from '../../../machines/gateway/approval.ts';
import { describeApprovalRecord } from '../words.ts';

/** One actor for each place; its key is the place's number, so that there are never more than may wait at once. */
export const approvalActor = defineActor({
  type: 'gateway.approval',
  machine: approval,
  version: 1,
  input: (place) => ({ place }),
  describe: describeApprovalRecord,
});

/** Those who wait for a person. */
interface WaitingCalls {
  /** Has those of a request look at what was decided. */
  wake(id: string): void;
}

/** Declares the actor and its effect. */
export function registerApprovals(context: PluginContext<{ readonly approvals: WaitingCalls }>): void {
  context.actor(approvalActor);
  context.effect<SettledParams>(
    'gateway.approval_settled',
    ({ id }, _effect, { approvals }) => approvals.wake(id),
    {
      onRecovery: 'retry', // after a restart nobody waits, and who comes again looks at the state
    },
  );
}
