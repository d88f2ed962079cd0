/**
 * The console plugin: one HTTP surface (7800) with the health of the runtime, how its last run ended, its metrics and
 * an index. It decides nothing and has no actor. Imported by `plugins.config.ts` only.
 */
import { z } from 'zod';
import { listeningOf, listenOptions } from '../../core/host/http/listen-options.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { healthRoutes } from './health.ts';

/**
 * Health, readiness, metrics and the life of the process (C14, R29, R40).
 *
 * @example consolePlugin({ port: 7800 })
 * @public
 */
export const consolePlugin = definePlugin({
  name: 'console',
  about: {
    area: 'Runtime',
    what: 'health, readiness and metrics of the process',
    docs: 'health.md',
  },
  options: z.strictObject(listenOptions(7800)),
  env: { HOLDFAST_CONSOLE_PORT: 'port' },
  variables: {
    HOLDFAST_CONSOLE_PORT: 'Port of health, readiness and metrics.',
  },

  register(context, options) {
    const portVariable = 'HOLDFAST_CONSOLE_PORT';
    context.http({ name: 'console', portVariable, readOnly: true, ...listeningOf(options) }, healthRoutes);
  },
});
