import { randomBytes } from 'node:crypto';
import { createLogger, type Logger } from '../../src/core/host/logging/logger.ts';
import { type Clock, systemClock } from '../../src/core/kernel/clock.ts';
import { ClusterKey } from '../../src/plugins/cluster/keys.ts';
import type { DialOptions } from '../../src/plugins/cluster/nats/dial.ts';
import { NatsLink } from '../../src/plugins/cluster/nats/link.ts';
import type { StreamSettings } from '../../src/plugins/cluster/nats/stream-settings.ts';
import type { Scope } from './scope.ts';
import { PATIENCE_MS } from './until.ts';

/** The key of clusters of tests. */
export const clusterKey = new ClusterKey(Buffer.alloc(32, 'the key of a cluster of tests'));

/** A key that is not that of the cluster. */
export const strangersKey = (): ClusterKey => new ClusterKey(randomBytes(32));

export const silent: Logger = createLogger({ level: 'silent' });

export interface LinkWish extends Partial<DialOptions> {
  readonly key?: ClusterKey;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** Returns before there is a connection. */
  readonly isAlone?: boolean;
}

/** A connection of a test to NATS, up unless it `isAlone`; closed when the test ends. */
export async function openLink(
  t: Scope,
  servers: string | readonly string[],
  wish: LinkWish = {},
): Promise<NatsLink> {
  const { key = clusterKey, logger = silent, clock = systemClock, isAlone = false, ...options } = wish;
  const link = await NatsLink.open(
    {
      servers: [servers].flat().join(','),
      name: 'tests',
      host: 'one',
      credentialsFile: undefined,
      tls: {},
      ...options,
    },
    { clock, logger, key },
  );
  t.teardown(() => link.close());
  if (!isAlone && !(await link.ready(PATIENCE_MS))) throw new Error(`no connection: ${link.problem}`);
  return link;
}

let streams = 0;

/** Settings of a stream of its own. */
export function streamSettings(wish: Partial<StreamSettings> = {}): StreamSettings {
  streams += 1;
  const name = `HF_tests_${process.pid}_${streams}`;
  const subjects = [`hf.tests.${process.pid}.${streams}`];
  return { name, subjects, maxBytes: 64 * 1024 * 1024, ...wish };
}
