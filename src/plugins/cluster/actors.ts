import { defineActor } from '../../core/kernel/actors/definition.ts';
import { host } from '../../machines/cluster/host.ts';
import { singleton } from '../../machines/cluster/singleton.ts';
import { describeHostRecord, describeSingletonRecord } from './words.ts';

/** Its key is the singleton's name. Each host has its own. */
export const singletonActor = defineActor({
  type: 'cluster.singleton',
  machine: singleton,
  version: 1,
  describe: describeSingletonRecord,
  input: (key) => ({ singleton: key }),
});

/** Its key is the host's name: the others as this host sees them, and this one. */
export const hostActor = defineActor({
  type: 'cluster.host',
  machine: host,
  version: 1,
  describe: describeHostRecord,
  input: (key) => ({ host: key }),
});
