import { z } from 'zod';
import { listenOptions } from '../../../core/host/http/listen-options.ts';
import { parseRedisUrl } from '../../../core/host/redis/url.ts';
import { raSources } from '../ra-sources.ts';

/** Options about the kernel and the daemons' files. */
const kernelOptions = {
  /**
   * `memory`: a model of a kernel, which touches nothing. `linux`: the network of this machine, through iproute2; needs
   * the rights to change it.
   */
  kernel: z.enum(['memory', 'linux']).default('memory'),
  /** A network namespace (`ip netns`) that `linux` works in instead of this process's own. */
  namespace: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/)
    .optional(),
  /** Folder for the files of the DHCP and DNS daemons; a relative path starts at the data folder. */
  generatedDir: z.string().min(1).default('router'),
  /** Runs a dnsmasq that serves DHCP and sends router advertisements as those files say; with `linux` unless set to false. */
  dnsmasq: z.boolean().optional(),
  /** From the last rewrite of a DHCP file to the restart of the service. */
  dhcpRestartMs: z.int().min(10).default(22_000),
  /**
   * The tool that fills the packet filter's address sets; with `linux` and unless set, the first of the two that is
   * installed. `none`: they are a model that `router explain` reads.
   */
  packetFilter: z.enum(['nft', 'ipset', 'none']).optional(),
  /** From a change of addresses until the packet filter's sets follow; with `ipset` also between two looks at what others did to them. */
  addressSetsMs: z.int().min(10).max(60_000).default(45_000),
};

/** Where the config is kept in Redis; without `redisUrl` it is kept in the data folder. */
const redisOptions = {
  /** A secret if it contains a password; then set it with the variable HOLDFAST_REDIS_URL. */
  redisUrl: z
    .string()
    .refine((url) => parseRedisUrl(url) !== undefined, 'redis://[user:password@]host[:port] is wanted')
    .optional(),
  /** What the names of the channels on Redis begin with; a real daemon's begin with `firerouter.`. */
  channelPrefix: z.string().min(1).max(64).default('router.'),
  /** Between two readings of Redis that find out whether another program wrote the config. */
  storeCheckMs: z.int().min(10).default(5_000),
  /** Timeout of a command to Redis. */
  redisTimeoutMs: z.int().min(50).default(5_000),
};

/** Options of the embedded router. Times are milliseconds unless they say otherwise. */
export const routerOptions = z.strictObject({
  // Each write is a whole config in the log.
  ...listenOptions(8837, { burst: 600, perSecond: 5 }),
  /**
   * Whether reads whose answer holds the config's secrets (`/v1/config/active`, `wans`, `lans`, `interfaces`) need the token or
   * the socket even where nothing else does.
   */
  secretsNeedToken: z.boolean().default(false),
  /** Largest posted config, bytes. */
  bodyLimit: z
    .int()
    .min(1_024)
    .default(1024 * 1024),
  /** Until an uncommitted transaction reverts. */
  windowMs: z.int().min(100).default(120_000),
  /** Time between two attempts of a revert that fails. */
  retryMs: z.int().min(10).default(10_000),
  /** Writes that may wait behind the one being applied. */
  queueLimit: z.int().min(1).max(10_000).default(64),
  /** How long a request waits for its decision; then the answer is that the result is unknown. */
  replyTimeoutMs: z.int().min(100).default(180_000),
  /** Accepted writes that the history keeps. */
  historyLimit: z.int().min(1).default(500),
  ...kernelOptions,
  ...redisOptions,
  /** Others that announce prefixes on the legs, for `holdfast router ra`. */
  raSources,
});

export type RouterOptions = z.output<typeof routerOptions>;
