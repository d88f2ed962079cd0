/**
 * The actor `router.observed_config/default`, which decides what the configs of a router elsewhere show, and what it is sent.
 * `remote/config-watch.ts` sends it. It stands here because the embedded router declares the actor, too: a log of either is
 * read without a configuration.
 */
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { observedConfig } from '../../machines/router/observed-config.ts';
import { describeObservedRecord } from './words.ts';

export const observedActor = defineActor({
  type: 'router.observed_config',
  machine: observedConfig,
  version: 1,
  describe: describeObservedRecord,
});
export const OBSERVED_KEY = 'default';

export const configSeen = defineTopic(
  'router.config_seen',
  z.object({
    ncid: z.string(),
    fingerprint: z.string(),
    request: z.string().exactOptional(),
    heldMs: z.number(),
  }),
  'A router elsewhere serves another config than before.',
);

export const writeFound = defineTopic(
  'router.write_found',
  z.object({
    ncid: z.string(),
    posted: z.string().exactOptional(),
    ignoreNcid: z.literal(true).exactOptional(),
  }),
  'The history of a router elsewhere holds the write that made its config.',
);

/** Registers the actor and its routes. */
export function registerObservedConfig<S>(context: PluginContext<S>): void {
  context.actor(observedActor);
  const own = { ownHost: true } as const; // every host sees the same router
  context.route(
    configSeen,
    observedActor,
    ({ payload }) => [{ key: OBSERVED_KEY, event: { type: 'SEEN', ...payload } }],
    own,
  );
  context.route(
    writeFound,
    observedActor,
    ({ payload }) => [{ key: OBSERVED_KEY, event: { type: 'WRITTEN', ...payload } }],
    own,
  );
}
