import type { CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { RedisClient, RedisFault } from '../../core/host/redis/client.ts';
import { maskRedisUrl, parseRedisUrl } from '../../core/host/redis/url.ts';

/**
 * The keys of a router in Redis. Other daemons, apps and scripts read them too, so their names are fixed;
 * `docs/guides/config-in-redis.md` describes them.
 */

/** The index that holds the router's config when the URL names none. */
export const CONFIG_DATABASE = 1;
/** The active config as plain JSON. */
export const CONFIG_KEY = 'sysdb:networkConfig';
/** Where a daemon keeps the config of a transaction; it never deletes it. */
export const PENDING_KEY = 'sysdb:transaction:networkConfig';

export const HISTORY_DATABASE = 0;
/** A sorted set of the accepted writes. */
export const HISTORY_KEY = 'history:networkConfig';

export interface RedisDiagnosis {
  /** The URL without its secrets. */
  readonly url: string;
  readonly reachable: boolean;
  /** The index that a reader of this URL reads. */
  readonly database: number;
  /** Indices that hold the config, among those that were read. */
  readonly configIn: readonly number[];
  readonly historyIn: readonly number[];
  /** Whether config and history are in the documented databases. */
  readonly ok: boolean;
  /** What was found, one sentence a line, for people. */
  readonly lines: readonly string[];
}

/** The databases of a Redis with the default configuration. */
const DATABASES = 16;

const FIND = `
  local found = {}
  for index = 0, tonumber(ARGV[1]) - 1 do
    local selected = redis.pcall('SELECT', index)
    if type(selected) == 'table' and selected.err then break end
    found[#found + 1] = { index, redis.call('EXISTS', KEYS[1]), redis.call('TYPE', KEYS[2]).ok }
  end
  return found
`;

/**
 * Finds the databases in which a Redis holds the router's config and history (R30), so that the error about a wrong
 * index names the right one instead of saying "no config".
 *
 * @param url as a reader would use it; without an index it means database 1
 * @returns what was found; never throws, and never says user or password
 */
export async function diagnoseRedis(url: string, timeoutMs = 5_000): Promise<RedisDiagnosis> {
  const address = parseRedisUrl(url);
  const database = address?.database ?? CONFIG_DATABASE;
  const nothing = { database, configIn: [], historyIn: [], ok: false, reachable: false };
  if (!address) {
    const line = 'this is not the URL of a Redis: redis://[user:password@]host[:port]';
    return { ...nothing, url: '(not a Redis URL)', lines: [line] };
  }
  const client = await RedisClient.open({ url, name: 'holdfast-doctor', commandTimeoutMs: timeoutMs });
  try {
    if (!(await client.ready(timeoutMs))) {
      const line = `no answer from ${address.shown}: ${client.state().reason}`;
      return { ...nothing, url: address.shown, lines: [line] };
    }
    const found = (await client.run((redis) => redis.eval(FIND, 2, CONFIG_KEY, HISTORY_KEY, DATABASES))) as [
      index: number,
      config: number,
      history: string,
    ][];
    const configIn = found.filter(([, config]) => config === 1).map(([index]) => index);
    const historyIn = found.filter(([, , history]) => history !== 'none').map(([index]) => index);
    const historyType = found[HISTORY_DATABASE]?.[2] ?? 'none';
    const facts = { database, configIn, historyIn, historyType };
    return { url: address.shown, reachable: true, ...facts, ...assess(facts) };
  } catch (error) {
    if (!(error instanceof RedisFault)) throw error;
    return { ...nothing, url: address.shown, lines: [`${address.shown} answered: ${error.message}`] };
  } finally {
    client.close();
  }
}

interface Facts {
  readonly database: number;
  readonly configIn: readonly number[];
  readonly historyIn: readonly number[];
  readonly historyType: string;
}

function assess({ database, configIn, historyIn, historyType }: Facts): Pick<RedisDiagnosis, 'ok' | 'lines'> {
  const lines: string[] = [];
  const here = configIn.includes(database);
  if (here) lines.push(`${CONFIG_KEY}: key present in database ${database}`);
  else if (configIn.length > 0) {
    lines.push(
      `${CONFIG_KEY}: key absent in database ${database}, present in database ${configIn.join(', ')}`,
    );
  } else lines.push(`${CONFIG_KEY}: key absent in every database, so no router has stored a config here`);
  if (database !== CONFIG_DATABASE) {
    lines.push(`a router keeps its config in database ${CONFIG_DATABASE}: leave the index out of the URL`);
  }
  const atHome = historyIn.includes(HISTORY_DATABASE);
  if (atHome && historyType !== 'zset') {
    lines.push(`${HISTORY_KEY}: a ${historyType} in database ${HISTORY_DATABASE}, not a sorted set`);
  } else if (atHome) {
    lines.push(`${HISTORY_KEY}: key present in database ${HISTORY_DATABASE}`);
  } else if (historyIn.length > 0) {
    const where = `absent in database ${HISTORY_DATABASE}, present in database ${historyIn.join(', ')}`;
    lines.push(`${HISTORY_KEY}: key ${where}`);
  } else lines.push(`${HISTORY_KEY}: no write has been recorded yet`);
  const historyOk = historyIn.length === 0 || (atHome && historyType === 'zset');
  return { ok: here && database === CONFIG_DATABASE && historyOk, lines };
}

const PATIENCE_MS = 5_000;

/**
 * What `holdfast doctor router` checks in the Redis of a router: where the config is (R30), and who may read it.
 *
 * @param url as `HOLDFAST_REDIS_URL` gives it; its user and password are never shown
 */
export function redisChecks(url: string): readonly CheckDefinition[] {
  return [
    { name: 'router.store', run: () => storeCheck(url) },
    { name: 'router.keys', run: () => plaintextCheck(url) },
  ];
}

async function storeCheck(url: string): Promise<CheckResult> {
  const diagnosis = await diagnoseRedis(url, PATIENCE_MS);
  const { reachable, ok, configIn, database, lines } = diagnosis;
  const facts = { lookedAt: diagnosis.url, found: lines.join('; ') };
  if (ok) return { state: 'ok', ...facts };
  if (!reachable) {
    return {
      state: 'fail',
      ...facts,
      remedy: 'Check that Redis runs and that HOLDFAST_REDIS_URL points at it.',
    };
  }
  if (configIn.length > 0 || database !== CONFIG_DATABASE) {
    const remedy = `Read database ${CONFIG_DATABASE}: leave the index out of HOLDFAST_REDIS_URL, and give redis-cli \`-n ${CONFIG_DATABASE}\`.`;
    return { state: 'fail', ...facts, remedy };
  }
  return {
    state: 'warn',
    ...facts,
    remedy: 'Check that this is the Redis of the router, and not another one.',
  };
}

/** The two keys hold whole configs as plain text, by contract: what protects them is who may connect. */
async function plaintextCheck(url: string): Promise<CheckResult> {
  const lookedAt = maskRedisUrl(url);
  const what = `${CONFIG_KEY} and ${HISTORY_KEY} hold whole configs as plain text, secrets included, by contract`;
  if (parseRedisUrl(url)?.password !== undefined)
    return { state: 'ok', lookedAt, found: `${what}; a password is asked for` };
  const remedy =
    'Set a password (requirepass, or an ACL user) or keep Redis on loopback, and treat its dumps as secrets.';
  return { state: 'warn', lookedAt, found: `${what}; no password is in the URL`, remedy };
}

/**
 * One question to a Redis.
 *
 * @returns the answer, or why there is none
 */
export async function askRedis<T extends number | readonly unknown[]>(
  url: string,
  question: Parameters<typeof RedisClient.prototype.run<T>>[0],
): Promise<T | string> {
  const client = await RedisClient.open({ url, name: 'holdfast-doctor', commandTimeoutMs: PATIENCE_MS });
  try {
    if (!(await client.ready(PATIENCE_MS))) return client.state().reason ?? 'no answer';
    return await client.run(question);
  } catch (error) {
    if (error instanceof RedisFault) return error.message;
    throw error;
  } finally {
    client.close();
  }
}
