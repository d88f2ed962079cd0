import type { TestFn } from 'ava';
import { type NatsServers, type NatsWish, startNats } from './nats.ts';

/**
 * Servers of NATS for all tests of a file: a start takes longer than most of them.
 *
 * @param test of that file: they start before its first test, and stop after its last
 * @returns the servers, for a test that runs
 */
export function natsOfFile(test: TestFn, wish?: NatsWish): () => NatsServers {
  let servers: NatsServers | undefined;
  const ends: (() => unknown)[] = [];
  test.before(async (t) => {
    t.timeout(300_000);
    servers = await startNats({ teardown: (end) => ends.unshift(end), log: () => {} }, wish);
  });
  test.after.always(async () => {
    for (const end of ends) await end();
  });
  return () => {
    if (!servers) throw new Error('the servers of NATS have not started');
    return servers;
  };
}
