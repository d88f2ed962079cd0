import { z } from 'zod';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { ClearableTerm, KeyTerms } from '../../../machines/gateway/key-shapes.ts';
import { GatewayError } from '../errors.ts';

/**
 * The canonical form of a label, so that two labels that look the same are the same (G14): composed characters (NFC),
 * single spaces, no space around it.
 */
export const canonical = (label: string): string => label.normalize('NFC').trim().replace(/\s+/g, ' ');

/**
 * Compares labels. A log of an earlier version may contain labels that are not canonical.
 *
 * @param wanted canonical
 */
export function hasLabel(label: string | undefined, wanted: string): boolean {
  return label === wanted || (label !== undefined && canonical(label) === wanted);
}

/** Also behind an underscore, as in `key_sk-…`; `task-` is a word. */
const LIKE_A_KEY = /(?<![a-z0-9])sk-/i;

/** Alias or owner of a key, or who changed it. Spans, reports and logs show it. */
export const label = z
  .string()
  .max(512) // checked before the costly normalization
  .overwrite(canonical)
  .min(1)
  .max(128)
  // Neither control characters nor invisible ones.
  .regex(/^[^\p{C}\p{Default_Ignorable_Code_Point}]*$/u, 'it has characters that can not be shown')
  .refine((text) => !LIKE_A_KEY.test(text), 'it looks like a key; labels are shown everywhere');

/** A label in a query. */
const labelQuery = z.string().max(512).overwrite(canonical);

const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const LONGEST_MS = 100 * 365 * 86_400_000;
const KEY_ID = /^k_[0-9a-f]{32}$/;

/** A time such as `90s`, `15m`, `12h`, `30d` or `2w`, as milliseconds. */
const duration = z
  .string()
  .regex(/^\d{1,9}[smhdw]$/, 'a duration is a number with s, m, h, d or w behind it, e.g. 30d')
  .transform((text) => Number(text.slice(0, -1)) * (UNITS_MS[text.slice(-1)] ?? 0))
  .refine((ms) => ms <= LONGEST_MS, 'no longer than a hundred years');

/** Shortest value of a key, characters: long enough not to be guessed. */
export const SHORTEST_KEY = 20;

/** A value for a key, chosen by the caller. */
const keyValue = z
  .string()
  .min(SHORTEST_KEY, `a key has at least ${SHORTEST_KEY} characters`)
  .max(512)
  .regex(/^[\x21-\x7e]*$/, 'a key has visible ASCII characters only')
  .refine((text) => !KEY_ID.test(text), 'that is the id of a key, not a value');

/** Names a key by its value or its id. */
const key = z.string().min(1).max(4_096);
const names = z.array(z.string().min(1).max(256)).max(1_000);

const permission = z.strictObject({
  mcp_servers: names.optional(),
  /** Prefixed names. */
  mcp_tools: names.nullable().optional(),
});

/** What its owner notes with a key; shown again, and never looked at. */
const metadata = z
  .record(z.string().max(128), z.json())
  .refine((value) => JSON.stringify(value).length <= 4_096, 'no more than 4,096 characters of JSON')
  .refine((value) => !LIKE_A_KEY.test(JSON.stringify(value)), 'it looks like a key; metadata are shown');

const fields = {
  key_alias: label.optional(),
  user_id: label.nullable().optional(),
  object_permission: permission.nullable().optional(),
  rpm_limit: z.int().min(1).max(1_000_000).nullable().optional(),
  max_budget: z.number().min(0).max(1e12).nullable().optional(),
  /** The budget begins anew after this time. */
  budget_duration: duration
    .refine((ms) => ms >= 1_000, 'at least a second')
    .nullable()
    .optional(),
  /** Calls a minute by server, or by a tool's prefixed name. */
  mcp_rpm_limits: z.record(z.string().min(1).max(256), z.int().min(1).max(1_000_000)).nullable().optional(),
  metadata: metadata.nullable().optional(),
  /** Of scripts for other gateways: it says nothing here. */
  models: z.unknown().optional(),
  max_parallel_requests: z.int().min(1).max(1_000_000).nullable().optional(),
  max_streams: z.int().min(1).max(1_000_000).nullable().optional(),
  duration: duration.nullable().optional(),
  expires: z.iso.datetime({ offset: true, local: false }).nullable().optional(),
  allowed_routes: z.array(z.literal('llm_api_routes')).max(1).nullable().optional(),
};

export const generateRequest = z.strictObject({ ...fields, key: keyValue.optional() });
export const updateRequest = z.strictObject({ ...fields, key });
export const deleteRequest = z
  .strictObject({
    key: key.optional(),
    keys: z.array(key).max(1_000).optional(),
    key_aliases: names.optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { path: ['keys'], message: 'name at least one' });
export const rotateRequest = z.strictObject({
  key,
  new_key: keyValue.optional(),
  /** How long the previous values stay valid. */
  overlap: duration.default(0),
});
export const blockRequest = z.strictObject({ key });
export const listRequest = z.strictObject({
  page: z.coerce.number().int().min(1).default(1),
  size: z.coerce.number().int().min(1).max(1_000).default(100),
  user_id: labelQuery.optional(),
  key_alias: labelQuery.optional(),
});

type Fields = Omit<z.output<typeof generateRequest>, 'key'>;

/**
 * Checks a request against its schema.
 *
 * @throws HF_GATEWAY_KEY_REQUEST naming the field, but not its content, which may be a key
 */
export function readRequest<T>(schema: z.ZodType<T>, body: unknown): T {
  const { data, error } = schema.safeParse(body ?? {}, {
    error: (issue) => (issue.input === undefined ? 'it is missing' : undefined),
  });
  if (!error) return data;
  const issue = error.issues[0];
  if (issue?.code === 'unrecognized_keys') {
    throw invalid([...issue.path, issue.keys[0]].join('.').slice(0, 80), 'there is no such field');
  }
  throw invalid(issue?.path.join('.') || 'body', issue?.message ?? 'it is not valid');
}

export const invalid = (field: string, reason: string): HoldfastError =>
  new GatewayError('HF_GATEWAY_KEY_REQUEST', { field, reason });

/** What of a request is taken and not followed, for whoever sent it. */
export function warningsOf(body: unknown): readonly string[] {
  const hasModels = isObject(body) && 'models' in body;
  return hasModels
    ? ['models is ignored: a key reaches MCP servers here (object_permission), and no models']
    : [];
}

/** The servers that a scope may name, and whether their tools have a prefix. */
export type KnownServers = ReadonlyMap<string, { readonly entry: { readonly prefix: boolean } }>;

/**
 * A request as terms of a key.
 *
 * @param before servers that the key may use already
 * @throws HF_GATEWAY_KEY_REQUEST
 */
export function termsOf(
  request: Fields,
  { servers: known, before, now }: { servers: KnownServers; before: readonly string[]; now: number },
): { readonly set: Partial<KeyTerms>; readonly clear: readonly ClearableTerm[] } {
  const { key_alias, user_id, object_permission, rpm_limit, max_budget, allowed_routes } = request;
  const { max_parallel_requests, max_streams, budget_duration, mcp_rpm_limits } = request;
  const permitted = object_permission === null ? { mcp_servers: [], mcp_tools: null } : object_permission;
  const servers = permitted?.mcp_servers;
  const tools = permitted?.mcp_tools;
  servers?.forEach((name, index) => {
    checkServer(name, `object_permission.mcp_servers.${index}`, known);
  });
  tools?.forEach((name, index) => {
    checkTool(name, `object_permission.mcp_tools.${index}`, servers ?? before, known);
  });
  for (const name of Object.keys(mcp_rpm_limits ?? {}))
    if (!known.has(name)) checkTool(name, `mcp_rpm_limits.${shown(name)}`, servers ?? before, known);
  const expiresAt = expiryOf(request, now);
  const restriction = allowed_routes?.[0] ?? (allowed_routes === undefined ? undefined : null);
  const terms = {
    alias: key_alias,
    owner: user_id,
    servers: servers && [...new Set(servers)],
    tools: tools && [...new Set(tools)],
    rpmLimit: rpm_limit,
    maxBudget: max_budget,
    maxParallel: max_parallel_requests,
    maxStreams: max_streams,
    expiresAt,
    restriction,
    budgetMs: budget_duration,
    rpmLimits: mcp_rpm_limits,
    metadata: request.metadata,
  };
  const given = Object.entries(terms).filter(([, value]) => value !== undefined);
  return {
    set: Object.fromEntries(given.filter(([, value]) => value !== null)) as Partial<KeyTerms>,
    clear: given.filter(([, value]) => value === null).map(([name]) => name as ClearableTerm),
  };
}

function checkServer(name: string, field: string, known: KnownServers): void {
  if (known.has(name)) return;
  if (name.includes('-')) {
    const meant = name.replaceAll('-', '_');
    const hint = known.has(meant) ? `write ${meant}` : 'write _ instead of -';
    throw invalid(field, `${shown(name)}: server names have no hyphen; ${hint}`);
  }
  throw invalid(field, `${shown(name)} is no server here; there are ${[...known.keys()].join(', ')}`);
}

function checkTool(name: string, field: string, scope: readonly string[], known: KnownServers): void {
  const fits = scope.some(
    (server) => known.get(server)?.entry.prefix === false || name.startsWith(`${server}-`),
  );
  if (fits) return;
  throw invalid(
    field,
    `${shown(name)} is no prefixed name of a tool of this key's servers; write <server>-<tool>, as tools/list shows it`,
  );
}

/** A name as far as an answer may repeat it: it may be a key. */
const shown = (name: string): string => (/^[\w.-]{1,64}$/.test(name) && !/^sk-/.test(name) ? name : 'that');

/** @returns undefined when the request does not mention it, null to remove it */
function expiryOf({ duration, expires }: Fields, now: number): number | null | undefined {
  if (duration != null && expires != null) throw invalid('expires', 'give either duration or expires');
  if (duration != null) {
    if (duration === 0) throw invalid('duration', 'it is 0; to end a key at once, revoke it');
    return now + duration;
  }
  if (expires != null) {
    const at = Date.parse(expires);
    if (at <= now) throw invalid('expires', 'it is in the past; to end a key at once, revoke it');
    return at;
  }
  return duration === null || expires === null ? null : undefined;
}
