/** The rotation of the ingest key as an actor of the log: its topics, its routes, and its records in words. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { DEFAULT_WORDS, defineActor, HIDDEN } from '../../../core/kernel/actors/definition.ts';
import { keyRotation } from '../../../machines/collector/key-rotation.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';

/** Its only actor has the key `INGEST_KEY_NAME`. */
export const rotationActor = defineActor({
  type: 'collector.key_rotation',
  machine: keyRotation,
  version: 1,
  describe({ event, to, ignored }) {
    if (ignored) return event.type === 'CONFIG_READ' ? HIDDEN : DEFAULT_WORDS;
    const state = String(to?.value ?? '');
    switch (event.type) {
      case 'ROTATE':
        return state === 'regenerating' ? `a rotation begins, ${event.maker}` : 'refused';
      case 'SIGHTINGS_READ':
        return state.endsWith('Pause') ? HIDDEN : `sightings of producers read, ${state}`;
      case 'CONFIG_READ':
        return state === 'storing' ? 'the new key is adopted' : 'the config still names the old key';
      case 'STORED':
        return `stored in ${event.place}`;
      case 'BY_HAND':
        return 'a person must do this step';
      case 'EXTERNAL_DONE':
        return 'a person says that the external producers are updated';
      case 'RESUME':
        return 'a person resumes it';
      case 'MOVED':
        return `${event.producer} uses the new key`;
      default:
        // A pause is over.
        return state === 'refreshing' || state === 'external' ? HIDDEN : DEFAULT_WORDS;
    }
  },
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
  context.actor(rotationActor);
  context.route(configRead, rotationActor, ({ payload }) => [
    { key: INGEST_KEY_NAME, event: { type: 'CONFIG_READ', ...payload } },
  ]);
  context.route(producerMoved, rotationActor, ({ payload }) => [
    { key: INGEST_KEY_NAME, event: { type: 'MOVED', ...payload } },
  ]);
}
