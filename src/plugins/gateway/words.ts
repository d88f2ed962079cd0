/** Records of the gateway, in an operator's words for `holdfast log`. Nothing that a running plugin needs is loaded with them. */

import { z } from 'zod';
import { counted } from '../../core/host/amounts.ts';
import {
  DEFAULT_WORDS,
  HIDDEN,
  type ProblemTest,
  problemEvents,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import { isObject } from '../../core/kernel/json.ts';
import { type approval, callText } from '../../machines/gateway/approval.ts';
import type { AnswerParams, ForwardParams } from '../../machines/gateway/call-shapes.ts';
import type { endedSessions } from '../../machines/gateway/ended-sessions.ts';
import type { virtualKey } from '../../machines/gateway/key.ts';
import type { KeyReply, KeyTerms } from '../../machines/gateway/key-shapes.ts';
import type { rejections } from '../../machines/gateway/rejections.ts';

import type { routeHealth } from '../../machines/gateway/route-health.ts';
import type { RouteChange, routes } from '../../machines/gateway/routes.ts';
import { toolChangesText, type toolPins } from '../../machines/gateway/tool-pins.ts';

export const words: RecordWords = {
  'gateway.key': describeGatewayRecord,
  'gateway.rejections': describeGatewayRecord,
  'gateway.routes': describeRoutesRecord,
  'gateway.route_health': describeHealthRecord,
  'gateway.tool_pins': describeToolsRecord,
  'gateway.approval': describeApprovalRecord,
  'gateway.ended_sessions': describeEndedSessionsRecord,
};

/** Outcomes of `CALL_ENDED` by which a call failed: that a client hangs up is none. */
export const BAD_OUTCOMES: readonly string[] = [
  'tool_error',
  'rpc_error',
  'http_error',
  'unreachable',
  'timed_out',
  'cut',
  'failed',
];

export function describeGatewayRecord({
  event,
  effects,
  ignored,
}: RecordOf<typeof virtualKey> | RecordOf<typeof rejections>): string | undefined {
  switch (event.type) {
    case 'CALL': {
      const { routes, method, tool, count } = event;
      const decision = effects.find(({ type }) => type.startsWith('gateway.'));
      const { alias, owner, ...params } = (decision?.params ?? {}) as Partial<ForwardParams & AnswerParams>;
      const who = `${alias ?? 'a key'}${owner === undefined ? '' : ` of ${owner}`}`;
      const what = `${who}: ${routes.join(',')} ${method}${tool === undefined ? '' : ` ${tool}`}`;
      if (decision?.type !== 'gateway.forward')
        return `${what}: refused, ${params.rule}${waiting(params)}${together(count)}`;
      return `${what}: admitted${params.cost ? `, charged ${params.cost}` : ''}`;
    }
    case 'CALL_ENDED': {
      const { outcome, status, refusal, ms } = event;
      const answer = `${outcome}${status === undefined ? '' : ` ${status}`}`;
      return `${answer}${refusal === undefined ? '' : ` (${refusal})`} in ${ms} ms`;
    }
    case 'REJECTED': {
      const { rule, source, path, misplaced, where = 'Authorization', count } = event;
      const beside = misplaced === undefined ? '' : `, with a ${misplaced.replace('_', ' ')} in ${where}`;
      const fate = rule === 'let_in' ? `let in to ${path}` : `rejected at ${path}, ${rule}`;
      return `${source} ${fate}${beside}${together(count)}`;
    }
    case 'KEY_CREATED':
      return ignored ? DEFAULT_WORDS : `made${byWhom(event)}: ${termsText(event.terms)}`;
    case 'KEY_UPDATED': {
      const cleared = (event.clear ?? []).map((term) => `no ${WORDS[term] ?? term} any more`);
      return `changed${byWhom(event)}: ${[termsText(event.set), ...cleared].filter(Boolean).join(', ')}`;
    }
    case 'KEY_ROTATED':
      return event.overlapMs
        ? `rotated${byWhom(event)}: the value before is good for ${Math.round(event.overlapMs / 1_000)} s more`
        : `rotated${byWhom(event)}: the value before is good no longer`;
    case 'KEY_REVOKED':
      return `revoked${byWhom(event)}, its open calls included`;
    case 'KEY_HEARD': {
      const { revokedAt } = event.context;
      return `${event.from} knew more of it${revokedAt === undefined ? '' : ', that it is revoked'}`;
    }
    case 'SLICE_WANTED': {
      const wants = event.wants.map(({ name, used }) => `${name} (used ${used})`).join(', ');
      return `${event.host} wants more of limits that ${counted(event.hosts, 'host')} share: ${wants}`;
    }
    case 'KEY_READ': {
      const { body } = (effects[0]?.params ?? {}) as Partial<KeyReply>;
      return `asked about itself: ${body?.rule ?? 'nothing'}`;
    }
    default:
      return DEFAULT_WORDS;
  }
}
describeGatewayRecord.problem = {
  marks: ['"gateway.answer"', '"REJECTED"', ...BAD_OUTCOMES.map((one) => `"outcome":"${one}"`)],
  is: ({ event, effects }) => {
    if (event.type === 'CALL_ENDED') return BAD_OUTCOMES.includes(event.outcome);
    if (event.type === 'REJECTED') return event.rule !== 'let_in';
    return effects.some(
      ({ type, params }) => type === 'gateway.answer' && isObject(params) && 'rule' in params,
    );
  },
} satisfies ProblemTest;

const byWhom = ({ by }: { readonly by?: string }): string => (by === undefined ? '' : ` by ${by}`);

const waiting = ({ retryAfterMs }: Pick<AnswerParams, 'retryAfterMs'>): string =>
  retryAfterMs === undefined ? '' : ` for ${Math.ceil(retryAfterMs / 1_000)} s more`;

const together = (count: number | undefined): string =>
  count === undefined ? '' : `, with what followed within a second ${count} in all`;

const WORDS: Partial<Readonly<Record<keyof KeyTerms, string>>> = {
  owner: 'owner',
  tools: 'list of tools',
  rpmLimit: 'limit',
  maxBudget: 'budget',
  maxParallel: 'limit of open requests',
  maxStreams: 'limit of open streams',
  expiresAt: 'expiry',
  restriction: 'restriction',
  budgetMs: 'renewal of the budget',
  rpmLimits: 'limits of servers and tools',
  blocked: 'block',
  metadata: 'notes',
};

function termsText(terms: Partial<KeyTerms>): string {
  const { alias, owner, servers, tools, rpmLimit, maxBudget, expiresAt, restriction } = terms;
  const { maxParallel, maxStreams, budgetMs, rpmLimits, blocked, metadata } = terms;
  return [
    alias,
    owner && `of ${owner}`,
    servers && `for ${servers.join(' ') || 'no server'}`,
    tools && `tools ${tools.join(' ') || 'none'}`,
    rpmLimit !== undefined && `${rpmLimit} calls a minute`,
    maxBudget !== undefined && `budget ${maxBudget}`,
    maxParallel !== undefined && `${maxParallel} requests at once`,
    maxStreams !== undefined && `${maxStreams} streams at once`,
    expiresAt !== undefined && `until ${new Date(expiresAt).toISOString().slice(0, 19)}Z`,
    restriction && `only ${restriction}`,
    budgetMs !== undefined && `a new budget every ${budgetMs / 1_000} s`,
    rpmLimits && `limits of ${Object.keys(rpmLimits).join(' ') || 'nothing'}`,
    blocked && 'blocked',
    metadata && 'with notes',
  ]
    .filter(Boolean)
    .join(', ');
}

/** What a record that changed the table says about the changes. */
const recordedChanges = z.object({
  changes: z.array(
    z.object({
      name: z.string(),
      what: z.enum(['added', 'changed', 'removed', 'rolled_back']),
      settings: z.array(z.string()).exactOptional(),
    }),
  ),
});

export function describeRoutesRecord(record: RecordOf<typeof routes>): string | undefined {
  const { event, to } = record;
  const changes = recordedChanges.safeParse(to.context).data?.changes ?? [];
  switch (event.type) {
    case 'LOADED': {
      const rejected = event.rejected.length;
      const text = changesText(changes);
      return `routes read (${event.origin}): ${text}${rejected > 0 ? `; ${rejected} rejected` : ''}`;
    }
    case 'REFUSED':
      return `configuration refused: ${event.reason}`;
    case 'ROLLBACK':
      return changes.length > 0 ? `rolled back: ${event.route}` : `no rollback of ${event.route}`;
    case 'ROLLBACKS_HEARD': {
      const text = changes.length > 0 ? changesText(changes) : Object.keys(event.rollbacks).join(', ');
      return `${event.from} knows of a rollback that this host missed: ${text}`;
    }
    case 'SERVED':
      return routineWords(record, { SERVED: `revision ${String(event.revision)} is served` });
    default:
      return DEFAULT_WORDS;
  }
}
describeRoutesRecord.problem = problemEvents('REFUSED');

/** @returns e.g. `library_docs changed (url)`; at most three changes by name */
export function changesText(changes: readonly RouteChange[]): string {
  const texts = changes.slice(0, 3).map(({ name, what, settings }) => {
    const which = settings && settings.length > 0 ? ` (${settings.join(', ')})` : '';
    return `${name} ${what.replace('_', ' ')}${which}`;
  });
  const more = changes.length - texts.length;
  return texts.length === 0 ? 'nothing changed' : `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

export function describeToolsRecord({ event }: RecordOf<typeof toolPins>): string | undefined {
  switch (event.type) {
    case 'SEEN': {
      const number = Object.keys(event.tools).length;
      return event.changes.length === 0
        ? `its upstream defines ${counted(number, 'tool')}`
        : `its upstream defines its tools anew: ${toolChangesText(event.changes)}`;
    }
    case 'ACCEPTED':
      return `its tools are accepted by ${event.by}`;
  }
}

export function describeEndedSessionsRecord({ event }: RecordOf<typeof endedSessions>): string | undefined {
  switch (event.type) {
    case 'init':
      return HIDDEN;
    case 'ENDED':
      return `clients ended ${counted(event.sessions.length, 'session')}`;
    case 'HEARD':
      return `${event.from} knows of ended sessions that this host did not hear of`;
    default:
      return DEFAULT_WORDS;
  }
}

export function describeApprovalRecord(record: RecordOf<typeof approval>): string | undefined {
  const { event, ignored } = record;
  if (ignored) return DEFAULT_WORDS;
  switch (event.type) {
    case 'ASKED':
      return `waits for a person (${event.request.id}): ${callText(event.request)}`;
    case 'DECIDED':
      return `${event.verdict} by ${event.by}${event.from === undefined ? '' : ` on ${event.from}`} (${event.id}): ${event.why}`;
    case 'CLAIMED':
      return `goes to its upstream (${event.id})`;
    case 'RETURNED':
      return `did not reach its upstream (${event.id}), and may be called again`;
    case 'WITHDRAWN':
      return `withdrawn (${event.id}): ${event.reason}`;
    default:
      return routineWords(record, { deadline: `its time is over: ${String(record.to.value)}` });
  }
}

export function describeHealthRecord({ event, to }: RecordOf<typeof routeHealth>): string | undefined {
  switch (event.type) {
    case 'PROBED': {
      const { reason, tools } = event;
      if (event.found === 'ok')
        return `is healthy${tools === undefined ? '' : `, ${counted(tools, 'tool')}`}`;
      return `is ${String(to.value)}: its upstream ${reason}`;
    }
    case 'CALL_FAILED':
      return `is ${String(to.value)}: a call failed, its upstream ${event.reason}`;
    case 'CALL_ANSWERED':
      return 'a call was answered again';
    case 'TOKEN_UNUSABLE':
      return `its token can not be used: ${event.problem}${event.lastGood ? '; the last good one goes on' : ''}`;
    case 'TOKEN_USABLE':
      return 'its token can be used again';
    case 'RESET':
      return `is probed again from the beginning: ${event.reason}`;
    default:
      return DEFAULT_WORDS;
  }
}
describeHealthRecord.problem = problemEvents('CALL_FAILED', 'TOKEN_UNUSABLE');
