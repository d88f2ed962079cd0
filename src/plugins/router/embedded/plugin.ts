/**
 * The embedded router: the config API of a router's daemon on port 8837, the store that holds the config, and the
 * kernel it is applied to. Decisions are those of the machine `machines/router/config.ts`. A write takes this way:
 * `http-api.ts` → `config-writes.ts` → the machine → `config-actor.ts` → `embedded-router.ts` → `applier.ts`, `store/`.
 */
import { consolePages } from '../../../core/contracts/console.ts';
import { mcpRoutes } from '../../../core/contracts/mcp-routes.ts';
import { RouterApiToken } from '../../../core/contracts/router.ts';
import { listeningOf } from '../../../core/host/http/listen-options.ts';
import { definePlugin } from '../../../core/host/plugin/definition.ts';
import { registerCommands } from '../commands/register.ts';
import { routerRoute } from '../commands/route.ts';
import { type CommandSettings, RECEIVED_PATH, TRANSACTION_PATH } from '../commands/target.ts';
import { routerPage } from '../console-page.ts';
import { RouterError } from '../errors.ts';
import { observedActor } from '../observed-config.ts';
import { secretFields } from '../secret-fields.ts';
import { registerAddressSets } from './address-sets.ts';
import { routerChecks } from './checks.ts';
import { registerConfigActor } from './config-actor.ts';
import { registerDhcpService } from './dhcp.ts';
import { routerErrorBody, routerRoutes } from './http-api.ts';
import { inProcessApi } from './in-process-api.ts';
import { routerOptions } from './options.ts';
import { stoppedTransaction, transactionOf } from './pending-transaction.ts';
import { registerSimulateCommand, registerSimulations } from './simulate.ts';
import { registerStoreConnection } from './store/connection.ts';
import { registerTransactionEnd } from './transaction-end.ts';
import { versionsPage } from './versions-page.ts';
import { registerWans } from './wan.ts';

/**
 * The plugin `router`: the embedded router: its config's transactions, interfaces, DHCP and WAN.
 *
 * @example router({ kernel: 'linux', host: '192.168.1.1', tokenFile: '/etc/holdfast/router-token' })
 * @public
 */
export const router = definePlugin({
  name: 'router',
  about: {
    area: 'Router',
    what: "the embedded router: its config's transactions, interfaces, DHCP and WAN",
    docs: 'guides/the-embedded-router.md',
  },
  options: routerOptions,
  secretFields,
  env: { HOLDFAST_ROUTER_PORT: 'port', HOLDFAST_REDIS_URL: 'redisUrl' },
  variables: {
    HOLDFAST_ROUTER_PORT: 'Port of the embedded router’s API.',
    HOLDFAST_REDIS_URL:
      'The Redis that holds the config and carries the channels; the data folder and this process unless set.',
    HOLDFAST_TRANSACTION: 'Given to the checks of `router apply`: the open transaction.',
    HOLDFAST_DEADLINE: 'Given to the checks of `router apply`: when that transaction reverts.',
  },
  errors: RouterError,
  provides: [RouterApiToken],
  hostBound: true,
  start: async (services, options, signal) =>
    (await import('./start.ts')).startRouter(services, options, signal),
  register(context, options) {
    const { bodyLimit, windowMs, retryMs, queueLimit, secretsNeedToken } = options;
    const { kernel, namespace, dhcpRestartMs, addressSetsMs, replyTimeoutMs, raSources, redisUrl } = options;
    const listening = listeningOf(options);
    const { token } = listening;

    // Nothing sends it events here: a log of a router elsewhere is read with the actors of this plugin, too.
    context.actor(observedActor);
    registerConfigActor(context, { windowMs, retryMs, queueLimit });
    registerStoreConnection(context);
    registerDhcpService(context, dhcpRestartMs);
    registerAddressSets(context, addressSetsMs);
    registerWans(context);

    context.provide(RouterApiToken, inProcessApi);
    context.http(
      {
        ...listening,
        name: 'router',
        recordsSenders: true,
        portVariable: 'HOLDFAST_ROUTER_PORT',
        tryPath: '/v1/config/active',
        secretPath: '/v1/config/active',
        bodyLimit,
        lenientPaths: true,
        errorBody: routerErrorBody,
        ...(secretsNeedToken && { secretsNeedToken }),
      },
      routerRoutes,
    );

    context.health('transaction', ({ services }) => transactionOf(services), stoppedTransaction);
    context.health('store', ({ redis }) => redis?.health());
    context.health('kernel', ({ router }) => {
      const fault = router.fault();
      return fault === undefined
        ? undefined
        : { ok: false, reason: `the stored config is not applied: ${fault}` };
    });
    context.health('kernelWatch', ({ watch }) => {
      const report = watch?.report();
      return report?.running === false
        ? { ok: false, reason: `changes of the kernel are not seen: ${String(report.reason)}` }
        : report;
    });
    for (const check of routerChecks({ redisUrl, host: kernel === 'linux' ? options : undefined }))
      context.check(check);

    const commands: CommandSettings = {
      token,
      windowMs,
      raSources,
      readStore: async (dataDir, read) =>
        (await import('./store/read-store.ts')).readStore({ dataDir, redisUrl }, read),
    };
    registerCommands(context, commands);
    context.contribute(mcpRoutes, ({ services }) =>
      routerRoute(commands, services.dataDir, async () => ({ pending: transactionOf(services) ?? false })),
    );
    registerTransactionEnd(context);
    context.contribute(consolePages, routerPage);
    context.contribute(consolePages, versionsPage);
    context.control((surface, { watch, services }) => {
      surface.post(RECEIVED_PATH, async () => (watch ? { prefixes: watch.received.list() } : {}));
      surface.post(TRANSACTION_PATH, async () => transactionOf(services) ?? {});
    });
    const isReal = kernel === 'linux' && namespace === undefined;
    registerSimulations(context, { isReal, replyTimeoutMs });
    registerSimulateCommand(context);

    context.onStop(({ close }) => close());
  },
});
