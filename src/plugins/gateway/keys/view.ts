import { hash } from 'node:crypto';
import { isoTime } from '../../../core/kernel/clock.ts';
import { spentAt, WINDOW_MS, windowAt } from '../../../machines/gateway/key-limits.ts';
import { hasLabel, listRequest, readRequest } from './request.ts';
import type { KeyDirectory, KeyView } from './virtual-keys.ts';

/** The internal id of a server, the same in every process (G27). */
export function serverId(name: string): string {
  return `srv_${hash('sha256', `holdfast server\n${name}`, 'hex').slice(0, 16)}`;
}

const time = (at: number | undefined): string | null => (at === undefined ? null : isoTime(at));

function stateOf({ state, context }: KeyView, now: number): string {
  const { expiresAt } = context.terms ?? {};
  if (state !== 'active') return state;
  if (expiresAt !== undefined && now >= expiresAt) return 'expired';
  return context.terms?.blocked ? 'blocked' : state;
}

/** The fields of a key as they were requested. No value of the key is among them. */
export function keyFields({ id, context }: KeyView): Record<string, unknown> {
  const { terms, createdAt, revision } = context;
  return {
    key_id: id,
    key_alias: terms?.alias ?? null,
    user_id: terms?.owner ?? null,
    object_permission: { mcp_servers: terms?.servers ?? [], ...(terms?.tools && { mcp_tools: terms.tools }) },
    rpm_limit: terms?.rpmLimit ?? null,
    max_budget: terms?.maxBudget ?? null,
    budget_duration: terms?.budgetMs === undefined ? null : `${terms.budgetMs / 1_000}s`,
    mcp_rpm_limits: terms?.rpmLimits ?? {},
    metadata: terms?.metadata ?? {},
    blocked: terms?.blocked === true,
    max_parallel_requests: terms?.maxParallel ?? null,
    max_streams: terms?.maxStreams ?? null,
    expires: time(terms?.expiresAt),
    allowed_routes: terms?.restriction === undefined ? [] : [terms.restriction],
    created_at: time(createdAt),
    revision,
  };
}

/** A key with its use so far. The servers are listed by id and by name. */
export function keyInfo(key: KeyView, now: number): Record<string, unknown> {
  const { context } = key;
  const { terms, calls, refused, presents } = context;
  const { spend } = spentAt(context, now);
  const { window } = windowAt(context, now);
  const servers = terms?.servers ?? [];
  return {
    ...keyFields(key),
    object_permission: {
      mcp_servers: servers.map(serverId),
      mcp_server_names: servers,
      ...(terms?.tools && { mcp_tools: terms.tools }),
    },
    status: stateOf(key, now),
    spend,
    calls,
    refused,
    calls_this_minute: window.calls,
    updated_at: time(context.changedAt),
    revoked_at: time(context.revokedAt),
    last_seen_at: time(context.lastSeenAt),
    values: Object.entries(presents).map(([value_id, { until }]) => ({ value_id, until: time(until) })),
  };
}

/** Budget and spend of a key. */
export function budgetOf(key: KeyView, now: number): Record<string, unknown> {
  const { terms } = key.context;
  const { spend, since } = spentAt(key.context, now);
  return {
    budget_id: key.id,
    key_alias: terms?.alias ?? null,
    user_id: terms?.owner ?? null,
    max_budget: terms?.maxBudget ?? null,
    spend,
    budget_duration: terms?.budgetMs === undefined ? null : `${terms.budgetMs / 1_000}s`,
    budget_reset_at: terms?.budgetMs === undefined ? null : time(since + terms.budgetMs),
    remaining: terms?.maxBudget === undefined ? null : Math.max(0, terms.maxBudget - spend),
    rpm_limit: terms?.rpmLimit ?? null,
    rpm_window_ms: WINDOW_MS,
    status: stateOf(key, now),
  };
}

/** One page of a list of keys. */
export interface KeyPage {
  readonly rows: readonly KeyView[];
  readonly total_count: number;
  readonly current_page: number;
  readonly total_pages: number;
}

/**
 * One page of the keys that match a query, oldest first.
 *
 * @param query `page`, `size`, `user_id`, `key_alias`
 * @throws HF_GATEWAY_KEY_REQUEST
 */
export function pageOfKeys(query: unknown, keys: KeyDirectory): KeyPage {
  const { page, size, user_id, key_alias } = readRequest(listRequest, query);
  const wanted = keys
    .list()
    .filter(({ context: { terms } }) => {
      if (!terms || (user_id !== undefined && !hasLabel(terms.owner, user_id))) return false;
      return key_alias === undefined || hasLabel(terms.alias, key_alias);
    })
    .sort((a, b) => (a.context.createdAt ?? 0) - (b.context.createdAt ?? 0) || (a.id < b.id ? -1 : 1));
  return {
    rows: wanted.slice((page - 1) * size, page * size),
    total_count: wanted.length,
    current_page: page,
    total_pages: Math.ceil(wanted.length / size),
  };
}
