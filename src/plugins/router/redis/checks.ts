import type { CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { RedisClient, RedisFault } from '../../../core/host/redis/client.ts';
import { maskRedisUrl, parseRedisUrl } from '../../../core/host/redis/url.ts';
import { diagnoseRedis } from './diagnose.ts';
import { CONFIG_DATABASE, CONFIG_KEY, HISTORY_KEY, PENDING_KEY } from './places.ts';

const PATIENCE_MS = 5_000;

/**
 * What `holdfast doctor router` looks at in the Redis of a router: where the config is (R30), and who may read it.
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

/** A pending transaction of a daemon, which its API does not tell: every plain write is refused meanwhile. */
export async function transactionCheck(url: string): Promise<CheckResult> {
  const lookedAt = `${maskRedisUrl(url)}, key ${PENDING_KEY}`;
  const exists = await askRedis(url, async (redis) => {
    await redis.select(CONFIG_DATABASE);
    return redis.exists(PENDING_KEY);
  });
  if (typeof exists === 'string') {
    return { state: 'warn', lookedAt, found: `it cannot be seen: ${exists}`, remedy: 'See router.store.' };
  }
  if (exists === 0) return { state: 'ok', lookedAt, found: 'no transaction is pending' };
  const remedy =
    'Commit or revert it, or wait: an uncommitted one reverts after 120 s, and legs wait until then.';
  return { state: 'warn', lookedAt, found: 'a transaction is pending, so plain writes are refused', remedy };
}

/**
 * One question to a Redis.
 *
 * @returns the answer, or why there is none
 */
export async function askRedis<T extends number>(
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
