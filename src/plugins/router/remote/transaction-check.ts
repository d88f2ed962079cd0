import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { maskRedisUrl } from '../../../core/host/redis/url.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, jsonEqual } from '../../../core/kernel/json.ts';
import { withoutControlFields } from '../config/network-config.ts';
import { askRedis, CONFIG_DATABASE, CONFIG_KEY, PENDING_KEY } from '../redis.ts';

/** Until an uncommitted transaction reverts. */
const WINDOW_MS = 120_000;

/** The last 13 digits of an ncid are the epoch milliseconds at which the router made it. */
const MADE_AT = /\d{13}$/;

/** What a router's Redis and its API say about a transaction. */
export interface TransactionFacts {
  /** What `sysdb:networkConfig` holds; undefined when it is absent, or no config. */
  readonly persisted: NetworkConfig | undefined;
  /** The text of `sysdb:transaction:networkConfig`; null when there is none. */
  readonly pending: string | null;
  /** What the API serves, or why that is not known. */
  readonly served: NetworkConfig | { readonly fault: string };
}

type Judgement = Pick<CheckResult, 'state' | 'found' | 'remedy'>;

const WAIT =
  'Commit or revert it, or wait: an uncommitted one reverts after 120 s, and legs wait until then.';

/**
 * Whether a transaction is pending. A daemon never deletes the key of the last one, so that the key alone proves nothing:
 * while one is pending, the API serves its config, and the persisted key holds the one before it.
 *
 * @param now epoch milliseconds
 */
export function judgeTransaction({ persisted, pending, served }: TransactionFacts, now: number): Judgement {
  if (pending === null) return { state: 'ok', found: 'no transaction is pending' };
  const config = configOf(pending);
  if (config && persisted && jsonEqual(config, persisted))
    return { state: 'ok', found: 'no transaction is pending: the last one was committed' };
  const age = ageOf(config, now);
  const [left, when] =
    age === undefined ? [0, 'at an unknown time'] : [WINDOW_MS - age, `${seconds(age)} ago`];
  if ('fault' in served) {
    const remedy = 'See router.api.';
    const why = `the API cannot be asked (${String(served.fault)})`;
    if (left > 0) {
      const found = `a transaction was opened ${when}, and may be pending for ${seconds(left)}: ${why}`;
      return { state: 'warn', found, remedy };
    }
    const found = `a transaction was opened ${when} and not committed; whether it was reverted is unknown: ${why}`;
    return { state: 'unknown', found, remedy };
  }
  const inForce = withoutControlFields(served);
  if (config && jsonEqual(inForce, config)) {
    if (left > 0) {
      const found = `a transaction is pending since ${when}, ${seconds(left)} left, so plain writes are refused`;
      return { state: 'warn', found, remedy: WAIT };
    }
    const found = `a transaction was opened ${when} by the router's clock, and its config is still served and not persisted`;
    const remedy = `Commit or revert it. If nobody can, restart the router's daemon: it then serves what is persisted.`;
    return { state: 'fail', found, remedy };
  }
  if (persisted && jsonEqual(inForce, persisted))
    return {
      state: 'ok',
      found: 'no transaction is pending: the last one was reverted, or replaced by a later save',
    };
  const found = 'the API serves neither the persisted config nor that of the last transaction';
  return { state: 'unknown', found, remedy: 'Somebody may just have saved: look again in a moment.' };
}

function configOf(text: string | null): NetworkConfig | undefined {
  try {
    const config: unknown = JSON.parse(text ?? '');
    return isObject(config) ? withoutControlFields(config) : undefined;
  } catch {
    return undefined;
  }
}

/** Milliseconds since the router made the config's ncid; a clock ahead of ours counts as now. */
function ageOf(config: NetworkConfig | undefined, now: number): number | undefined {
  const [madeAt] = MADE_AT.exec(String(config?.ncid ?? '')) ?? [];
  return madeAt === undefined ? undefined : Math.max(0, now - Number(madeAt));
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}

function faultOf(error: unknown): { fault: string } {
  if (isCoded(error)) return { fault: error.what };
  throw error;
}

/**
 * Reads both and judges them.
 *
 * @param active reads the config that the API serves
 */
export async function transactionCheck(
  redisUrl: string | undefined,
  active: () => Promise<NetworkConfig>,
  now: () => number = Date.now,
): Promise<CheckResult> {
  if (redisUrl === undefined) {
    const found = 'no HOLDFAST_REDIS_URL is set, and the API does not say whether a transaction is pending';
    const remedy = "Set HOLDFAST_REDIS_URL to the router's Redis.";
    return { state: 'unknown', lookedAt: 'the transaction of the router', found, remedy };
  }
  const lookedAt = `${maskRedisUrl(redisUrl)}, key ${PENDING_KEY}, and /v1/config/active`;
  const answer = await askRedis(redisUrl, async (redis) => {
    await redis.select(CONFIG_DATABASE);
    return redis.mget(CONFIG_KEY, PENDING_KEY);
  });
  if (typeof answer === 'string') {
    return { state: 'unknown', lookedAt, found: `it cannot be read: ${answer}`, remedy: 'See router.store.' };
  }
  const [persisted = null, pending = null] = answer;
  const served = pending === null ? {} : await active().catch(faultOf);
  return { lookedAt, ...judgeTransaction({ persisted: configOf(persisted), pending, served }, now()) };
}
