import type { Alert } from '../effect.ts';
import type { AnswerParams, Attribution, CallRequest, ForwardParams, MisplacedKey } from './call-shapes.ts';
import { add, spentAt, usesAfter, usesOf } from './key-limits.ts';
import { goodUntil, judge, judgeReading } from './key-rules.ts';
import type { ConfineParams, KeyContext, KeyEvent, KeyReply, WantParams } from './key-shapes.ts';
import { BUDGET, type SliceWanted } from './shares.ts';

// What a key asks for: the effects of its machine, each with what it says, and the readings of an event that they and the
// machine's guards share.

/** An event of a key, and the key as it is when it comes. */
export interface KeyArgs {
  readonly context: KeyContext;
  readonly event: KeyEvent;
}

/** @throws TypeError only calls lead to what reads one */
export const calling = (event: KeyEvent): CallRequest => {
  if (event.type !== 'CALL') throw new TypeError(`${event.type} is no call`);
  return event;
};

/** What is decided about a call. */
export const verdictOf = ({ context, event }: KeyArgs) => judge(context, calling(event));

/** Whose call it is, in the record of its decision. */
const attribution = ({ terms }: KeyContext): Attribution => ({
  ...(terms && { alias: terms.alias }),
  ...(terms?.owner !== undefined && { owner: terms.owner }),
});

/** A key or the master key where it does not belong: somebody should rotate it (G9, G25). */
export const misplacedIn = (event: KeyEvent): MisplacedKey | undefined => {
  const { authorization, misplaced } = calling(event);
  const known = authorization === 'virtual_key' || authorization === 'master_key';
  return known ? { key: authorization, where: 'header authorization' } : misplaced;
};

/** The verdict on a call, and what it uses of shared limits then. The limits are looked at once for both: every call pays for it. */
export function judged({ context, event }: KeyArgs) {
  const call = calling(event);
  const uses = usesOf(context, call);
  const isAdmitted = judge(context, call, uses).rule === 'admitted';
  return { isAdmitted, uses: usesAfter(uses, call, isAdmitted) };
}

/** What this host asks the others for at a call; none without a cluster. */
function wantsOf(args: KeyArgs): readonly SliceWanted[] {
  const { context } = args;
  const call = calling(args.event);
  return judged(args).uses.flatMap(({ allowance, amount, asks }) => {
    const { name, used, began } = allowance;
    if (!asks) return [];
    const isNew = name === BUDGET && context.shared?.shares[name] === undefined;
    return [
      {
        name,
        used: add(used, amount),
        need: name === BUDGET ? (call.cost ?? 0) : 1,
        ...(began !== undefined && { began }),
        ...(isNew && { base: add(spentAt(context, call.at).spend, -used) }),
      },
    ];
  });
}

/** The other hosts hear what this one needs of the key's limits. */
export function want() {
  return {
    type: 'gateway.want_slice',
    params: (args: KeyArgs): WantParams => {
      const { host = '', hosts = 1 } = calling(args.event).cluster ?? {};
      return { host, hosts, wants: wantsOf(args) };
    },
  } as const;
}

/** A change of the key was taken, or is impossible. @param status of HTTP */
export function reply(status: number) {
  return {
    type: 'http.reply',
    params: ({ context }: KeyArgs): KeyReply => ({ status, body: { revision: context.revision } }),
  } as const;
}

/** Whoever holds the key reads what it is, within its limits. */
export function replyToReading() {
  return {
    type: 'http.reply',
    params: ({ context, event }: KeyArgs): KeyReply => {
      if (event.type !== 'KEY_READ') throw new TypeError(`${event.type} reads no key`);
      const verdict = judgeReading(context, event.presented, event.at);
      const overLimit = verdict.rule === 'rate_limited' || verdict.rule === 'over_budget';
      const status = verdict.rule === 'admitted' ? 200 : overLimit ? 429 : 401;
      return { status, body: { revision: context.revision, ...verdict } };
    },
  } as const;
}

/** When open calls with an earlier value end: what ends at once does so whatever the clock of a host says. */
const endOfOverlap = ({ at, overlapMs }: KeyEvent & { type: 'KEY_ROTATED' }): number =>
  overlapMs === undefined ? 0 : at + overlapMs;

/** What is open may go on as far as the key still admits it. Actions are resolved in order, so this one sees the key after the change. */
export function confine() {
  return {
    type: 'gateway.confine',
    params: ({ context, event }: KeyArgs): ConfineParams => {
      const { terms, revokedAt } = context;
      const ends = event.type === 'KEY_ROTATED' ? endOfOverlap(event) : terms?.expiresAt;
      return {
        servers: revokedAt === undefined && !terms?.blocked ? (terms?.servers ?? []) : [],
        ...(ends !== undefined && { until: ends }),
      };
    },
  } as const;
}

/** The call goes to those of its routes that the key may reach. */
export function forward() {
  return {
    type: 'gateway.forward',
    params: ({ context, event }: KeyArgs): ForwardParams => {
      const { routes, cost, method, presented } = calling(event);
      const { terms, revision } = context;
      const allowed = routes.filter((route) => terms?.servers.includes(route));
      const until = goodUntil(context, presented);
      return {
        routes: allowed,
        revision,
        ...attribution(context),
        ...(until !== undefined && { until }),
        ...(terms?.tools && { tools: terms.tools }),
        ...(cost !== undefined && method === 'tools/call' && { cost }),
      };
    },
  } as const;
}

/** The call is answered without an upstream. */
export function refuse() {
  return {
    type: 'gateway.answer',
    params: (args: KeyArgs): AnswerParams => {
      const { rule, retryAfterMs } = verdictOf(args);
      return {
        rule,
        revision: args.context.revision,
        ...attribution(args.context),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      };
    },
  } as const;
}

/** A person should rotate a key that came where none belongs. */
export function warn() {
  return {
    type: 'alerts.raise',
    params: ({ context, event }: KeyArgs): Alert => {
      const { routes } = calling(event);
      const { key, where } = misplacedIn(event) ?? { key: 'virtual_key', where: '' };
      const what = key === 'master_key' ? 'The master key' : 'A virtual key';
      return {
        name: 'gateway.key_misplaced',
        severity: 'critical',
        text: `${what} came where it does not belong (${where}) and may have been read. It was not forwarded; rotate it.`,
        labels: { alias: context.terms?.alias ?? 'unknown', routes: routes.join(','), where },
      };
    },
  } as const;
}
