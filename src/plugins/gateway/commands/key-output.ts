import type { Terminal } from '../../../core/host/terminal.ts';
import { plainText, table } from '../../../core/host/terminal.ts';

/** A key as the instance tells of it, without anything by which it could be presented. */
export interface ShownKey {
  readonly key_id: string;
  readonly key_alias: string | null;
  readonly user_id: string | null;
  readonly object_permission: {
    readonly mcp_servers: readonly string[];
    readonly mcp_server_names?: readonly string[];
    readonly mcp_tools?: readonly string[];
  };
  readonly rpm_limit: number | null;
  readonly max_budget: number | null;
  readonly max_parallel_requests: number | null;
  readonly max_streams: number | null;
  readonly expires: string | null;
  readonly allowed_routes: readonly string[];
  readonly created_at: string | null;
  readonly revision: number;
  readonly status?: string;
  readonly spend?: number;
  readonly calls?: number;
  readonly refused?: number;
  readonly updated_at?: string | null;
  readonly revoked_at?: string | null;
  readonly last_seen_at?: string | null;
  readonly values?: readonly { readonly value_id: string; readonly until: string | null }[];
}

const second = (time: string | null | undefined): string => time?.slice(0, 19).concat('Z') ?? 'never';

/** One key a line, in columns. */
export function listLines(keys: readonly ShownKey[], terminal: Terminal): string[] {
  const rows = keys.map((key) => [
    key.key_id,
    key.key_alias ?? '',
    key.user_id ?? '',
    key.status ?? '',
    spent(key),
    second(key.last_seen_at),
    namesOf(key),
  ]);
  return table(
    [['KEY', 'ALIAS', 'USER', 'STATE', 'SPENT', 'LAST SEEN', 'SERVERS'], ...rows],
    terminal,
  ).flat();
}

/** All that is known of one. */
export function infoLines(key: ShownKey): string[] {
  const { rpm_limit, calls = 0, refused = 0, values = [], object_permission } = key;
  const fields: [string, string | undefined][] = [
    ['key', key.key_id],
    ['alias', key.key_alias ?? ''],
    ['user', key.user_id ?? '(nobody)'],
    ['state', key.status],
    ['servers', namesOf(key)],
    ['tools', object_permission.mcp_tools?.join(', ') ?? 'all of its servers'],
    ['limit', rpm_limit === null ? 'none' : `${rpm_limit} calls of tools a minute`],
    ['open', openOf(key)],
    ['spent', spent(key)],
    ['calls', `${calls} admitted, ${refused} refused`],
    ['restricted', key.allowed_routes.join(', ') || undefined],
    ['expires', second(key.expires)],
    ['created', second(key.created_at)],
    ['changed', `${second(key.updated_at)} (revision ${key.revision})`],
    ['last seen', second(key.last_seen_at)],
    ['revoked', key.revoked_at ? second(key.revoked_at) : undefined],
    ...values
      .filter(({ until }) => until !== null)
      .map(({ value_id, until }): [string, string] => ['rotated', `${value_id} good until ${second(until)}`]),
  ];
  return fields.flatMap(([name, value]) =>
    value === undefined ? [] : [plainText(`${name.padEnd(11)}${value}`)],
  );
}

const namesOf = ({ object_permission: { mcp_server_names, mcp_servers } }: ShownKey): string =>
  (mcp_server_names ?? mcp_servers).join(', ') || '(none)';

/** What it may have open, where it is not the gateway's own limit that holds. */
function openOf({ max_parallel_requests: calls, max_streams: streams }: ShownKey): string | undefined {
  const limits = [
    ...(calls === null ? [] : [`${calls} requests`]),
    ...(streams === null ? [] : [`${streams} streams`]),
  ];
  return limits.length === 0 ? undefined : `at most ${limits.join(' and ')} at once`;
}

const spent = ({ spend = 0, max_budget }: ShownKey): string =>
  max_budget === null ? String(spend) : `${spend} of ${max_budget}`;
