/** The rotation of the ingest key as an actor of the log: its topics and its routes. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { keyRotation } from '../../../machines/collector/key-rotation.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import { describeRotationRecord } from '../words.ts';

/** Of several hosts one rotates the key. */
export const ROTATION = { singleton: 'rotation' } as const;

/** Its only actor has the key `INGEST_KEY_NAME`. */
export const rotationActor = defineActor({
  type: 'collector.key_rotation',
  machine: keyRotation,
  version: 2,
  describe: describeRotationRecord,
});

export const configRead = defineTopic(
  'collector.config_read',
  z.object({ at: z.number(), fingerprint: z.string().exactOptional() }),
  "The collector's effective config was read and names another ingest key, by its fingerprint.",
);

export const producerMoved = defineTopic(
  'collector.producer_moved',
  z.object({ at: z.number(), producer: z.string() }),
  'A producer is seen with the new ingest key for the first time, while a rotation waits for that.',
);

export function registerRotationActor<S>(context: PluginContext<S>): void {
  context.actor(rotationActor, ROTATION);
  context.route(
    configRead,
    rotationActor,
    ({ payload }) => [{ key: INGEST_KEY_NAME, event: { type: 'CONFIG_READ', ...payload } }],
    { ownHost: true }, // every host reads the keys by itself
  );
  context.route(producerMoved, rotationActor, ({ payload }) => [
    { key: INGEST_KEY_NAME, event: { type: 'MOVED', ...payload } },
  ]);
}
