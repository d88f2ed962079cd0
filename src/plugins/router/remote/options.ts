import { z } from 'zod';
import { insecureOption, refusePlaintext } from '../../../core/host/http/plaintext.ts';
import { parseRedisUrl } from '../../../core/host/redis/url.ts';
import { raSources } from '../ra-sources.ts';

function isHttp(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.hostname !== '';
}

const routerUrl = z
  .string({
    error: ({ input }) =>
      input === undefined
        ? 'it is required: set HOLDFAST_ROUTER_URL, e.g. http://192.168.1.1:8837'
        : undefined,
  })
  .refine(isHttp, 'it must be the base of the router API, e.g. http://192.168.1.1:8837')
  .refine((text) => !URL.canParse(text) || !/[@?#]/.test(text), 'it must hold no user, query or fragment');

const redisUrl = z
  .string()
  .refine(
    (text) => parseRedisUrl(text) !== undefined,
    'it must be the URL of a Redis, e.g. redis://192.168.1.1:6379',
  );

/** Times are milliseconds, sizes bytes. */
const fields = z.strictObject({
  /** Base of the router's API. */
  url: routerUrl,
  /** File (mode 0600) with a bearer token, read at each call; a router on loopback and a real daemon require none. */
  tokenFile: z.string().min(1).optional(),
  /** The token may go to another machine over `http://`. */
  insecure: insecureOption,
  /** The Redis that the router publishes on. Without it a save is found by the next reading only (`lookMs`). */
  redisUrl: redisUrl.optional(),
  /** Prefix of the channels, e.g. of `iface_change_applied`; `firerouter.` on some daemons. */
  channelPrefix: z
    .string()
    .regex(/^[\w.:-]*$/, 'it may hold letters, digits, and . : _ -')
    .default('router.'),
  /** Timeout of a read. */
  readTimeoutMs: z.int().min(100).max(120_000).default(15_000),
  /** Until the outcome of a write is unknown. An apply takes eight seconds and more, so keep it well over 60,000. */
  writeTimeoutMs: z.int().min(100).max(600_000).default(85_000),
  /** Largest answer that is read. */
  answerLimit: z
    .int()
    .min(1_024)
    .default(8 * 1024 * 1024),
  /** Between two pings of Redis: a broken network path is not noticed otherwise. */
  pingMs: z.int().min(100).default(15_000),
  /**
   * Between two readings of the config that find what no event said: a restarted daemon, a save during a lost
   * subscription.
   */
  lookMs: z.int().min(100).max(86_400_000).default(10_000),
  /** Between two readings while the API gives no usable answer. */
  probeMs: z.int().min(50).max(60_000).default(3_000),
  /** Time without a subscription, or without a usable answer of the API, after which an alert is raised. */
  alertAfterMs: z.int().min(100).default(60_000),
  /** It runs on this machine, so `doctor router` reads its address sets, chains, files and DHCP service, too. */
  ownHost: z.boolean().default(false),
  /** With `ownHost`: the network namespace (`ip netns`) that it works in. */
  namespace: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/)
    .optional(),
  /** With `ownHost`: the folder with its generated `<intf>_v6.conf`. */
  dhcpConfDir: z.string().min(1).optional(),
  /** Others that announce prefixes on the legs, for `holdfast router ra`. */
  raSources,
});

export const routerRemoteOptions = fields.superRefine(({ url, insecure, tokenFile }, context) => {
  if (tokenFile !== undefined) refusePlaintext(context, { url, insecure, credential: 'the token' });
});

export type RouterRemoteOptions = z.output<typeof routerRemoteOptions>;
