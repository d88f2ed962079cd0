/**
 * The console plugin: one HTTP surface (7800) with the health of the runtime, its metrics and an index, and the
 * actor that remembers how each run of this data folder ended. Imported by `plugins.config.ts` only.
 */
import { z } from 'zod';
import { defineRoute } from '../../bus/index.ts';
import { defineActor } from '../../core/actors/index.ts';
import { parseActorRef } from '../../core/ids.ts';
import { definePlugin } from '../../core/plugin/index.ts';
import { checkpointSaved } from '../../core/runtime/checkpoints.ts';
import { readTokenFile } from '../../core/secrets/index.ts';
import { version } from '../../core/version.ts';
import { type LifecycleContext, lifecycle } from '../../machines/lifecycle.ts';
import { describeLifecycle } from './describe.ts';
import { HOST, healthRoutes } from './routes.ts';

const { type, key } = parseActorRef(HOST);

/**
 * Health, readiness, metrics and the life of the process (C14, R29, R40; DESIGN: surfaces and ports).
 *
 * @example consolePlugin({ port: 7800 })
 */
export const consolePlugin = definePlugin({
  name: 'console',
  options: z.strictObject({
    port: z.int().min(0).max(65_535).default(7800),
    host: z.string().default('127.0.0.1'),
    /** Names besides loopback ones under which browsers and scrapers may call it. */
    allowedHosts: z.array(z.string()).default([]),
    /** File of mode 0600 with the bearer token; needed as soon as `host` is not loopback. */
    tokenFile: z.string().optional(),
  }),
  env: { HOLDFAST_CONSOLE_PORT: 'port' },

  register(context, { port, host, allowedHosts, tokenFile }) {
    context.actor(defineActor({ type, machine: lifecycle, version: 1, describe: describeLifecycle }));

    context.route(
      defineRoute(checkpointSaved, type, ({ payload }) => [
        { key, event: { type: 'CHECKPOINT', ...payload } },
      ]),
    );

    context.onStart(() => {
      const { actors, clock, logger } = context.services;
      const startedAt = clock.now();
      actors.send(HOST, { type: 'BOOTED', pid: process.pid, startedAt, version });
      const { last } = (actors.snapshot(HOST)?.context ?? {}) as Partial<LifecycleContext>;
      logger.info({ startedAt, version, lastStop: last }, 'runtime.booted'); // every line bears the pid
    });

    context.onStop((reason) => {
      const { actors, clock, logger } = context.services;
      actors.send(HOST, { type: 'STOPPING', reason, stoppedAt: clock.now() });
      logger.info({ reason }, 'runtime.stopping');
    });

    context.http(
      {
        name: 'console',
        port,
        host,
        portVariable: 'HOLDFAST_CONSOLE_PORT',
        allowedHosts,
        ...(tokenFile !== undefined && { token: () => readTokenFile(tokenFile) }),
      },
      (http) => healthRoutes(http, () => context.services),
    );
  },
});
