import type { ConsolePage, PageMoment, PageStatus } from '../../../core/contracts/console.ts';
import { keyOf, statesOf } from '../../../core/host/history/page-states.ts';
import { counted, duration } from '../../../core/host/terminal.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { spentAt } from '../../../machines/gateway/key-limits.ts';
import type { KeyContext, KeyTerms } from '../../../machines/gateway/key-shapes.ts';

/** Actors of virtual keys. */
export const KEY_TYPE = 'gateway.key';

/** Every virtual key with what it may do and did at a moment. The log holds no value of a key, so no page does. */
export const keysPage: ConsolePage = {
  name: 'gateway-keys',
  title: 'Keys',
  data: (moment) => {
    const keys = statesOf(moment, KEY_TYPE)
      .map((state) => ({ state, context: state.context as Partial<KeyContext> }))
      .filter(({ context }) => context.terms !== undefined)
      .sort((a, b) => (b.context.lastSeenAt ?? 0) - (a.context.lastSeenAt ?? 0));
    const rows = keys.map(({ state, context }) => rowOf(state, context, moment));
    const columns = [
      { name: 'alias', title: 'Key' },
      { name: 'state', title: 'State' },
      { name: 'servers', title: 'Routes' },
      { name: 'tools', title: 'Tools' },
      { name: 'limits', title: 'Limits' },
      { name: 'calls', title: 'Calls', format: 'number' },
      { name: 'refused', title: 'Refused', format: 'number' },
      { name: 'spend', title: 'Spent', format: 'number' },
      { name: 'lastSeenAt', title: 'Last used', format: 'time' },
      { name: 'rotations', title: 'Rotated', format: 'number' },
      { name: 'oldUntil', title: 'Old value until', format: 'time' },
      { name: 'expiresAt', title: 'Expires', format: 'time' },
    ] as const;
    return [
      { kind: 'table', columns, rows },
      { kind: 'text', text: 'A value of a key is shown once, when it is made or rotated, and is in no log.' },
    ];
  },
};

function rowOf(state: ActorState, context: Partial<KeyContext>, { time }: PageMoment) {
  const { terms, presents = {}, calls = 0, refused = 0, lastSeenAt } = context;
  const { servers = [], tools, owner, expiresAt, alias } = terms ?? {};
  const { spend } = spentAt({ spend: 0, ...context }, time);
  const ends = Object.values(presents).flatMap(({ until }) =>
    until !== undefined && until > time ? until : [],
  );
  const { text, status } = stateOf(state, context, spend, time);
  return {
    ...(status && { status }),
    page: { name: 'gateway-calls', title: 'its calls', inputs: { key: alias ?? keyOf(state) } },
    cells: {
      alias: `${alias ?? keyOf(state)}${owner === undefined ? '' : `, of ${owner}`}`,
      state: text,
      servers: servers.join(', ') || 'none',
      tools: tools ? tools.join(', ') || 'none' : 'all of its routes',
      limits: limitsOf(terms),
      calls,
      refused,
      spend,
      lastSeenAt: lastSeenAt ?? null,
      rotations: Math.max(0, Object.keys(presents).length - 1),
      oldUntil: ends.length > 0 ? Math.max(...ends) : null,
      expiresAt: expiresAt ?? null,
    },
  };
}

/** How a key is; one that somebody revoked is neither well nor unwell. */
function stateOf(
  { value }: Pick<ActorState, 'value'>,
  { terms }: Partial<KeyContext>,
  spend: number,
  now: number,
): { readonly text: string; readonly status?: PageStatus } {
  if (value !== 'active') return { text: String(value) };
  const { expiresAt, blocked, maxBudget } = terms ?? {};
  if (expiresAt !== undefined && now >= expiresAt) return { text: 'expired', status: 'degraded' };
  if (blocked) return { text: 'blocked', status: 'degraded' };
  if (maxBudget !== undefined && spend >= maxBudget) return { text: 'over budget', status: 'degraded' };
  return { text: 'active', status: 'ok' };
}

function limitsOf(terms: KeyTerms | undefined): string {
  const { rpmLimit, rpmLimits = {}, maxBudget, budgetMs, maxParallel, maxStreams } = terms ?? {};
  const texts = [
    rpmLimit !== undefined && `${counted(rpmLimit, 'call')} a minute`,
    ...Object.entries(rpmLimits).map(([name, limit]) => `${limit} a minute of ${name}`),
    maxBudget !== undefined &&
      `a budget of ${maxBudget}${budgetMs === undefined ? '' : ` in ${duration(budgetMs)}`}`,
    maxParallel !== undefined && `${counted(maxParallel, 'call')} at once`,
    maxStreams !== undefined && `${counted(maxStreams, 'stream')} at once`,
  ].filter((text) => text !== false);
  return texts.join('; ') || 'those of the gateway';
}
