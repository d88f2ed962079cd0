/** Requests for approval that wait on other hosts of a cluster: a person decides on any of them. */
import { z } from 'zod';
import type { Cluster } from '../../../core/contracts/cluster.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, type Json, toPlain } from '../../../core/kernel/json.ts';
import { GatewayError } from '../errors.ts';
import { type ApprovalView, approvalView, decisionSchema } from './view.ts';

const QUESTION = 'gateway.approvals';
/** How long the others have: a decision waits for its record. */
const ANSWER_MS = 3_000;

const question = z.discriminatedUnion('what', [
  z.object({ what: z.literal('list') }),
  z.object({ what: z.literal('show'), id: z.string() }),
  z.object({ what: z.literal('denied'), digest: z.string() }),
  z.object({ what: z.literal('decide'), ...decisionSchema.shape }),
]);
const views = z.object({ approvals: z.array(approvalView) });
const decided = z.object({ decided: approvalView.exactOptional(), state: z.string().exactOptional() });

export type Decision = z.output<typeof decisionSchema>;

/** What this host answers the others. */
export interface OwnApprovals {
  list(): readonly ApprovalView[];
  /** @returns the request of a call that was denied here, while the denial stands */
  denied(digest: string): ApprovalView | undefined;
  /** @param from the host where the person is @throws HF_GATEWAY_APPROVAL_DECIDED */
  decide(decision: Decision, from: string): Promise<ApprovalView>;
}

/** What the other hosts say. */
export interface OthersApprovals {
  readonly approvals: readonly ApprovalView[];
  /** Names of hosts that gave no answer: what waits there is unknown. */
  readonly unanswered: readonly string[];
}

/** Asks the other hosts, and answers them. */
export class ApprovalsElsewhere {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster, own: OwnApprovals) {
    this.#cluster = cluster;
    cluster.onAsked(QUESTION, (body, from) => answer(own, body, from));
  }

  /** What waits on the other hosts, and the names of those that gave no answer. */
  list(): Promise<OthersApprovals> {
    return this.#views({ what: 'list' });
  }

  /** @throws HF_GATEWAY_APPROVAL_UNKNOWN, HF_GATEWAY_APPROVAL_UNANSWERED */
  async find(id: string): Promise<ApprovalView> {
    const { approvals, unanswered } = await this.#views({ what: 'show', id });
    const [found] = approvals;
    if (!found) throw notFound(id, unanswered);
    return found;
  }

  /**
   * Looks for a denial of the same call, which stands on every host. One of a host that gives no answer is not found: then a person is
   * asked again.
   *
   * @param digest of the whole call, by the key that the hosts share
   */
  async denied(digest: string): Promise<ApprovalView | undefined> {
    const { approvals } = await this.#views({ what: 'denied', digest });
    return approvals[0];
  }

  /**
   * Has the host decide that has the request; it records who decided, and on which host.
   *
   * @throws HF_GATEWAY_APPROVAL_UNKNOWN no host has it; HF_GATEWAY_APPROVAL_UNANSWERED one that may have it gave no answer
   * @throws HF_GATEWAY_APPROVAL_DECIDED
   */
  async decide(decision: Decision): Promise<ApprovalView> {
    const { id } = decision;
    const { answers, unanswered } = await this.#ask({ what: 'decide', ...decision });
    for (const { host, answer: given } of answers) {
      const { decided: view, state } = decided.safeParse(given).data ?? {};
      if (view) return { ...view, host };
      if (state !== undefined) throw new GatewayError('HF_GATEWAY_APPROVAL_DECIDED', { id, state });
    }
    throw notFound(id, unanswered);
  }

  async #views(asked: z.output<typeof question>): Promise<OthersApprovals> {
    const { answers, unanswered } = await this.#ask(asked);
    const approvals = answers.flatMap(({ host, answer: given }) =>
      (views.safeParse(given).data?.approvals ?? []).map((view) => ({ ...view, host })),
    );
    return { approvals, unanswered };
  }

  #ask(asked: z.output<typeof question>) {
    return this.#cluster.ask(QUESTION, { ...asked }, ANSWER_MS);
  }
}

function notFound(id: string, unanswered: readonly string[]): Error {
  if (unanswered.length === 0) return new GatewayError('HF_GATEWAY_APPROVAL_UNKNOWN', { id });
  return new GatewayError('HF_GATEWAY_APPROVAL_UNANSWERED', { id, hosts: unanswered.join(', ') });
}

async function answer(own: OwnApprovals, body: Json, from: string): Promise<Json | undefined> {
  const asked = question.safeParse(body).data;
  if (!asked) return undefined;
  if (asked.what === 'denied') {
    const denial = own.denied(asked.digest);
    return denial && plain({ approvals: [denial] });
  }
  const known = own.list();
  if (asked.what === 'list') return plain({ approvals: known });
  const shown = known.filter(({ id }) => id === asked.id);
  if (shown.length === 0) return undefined;
  if (asked.what === 'show') return plain({ approvals: shown });
  const { what, ...decision } = asked;
  try {
    return plain({ decided: await own.decide(decision, from) });
  } catch (error) {
    if (!isCoded(error, 'HF_GATEWAY_APPROVAL_DECIDED')) throw error;
    const { details } = error;
    return { state: isObject(details) ? String(details.state) : '' };
  }
}

const plain = (value: object): Json => toPlain(value, QUESTION);
