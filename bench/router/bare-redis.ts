import type { Redis } from 'ioredis';
import type { Config } from './rig.ts';

/** The optimistic lock and nothing else: no history to trim, no check of types, no fingerprints. */
const SAVE = `
  local current = redis.call('GET', KEYS[1])
  if current and cjson.decode(current).ncid ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[2])
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
  redis.call('PUBLISH', 'bench.change_applied', '')
  return 1
`;

/** The same writes straight to Redis: the config, its place in a history, and the event. */
export class BareRedis {
  readonly #client: Redis;
  #writes = 0;

  constructor(client: Redis) {
    this.#client = client;
  }

  async active(): Promise<Config> {
    return JSON.parse((await this.#client.get('bench:config')) ?? '{}');
  }

  /** @returns whether nobody else was faster */
  async set(config: Config): Promise<boolean> {
    const seconds = String(Math.floor(Date.now() / 1_000));
    this.#writes += 1;
    const next = JSON.stringify({
      ...config,
      ncid: `${this.#writes}-${Math.trunc(performance.now() * 1_000)}`,
    });
    const keys = ['bench:config', 'bench:history'] as const;
    return (await this.#client.eval(SAVE, keys.length, ...keys, config.ncid ?? '', next, seconds)) === 1;
  }
}
