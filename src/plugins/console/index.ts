/**
 * The console plugin: one HTTP surface (7800) with the health of the runtime, its metrics, and the console: a JSON API over
 * the log and the pages that draw it, for whoever is logged in. Imported by `plugins.config.ts` only.
 */
import { z } from 'zod';
import { consoleActions, consolePages } from '../../core/contracts/console.ts';
import { liveSource } from '../../core/host/history/live-source.ts';
import { listeningOf, listenOptions } from '../../core/host/http/listen-options.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import type { AccessEvent } from '../../machines/console/access.ts';
import { Access } from './access/access.ts';
import { ACCESS_KEY, accessActor } from './access/actor.ts';
import { consoleCommand } from './access/command.ts';
import { loginRoutes, serveCodes } from './access/routes.ts';
import { apiRoutes } from './api/serve.ts';
import { ConsoleError, errorBody } from './errors.ts';
import { healthRoutes } from './health.ts';
import { standaloneCommands } from './standalone.ts';
import { pageRoutes } from './static-files.ts';

/**
 * Health, readiness, metrics and the life of the process (C14, R29, R40), and the console (C15).
 *
 * @example consolePlugin({ port: 7800 })
 * @public
 */
export const consolePlugin = definePlugin({
  name: 'console',
  about: {
    area: 'Runtime',
    what: 'health, readiness and metrics of the process, and the console',
    docs: 'console.md',
  },
  options: z.strictObject({
    ...listenOptions(7800),
    /** After which a login ends, milliseconds; all end with the instance. */
    sessionMs: z.int().min(60_000).max(2_592_000_000).default(43_200_000),
  }),
  env: { HOLDFAST_CONSOLE_PORT: 'port' },
  variables: {
    HOLDFAST_CONSOLE_PORT: 'Port of the console, and of health, readiness and metrics.',
  },
  collects: [consolePages, consoleActions],
  errors: ConsoleError,
  start(services, { sessionMs, ...listen }) {
    const { token } = listeningOf(listen);
    const { clock, logger, actors } = services;
    const record = (event: AccessEvent, correlation?: string) =>
      actors.send(accessActor, ACCESS_KEY, event, { correlation }).durable();
    return { services, access: new Access({ clock, logger, record, sessionMs, token }) };
  },

  register(context, { sessionMs: _, ...listen }) {
    const portVariable = 'HOLDFAST_CONSOLE_PORT';
    context.actor(accessActor);
    for (const command of [consoleCommand, ...standaloneCommands]) context.command(command);
    context.control((surface, { access, services }) =>
      serveCodes(surface, access, () => services.surfaces().console?.url),
    );
    const options = {
      name: 'console',
      portVariable,
      readOnly: true,
      errorBody,
      ...listeningOf(listen),
    };
    context.http(options, (http, { services, access }) => {
      healthRoutes(http, services);
      loginRoutes(http, access);
      apiRoutes(http, { access, services, source: liveSource(services) });
      pageRoutes(http, access);
    });
  },
});
