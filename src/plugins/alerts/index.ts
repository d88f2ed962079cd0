/**
 * Alerts (O17, O28): rules over the signals (`rules/`), the escalation of what anybody raises (`routing.ts`), and its delivery
 * to receivers (`delivery.ts`). The machines `alerts-*` decide;
 * this plugin carries out, shows (`view.ts`) and operates (`operate.ts`, `commands.ts`).
 */
import { alertLinks, alertRaised } from '../../core/contracts/alerts.ts';
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { ScheduledRunsToken } from '../../core/contracts/jobs.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { alertActor, silencesActor } from './actors.ts';
import { alertsChecks } from './checks.ts';
import { registerCommands } from './commands.ts';
import { contributeActions } from './console-actions.ts';
import { contributePage } from './console-page.ts';
import { configureOutboxes, registerDelivery } from './delivery.ts';
import { AlertsError } from './errors.ts';
import { registerOperations } from './operate.ts';
import { alertsOptions, withSignals } from './options.ts';
import { isConfigured } from './receivers.ts';
import { type AlertRouting, raisedTargets, rerouteAlerts } from './routing.ts';
import { defineRules, registerRules, watchRules } from './rules/define.ts';
import { RuleLooks } from './rules/looks.ts';
import { uiAlertsCheck } from './rules/ui-check.ts';
import { alertsHealth } from './view.ts';

export { documentedRules } from './rules/documented.ts';

/**
 * The plugin `alerts`: rules over the signals, and who is notified of what is wrong.
 *
 * @example alerts({ receivers: { phone: { format: 'ntfy', urlFile: '/etc/holdfast/ntfy-url' } } })
 * @public
 */
export const alerts = definePlugin({
  name: 'alerts',
  about: {
    area: 'Uptime and alerts',
    what: 'rules over the signals, and who is notified of what is wrong',
    docs: 'alerts.md',
  },
  options: alertsOptions,
  variables: {
    'HOLDFAST_ALERTS_<RECEIVER>_URL':
      'Address of a receiver, e.g. HOLDFAST_ALERTS_CLUSTER_EDGE_URL (monitors that are DOWN) and HOLDFAST_ALERTS_CLUSTER_INFRA_URL (everything else).',
    'HOLDFAST_ALERTS_<RECEIVER>_URL_FILE': 'File (mode 0600) with that address.',
  },
  errors: AlertsError,
  collects: [alertLinks],
  wants: [ColumnarDatabaseToken, ScheduledRunsToken, SecretsStoreToken],
  onFailure: 'continue',
  singleton: 'alerts',
  start(services, options) {
    const { receivers, routes, rules } = withSignals(options);
    const isReady = (name: string) => {
      const receiver = receivers[name];
      return receiver !== undefined && isConfigured(name, receiver, process.env);
    };
    const routing: AlertRouting = { actors: services.actors, clock: services.clock, routes, isReady };
    rerouteAlerts(routing);
    configureOutboxes(receivers, services);
    watchRules(services);
    defineRules(rules, services);
    const looks = new RuleLooks(services, rules);
    looks.start();
    return { ...services, routing, looks };
  },
  register(context, given) {
    const options = withSignals(given);
    context.actor(alertActor);
    context.actor(silencesActor);
    context.route(alertRaised, alertActor, (envelope, { routing }) => raisedTargets(envelope, routing));
    registerDelivery(context, options);
    registerRules(context, options.rules);
    registerOperations(context, options);
    registerCommands(context);
    contributeActions(context);
    contributePage(context);
    for (const check of [...alertsChecks(options), uiAlertsCheck(options)]) context.check(check);
    context.health('alerts', ({ actors, clock, looks }) => alertsHealth(actors, looks, clock.now()));
    context.onStop(({ looks }) => looks.stop());
  },
});
