/** Requests for approval that wait on other hosts of a cluster: a person decides on any of them. */
import { createSecretKey } from 'node:crypto';
import { z } from 'zod';
import type { Cluster } from '../../../core/contracts/cluster.ts';
import { Vault } from '../../../core/host/secrets/vault.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, type Json } from '../../../core/kernel/json.ts';
import { GatewayError } from '../errors.ts';
import { type ApprovalView, approvalView, decisionSchema } from './view.ts';

const QUESTION = 'gateway.approvals';
/** How long the others have: a decision waits for its record. */
const ANSWER_MS = 3_000;
/** Of the requests in one answer, before it is sealed: a host says the others when it is asked again. */
const MOST_BYTES = 128 * 1024;

const question = z.discriminatedUnion('what', [
  /** From which request on, by the host that has them; all hosts are asked from the first one on unless it is named. */
  z.object({ what: z.literal('list'), from: z.record(z.string(), z.int().min(0)).exactOptional() }),
  z.object({ what: z.literal('show'), id: z.string() }),
  z.object({ what: z.literal('denied'), digest: z.string() }),
  z.object({ what: z.literal('decide'), ...decisionSchema.shape }),
]);
const views = z.object({
  approvals: z.array(approvalView),
  /** Where it goes on. */
  next: z.int().min(1).exactOptional(),
});
const decided = z.object({ decided: approvalView.exactOptional(), state: z.string().exactOptional() });

type Question = z.output<typeof question>;
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

/**
 * Asks the other hosts, and answers them. What they say is sealed: it has the arguments of calls, and whoever may use the servers of
 * NATS may hear it.
 */
export class ApprovalsElsewhere {
  readonly #cluster: Cluster;
  readonly #vault: Vault;

  constructor(cluster: Cluster, own: OwnApprovals) {
    const key = createSecretKey(cluster.key('gateway approvals'));
    this.#cluster = cluster;
    this.#vault = new Vault({ sealing: key, fingerprint: key });
    cluster.onAsked(QUESTION, async (body, from) => {
      const asked = question.safeParse(this.#open(body)).data;
      const said = asked && (await answer(own, asked, { from, host: cluster.host }));
      return said && this.#seal(said);
    });
  }

  /** What waits on the other hosts, and the names of those that gave no answer. */
  async list(): Promise<OthersApprovals> {
    const found = new Map<string, ApprovalView>();
    const silent = new Set<string>();
    let from: Record<string, number> | undefined;
    do {
      const { answers, unanswered } = await this.#ask({ what: 'list', ...(from && { from }) });
      for (const host of unanswered) silent.add(host);
      from = {};
      for (const { host, answer: given } of answers) {
        const { approvals = [], next } = views.safeParse(given).data ?? {};
        for (const view of approvals) found.set(`${host} ${view.id}`, { ...view, host });
        if (next !== undefined) from[host] = next;
      }
    } while (Object.keys(from).length > 0);
    return { approvals: [...found.values()], unanswered: [...silent] };
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

  async #views(asked: Question): Promise<OthersApprovals> {
    const { answers, unanswered } = await this.#ask(asked);
    const approvals = answers.flatMap(({ host, answer: given }) =>
      (views.safeParse(given).data?.approvals ?? []).map((view) => ({ ...view, host })),
    );
    return { approvals, unanswered };
  }

  async #ask(asked: Question) {
    const { answers, unanswered } = await this.#cluster.ask(QUESTION, this.#seal(asked), ANSWER_MS);
    const opened: { readonly host: string; readonly answer: unknown }[] = [];
    const silent = [...unanswered];
    for (const { host, answer: given } of answers) {
      try {
        opened.push({ host, answer: this.#open(given) });
      } catch {
        silent.push(host); // another release may say it otherwise
      }
    }
    return { answers: opened, unanswered: silent };
  }

  #seal(value: object): string {
    return Buffer.from(this.#vault.seal(JSON.stringify(value), QUESTION)).toString('base64');
  }

  /** @throws HF_SECRET_SEALED it is not sealed as here */
  #open(sealed: Json): unknown {
    return JSON.parse(this.#vault.open(Buffer.from(String(sealed), 'base64'), QUESTION));
  }
}

function notFound(id: string, unanswered: readonly string[]): Error {
  if (unanswered.length === 0) return new GatewayError('HF_GATEWAY_APPROVAL_UNKNOWN', { id });
  return new GatewayError('HF_GATEWAY_APPROVAL_UNANSWERED', { id, hosts: unanswered.join(', ') });
}

/** @param hosts which one asks, and which is asked */
async function answer(
  own: OwnApprovals,
  asked: Question,
  { from, host }: { readonly from: string; readonly host: string },
): Promise<object | undefined> {
  if (asked.what === 'denied') {
    const denial = own.denied(asked.digest);
    return denial && { approvals: [denial] };
  }
  const known = own.list();
  if (asked.what === 'list') {
    const first = asked.from ? asked.from[host] : 0;
    return first === undefined ? undefined : partOf(known, first);
  }
  const shown = known.filter(({ id }) => id === asked.id);
  if (shown.length === 0) return undefined;
  if (asked.what === 'show') return { approvals: shown };
  const { what, ...decision } = asked;
  try {
    return { decided: await own.decide(decision, from) };
  } catch (error) {
    if (!isCoded(error, 'HF_GATEWAY_APPROVAL_DECIDED')) throw error;
    const { details } = error;
    return { state: isObject(details) ? String(details.state) : '' };
  }
}

/** As many of the requests as one answer holds, one at least. */
function partOf(known: readonly ApprovalView[], first: number): z.output<typeof views> {
  const part: ApprovalView[] = [];
  let bytes = 0;
  for (const view of known.slice(first)) {
    bytes += Buffer.byteLength(JSON.stringify(view));
    if (part.length > 0 && bytes > MOST_BYTES) break;
    part.push(view);
  }
  const next = first + part.length;
  return { approvals: part, ...(next < known.length && { next }) };
}
