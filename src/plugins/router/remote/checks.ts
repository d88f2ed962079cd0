import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { maskRedisUrl } from '../../../core/host/redis/url.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { countSecrets } from '../config/secrets.ts';
import { hostChecks } from '../host/checks.ts';
import { askRedis, redisChecks } from '../redis.ts';
import { channelNames } from './events.ts';
import type { RouterRemoteOptions } from './options.ts';
import { RemoteRouter, routerClient } from './remote-router.ts';
import { transactionCheck } from './transaction-check.ts';

const READ_MS = 10_000;

/** What `holdfast doctor router` checks where the router is elsewhere. */
export function remoteChecks(
  options: RouterRemoteOptions,
  token: () => string | undefined,
): CheckDefinition[] {
  const { redisUrl } = options;
  return [
    { name: 'router.api', run: ({ signal }) => apiCheck(options, token, signal) },
    { name: 'router.events', run: (context) => eventsCheck(options, context) },
    ...(redisUrl === undefined ? [] : redisChecks(redisUrl)),
    {
      name: 'router.transaction',
      run: ({ signal }) => remoteTransaction(options, token, signal),
    },
    ...ownHostChecks(options, token),
  ];
}

/** Whether a transaction is pending on the router, as far as its Redis and its API say. */
export function remoteTransaction(
  options: RouterRemoteOptions,
  token: () => string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  return transactionCheck(options.redisUrl, () => readActive(options, token, signal));
}

function ownHostChecks(options: RouterRemoteOptions, token: () => string | undefined): CheckDefinition[] {
  const { ownHost, namespace, dhcpConfDir } = options;
  if (!ownHost) {
    const found = 'they are not looked at: the option `ownHost` is not set';
    const remedy = 'Set it where this runs on the router itself.';
    const lookedAt = "the host's address sets, chains, files and DHCP service";
    return [{ name: 'router.host', run: () => ({ state: 'unknown', lookedAt, found, remedy }) }];
  }
  return hostChecks({
    namespace,
    config: ({ signal }) => readActive(options, token, signal),
    confDir: () => dhcpConfDir,
    generatesFiles: false,
    hasChains: true,
  });
}

/** @throws HF_ROUTER_UNREACHABLE, HF_CONFIG_SECRET_* */
async function readActive(
  { url, answerLimit, insecure }: RouterRemoteOptions,
  token: () => string | undefined,
  signal: AbortSignal,
): Promise<NetworkConfig> {
  const http = routerClient(url, { answerLimit, insecure, clock: systemClock });
  const times = { readTimeoutMs: READ_MS, writeTimeoutMs: READ_MS };
  const api = new RemoteRouter({ url, http, token, ...times, onCall: () => {} });
  try {
    return await api.active(signal);
  } finally {
    await http.close();
  }
}

async function apiCheck(
  options: RouterRemoteOptions,
  token: () => string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  const began = performance.now();
  const lookedAt = `${options.url.replace(/\/*$/, '')}/v1/config/active`;
  try {
    const config = await readActive(options, token, signal);
    const ms = Math.round(performance.now() - began);
    if (typeof config.ncid !== 'string' || !isObject(config.interface)) {
      const found = 'it answers JSON that is no network config: it has no ncid, or no interface';
      return {
        state: 'fail',
        lookedAt,
        found,
        remedy: 'Point HOLDFAST_ROUTER_URL at the router API (port 8837).',
      };
    }
    const interfaces = Object.values(config.interface).reduce<number>(
      (count, kind) => count + (isObject(kind) ? Object.keys(kind).length : 0),
      0,
    );
    const { count } = countSecrets(config);
    const found = `it answers in ${ms} ms: ncid ${config.ncid.slice(0, 8)}…, ${interfaces} interfaces, ${count} secrets`;
    return { state: 'ok', lookedAt, found };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { state: 'fail', lookedAt, found: error.what, remedy: error.remedy };
  }
}

/** @param lookMs between two readings of the config, milliseconds @returns what follows when the router's events are not received */
export function withoutEvents(lookMs: number): string {
  return `no HOLDFAST_REDIS_URL is set: a save is found by a reading of the config (every ${lookMs / 1_000} s), not by its event`;
}

async function eventsCheck(
  { redisUrl, channelPrefix, lookMs }: RouterRemoteOptions,
  { running }: CheckContext,
): Promise<CheckResult> {
  if (redisUrl === undefined) {
    const found = withoutEvents(lookMs);
    const remedy = 'Set HOLDFAST_REDIS_URL to the Redis that the router publishes on.';
    return { state: 'warn', lookedAt: "the router's channels", found, remedy };
  }
  const channels = channelNames(channelPrefix);
  const lookedAt = `${maskRedisUrl(redisUrl)}, channels ${channelPrefix}*`;
  // The runtime subscribes too, and an ACL may forbid exactly this.
  const acknowledged = await askRedis(redisUrl, async (redis) => Number(await redis.subscribe(...channels)));
  if (typeof acknowledged === 'string') {
    const remedy =
      'Check that Redis runs, that HOLDFAST_REDIS_URL points at it, and that its user may subscribe.';
    return { state: 'fail', lookedAt, found: `no subscription: ${acknowledged}`, remedy };
  }
  const fact = isObject(running?.facts.router) ? running.facts.router.events : undefined;
  if (!isObject(fact)) return { state: 'ok', lookedAt, found: 'Redis acknowledges a subscription' };
  if (fact.subscribed !== true) {
    const found = `Redis acknowledges a subscription, and that of the running instance is lost: ${String(fact.fault)}`;
    return {
      state: 'fail',
      lookedAt,
      found,
      remedy: 'It tries again by itself; see router.events_lost in its log.',
    };
  }
  const received = Number(fact.received);
  if (received === 0) {
    const hint = `after a save that it did not notice, try another HOLDFAST_ROUTER_CHANNEL_PREFIX`;
    const found = `the running instance is subscribed since ${String(fact.since)}, nothing received yet (${hint})`;
    return { state: 'ok', lookedAt, found };
  }
  const found = `the running instance is subscribed since ${String(fact.since)}, received ${received}, last ${String(fact.lastAt)}`;
  return { state: 'ok', lookedAt, found };
}
