/** `holdfast gateway approvals`, `approve` and `deny`: what calls of tools wait for a person, and the decision. */
import { HostError } from '../../../core/host/errors/host-error.ts';
import { operatorName } from '../../../core/host/operations/control-client.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { APPROVALS_PATH, DECIDE_PATH } from '../approvals/operations.ts';
import type { OthersApprovals } from '../approvals/other-hosts.ts';
import { type ApprovalView, stateText } from '../approvals/view.ts';
import { askGateway } from './target.ts';

const list: CommandDefinition = {
  name: 'gateway approvals',
  summary: 'Lists the calls that wait for a person, with what they ask, and what was decided before',
  example: 'holdfast gateway approvals',
  async run(_args, _flags, context) {
    const { approvals, unanswered } = await askGateway<OthersApprovals>(context, APPROVALS_PATH);
    const { json, print } = context;
    if (json) return print(JSON.stringify({ approvals, unanswered }, null, 2));
    if (unanswered.length > 0)
      print(plainText(`no answer from ${unanswered.join(', ')}: what waits there is unknown`));
    else if (approvals.length === 0) return print('no call waits for a person');
    for (const line of approvals.flatMap(approvalLines)) print(line);
  },
};

const decision = (verb: 'approve' | 'deny', summary: string): CommandDefinition => ({
  name: `gateway ${verb} <id>`,
  summary,
  example: `holdfast gateway ${verb} 4f0c2a91be --why "asked for in the meeting"`,
  flags: [
    {
      flags: '--why <text>',
      summary: 'the reason, which the record keeps; the client sees that of a denial',
    },
  ],
  async run([id], { why }, context) {
    if (typeof why !== 'string' || why.trim() === '') {
      throw new HostError('HF_CLI_USAGE', {
        reason: 'Give the reason: --why <text>.',
        command: `gateway ${verb}`,
      });
    }
    const verdict = verb === 'approve' ? 'approved' : 'denied';
    const view = await askGateway<ApprovalView>(context, DECIDE_PATH, {
      id,
      verdict,
      why,
      by: operatorName(),
    });
    const { json, print } = context;
    print(json ? JSON.stringify(view, null, 2) : `${verdict}: ${headline(view)}`);
  },
});

export const approvalCommands: readonly CommandDefinition[] = [
  list,
  decision('approve', 'Approves a call that waits: it goes to its upstream once'),
  decision('deny', 'Denies a call that waits; the same call is refused until the deadline of the request'),
];

const headline = ({ id, alias = 'a key', owner, route, tool, host }: ApprovalView): string => {
  const on = host === undefined ? '' : ` (on ${host})`;
  return plainText(`${id} ${alias}${owner === undefined ? '' : ` of ${owner}`}: ${route} ${tool}${on}`);
};

function approvalLines(view: ApprovalView): string[] {
  const { state, until, callers, arguments: given, decision: made } = view;
  const waits = callers === 0 ? 'no client is connected; the same call attaches' : `${callers} connected`;
  return [
    headline(view),
    `  ${state === 'waiting' ? `waits until ${until.slice(0, 19)}Z, ${waits}` : plainText(stateText(view))}`,
    ...(made ? [`  why: ${plainText(made.why)}`] : []),
    ...(given === undefined ? [] : given.split('\n').map((line) => `  | ${plainText(line)}`)),
  ];
}
