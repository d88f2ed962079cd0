import type { CommandFlag } from '../../../../core/host/plugin/command.ts';
import { usage } from './key-value.ts';

type Flags = Readonly<Record<string, unknown>>;

/** What a key may do, as flags. */
export const termFlags: readonly CommandFlag[] = [
  { flags: '--alias <name>', summary: 'a label for reports and logs' },
  { flags: '--user <id>', summary: 'its owner, to whom spend is attributed' },
  {
    flags: '--server <name>',
    summary: 'a server it may reach; may be given several times',
    repeatable: true,
  },
  {
    flags: '--tool <name>',
    summary: 'a tool it may see and call, as <server>-<tool>; all of its servers unless given; several times',
    repeatable: true,
  },
  { flags: '--rpm-limit <n>', summary: 'calls of tools a minute' },
  { flags: '--max-budget <amount>', summary: 'what its calls may cost in all' },
  { flags: '--max-parallel <n>', summary: 'requests that may be open at once' },
  { flags: '--max-streams <n>', summary: 'event streams that may be open at once' },
  { flags: '--expires <when>', summary: 'a time from now (30d, 12h) or a moment (2027-01-31T00:00:00Z)' },
];

/** What `--clear` takes away, by the names of the fields. */
const CLEARED: Readonly<Record<string, object>> = {
  user: { user_id: null },
  server: { object_permission: null },
  tool: { object_permission: { mcp_tools: null } },
  'rpm-limit': { rpm_limit: null },
  'max-budget': { max_budget: null },
  'max-parallel': { max_parallel_requests: null },
  'max-streams': { max_streams: null },
  expires: { expires: null },
};

export const clearFlag: CommandFlag = {
  flags: '--clear <term>',
  summary: `take a term away: ${Object.keys(CLEARED).join(', ')}; several times`,
  repeatable: true,
};

/** The flags as fields of a request. @throws HF_CLI_USAGE */
export function termsOfFlags(flags: Flags, command: string): Record<string, unknown> {
  const { alias, user, server, tool, rpmLimit, maxBudget, maxParallel, maxStreams, expires } = flags;
  const cleared = ((flags.clear ?? []) as string[]).map((term) => {
    const fields = CLEARED[term];
    if (!fields) throw usage(`--clear takes one of ${Object.keys(CLEARED).join(', ')}.`, command);
    return fields;
  });
  const scope = {
    ...(server !== undefined && { mcp_servers: server }),
    ...(tool !== undefined && { mcp_tools: tool }),
  };
  return {
    ...Object.assign({}, ...cleared),
    ...(alias !== undefined && { key_alias: alias }),
    ...(user !== undefined && { user_id: user }),
    ...(Object.keys(scope).length > 0 && { object_permission: scope }),
    ...(rpmLimit !== undefined && { rpm_limit: numberOf(rpmLimit, '--rpm-limit', command) }),
    ...(maxBudget !== undefined && { max_budget: numberOf(maxBudget, '--max-budget', command) }),
    ...(maxParallel !== undefined && {
      max_parallel_requests: numberOf(maxParallel, '--max-parallel', command),
    }),
    ...(maxStreams !== undefined && { max_streams: numberOf(maxStreams, '--max-streams', command) }),
    ...(typeof expires === 'string' && (/^\d+[a-z]$/i.test(expires) ? { duration: expires } : { expires })),
  };
}

function numberOf(text: unknown, flag: string, command: string): number {
  const number = typeof text === 'string' && /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(number)) throw usage(`${flag} takes a number.`, command);
  return number;
}
