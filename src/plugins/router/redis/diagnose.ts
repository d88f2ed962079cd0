import { RedisClient, RedisFault } from '../../../core/host/redis/client.ts';
import { parseRedisUrl } from '../../../core/host/redis/url.ts';
import { CONFIG_DATABASE, CONFIG_KEY, HISTORY_DATABASE, HISTORY_KEY } from './places.ts';

export interface RedisDiagnosis {
  /** The URL without its secrets. */
  readonly url: string;
  readonly reachable: boolean;
  /** The index that a reader of this URL looks into. */
  readonly database: number;
  /** Indices that hold the config, among those that were looked into. */
  readonly configIn: readonly number[];
  readonly historyIn: readonly number[];
  /** Whether everything is where the documents say. */
  readonly ok: boolean;
  /** What was found, one sentence a line, for people. */
  readonly lines: readonly string[];
}

/** Redis has 16 databases unless it is told otherwise. */
const DATABASES = 16;

const LOOK = `
  local found = {}
  for index = 0, tonumber(ARGV[1]) - 1 do
    local selected = redis.pcall('SELECT', index)
    if type(selected) == 'table' and selected.err then break end
    found[#found + 1] = { index, redis.call('EXISTS', KEYS[1]), redis.call('TYPE', KEYS[2]).ok }
  end
  return found
`;

/**
 * Looks where a Redis holds the router's config and history (R30): a reader that is pointed at the wrong index is told
 * so, instead of "no config".
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
    const found = (await client.run((redis) => redis.eval(LOOK, 2, CONFIG_KEY, HISTORY_KEY, DATABASES))) as [
      index: number,
      config: number,
      history: string,
    ][];
    const configIn = found.filter(([, config]) => config === 1).map(([index]) => index);
    const historyIn = found.filter(([, , history]) => history !== 'none').map(([index]) => index);
    const historyType = found[HISTORY_DATABASE]?.[2] ?? 'none';
    const facts = { database, configIn, historyIn, historyType };
    return { url: address.shown, reachable: true, ...facts, ...judge(facts) };
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

function judge({ database, configIn, historyIn, historyType }: Facts): Pick<RedisDiagnosis, 'ok' | 'lines'> {
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
