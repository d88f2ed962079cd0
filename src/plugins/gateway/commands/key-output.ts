/** Keys as the commands print them. */
import { z } from 'zod';
import { plainText, type Terminal, table } from '../../../core/host/terminal.ts';

/** A key as the instance describes it, without any of its values. */
export const shownKey = z.object({
  key_id: z.string(),
  key_alias: z.string().nullable(),
  user_id: z.string().nullable(),
  object_permission: z.object({
    mcp_servers: z.array(z.string()),
    mcp_server_names: z.array(z.string()).optional(),
    mcp_tools: z.array(z.string()).optional(),
  }),
  rpm_limit: z.number().nullable(),
  max_budget: z.number().nullable(),
  max_parallel_requests: z.number().nullable(),
  max_streams: z.number().nullable(),
  expires: z.string().nullable(),
  allowed_routes: z.array(z.string()),
  created_at: z.string().nullable(),
  revision: z.number(),
  status: z.string().optional(),
  spend: z.number().optional(),
  calls: z.number().optional(),
  refused: z.number().optional(),
  updated_at: z.string().nullable().optional(),
  revoked_at: z.string().nullable().optional(),
  last_seen_at: z.string().nullable().optional(),
  values: z.array(z.object({ value_id: z.string(), until: z.string().nullable() })).optional(),
});

type ShownKey = z.output<typeof shownKey>;

const second = (time: string | null | undefined): string => time?.slice(0, 19).concat('Z') ?? 'never';

/** @returns one line for each key, in columns */
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

/** @returns one line for each field of a key */
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
    ['open', openLimits(key)],
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

/** @returns the key's own limits of open requests and streams; undefined when the gateway's defaults apply */
function openLimits({ max_parallel_requests: calls, max_streams: streams }: ShownKey): string | undefined {
  const limits = [
    ...(calls === null ? [] : [`${calls} requests`]),
    ...(streams === null ? [] : [`${streams} streams`]),
  ];
  return limits.length === 0 ? undefined : `at most ${limits.join(' and ')} at once`;
}

const spent = ({ spend = 0, max_budget }: ShownKey): string =>
  max_budget === null ? String(spend) : `${spend} of ${max_budget}`;
