/**
 * The console plugin: one HTTP surface (7800) with the health of the runtime, how its last run ended, its metrics and
 * an index. It decides nothing and has no actor. Imported by `plugins.config.ts` only.
 */
import { z } from 'zod';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { healthRoutes } from './health.ts';

/**
 * Health, readiness, metrics and the life of the process (C14, R29, R40).
 *
 * @example consolePlugin({ port: 7800 })
 */
export const consolePlugin = definePlugin({
  name: 'console',
  about: {
    area: 'Runtime',
    what: 'health, readiness and metrics of the process',
    docs: 'health.md',
  },
  options: z.strictObject({
    port: z.int().min(0).max(65_535).default(7800),
    host: z.string().default('127.0.0.1'),
    /** Names besides loopback ones under which browsers and scrapers may call it. */
    allowedHosts: z.array(z.string()).default([]),
    /** File of mode 0600 with the bearer token; needed as soon as `host` is not loopback. */
    tokenFile: z.string().optional(),
  }),
  env: { HOLDFAST_CONSOLE_PORT: 'port' },
  variables: {
    HOLDFAST_CONSOLE_PORT: 'Port of health, readiness and metrics.',
  },

  register(context, { port, host, allowedHosts, tokenFile }) {
    context.http(
      {
        name: 'console',
        port,
        host,
        portVariable: 'HOLDFAST_CONSOLE_PORT',
        allowedHosts,
        ...(tokenFile !== undefined && { token: () => readTokenFile(tokenFile) }),
      },
      healthRoutes,
    );
  },
});
