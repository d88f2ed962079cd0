/**
 * Alerts (O17, O28): rules over the signals (`rules/`), the ladder of who is told of what is raised anywhere (`raised.ts`),
 * and the receivers it is posted to (`receivers/`). What is decided is decided by the machines `alert-rule`, `alert`,
 * `alert-outbox` and `alert-silences`; here it is carried out, shown and operated (`operate.ts`, `commands.ts`).
 *
 * Imports core, bus and machines; no other plugin.
 */

import { type ColumnarDatabase, ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { Notice, Queued } from '../../machines/alerts/alert.ts';
import { alert } from '../../machines/alerts/alert.ts';
import { alertOutbox } from '../../machines/alerts/outbox.ts';
import { alertRule } from '../../machines/alerts/rule.ts';
import { alertSilences } from '../../machines/alerts/silences.ts';
import { alertsChecks } from './checks.ts';
import { registerCommands } from './commands.ts';
import { describeAlertRecord, describeOutboxRecord, describeRuleRecord, isRoutineLook } from './describe.ts';
import { AlertsError } from './errors.ts';
import { Lane } from './lane.ts';
import { registerOperations } from './operate.ts';
import { alertsOptions } from './options.ts';
import { gatherAsConfigured, gatherOf, post } from './outboxes.ts';
import {
  ALERT_ACTOR,
  notified,
  notifiedRoute,
  OUTBOX_ACTOR,
  type RaisedParts,
  RULE_ACTOR,
  raisedRoute,
  regradeAlerts,
  SILENCES_ACTOR,
} from './raised.ts';
import { isConfigured, readTarget } from './receivers.ts';
import { defineRules, watchRules } from './rules/define.ts';
import { evaluate } from './rules/evaluate.ts';
import { settingsOf } from './rules/rule.ts';
import { alertsHealth } from './view.ts';

export { documentedRules } from './rules/documented.ts';

/** Characters of an answer that are kept. */
const SAID = 300;
const said = ({ status, body }: { status: number; body: string }) => ({ status, body: body.slice(0, SAID) });
/** Looks at the database that run at a time. */
const LOOKS = 4;
/** How long a look may take, milliseconds, and how long it may wait for those before it. */
const LOOK_MS = 30_000;
const QUEUE_MS = 600_000;

/** @example alerts({ receivers: { phone: { format: 'ntfy', urlFile: '/etc/holdfast/ntfy-url' } } }) */
export const alerts = definePlugin({
  name: 'alerts',
  about: {
    area: 'Uptime and alerts',
    what: 'rules over the signals, and who is told of what is wrong',
    docs: 'alerts.md',
  },
  options: alertsOptions,
  errors: AlertsError,
  wants: [ColumnarDatabaseToken, SecretsStoreToken],
  onFailure: 'continue',
  register(context, options) {
    const rules = new Map(options.rules.map((rule) => [rule.name, rule]));
    const lane = new Lane(LOOKS);
    const { receivers, routes } = options;

    context.actor(
      defineActor({
        type: RULE_ACTOR,
        machine: alertRule,
        version: 2,
        // Version 1 fired on silence of what was never seen, and a start always began the silence anew.
        migrate: ({ value, context }, fromVersion) =>
          fromVersion === 1
            ? { value, context: { ...context, restarts: 0, seen: context.value !== undefined } }
            : undefined,
        durability: (record) => (isRoutineLook(record) ? 'batched' : 'sync'),
        input: (key) => {
          const rule = rules.get(key);
          return rule && settingsOf(rule);
        },
        describe: describeRuleRecord,
      }),
    );
    context.actor(
      defineActor({ type: ALERT_ACTOR, machine: alert, version: 1, describe: describeAlertRecord }),
    );
    context.actor(
      defineActor({
        type: OUTBOX_ACTOR,
        machine: alertOutbox,
        version: 1,
        input: (receiver) => ({ receiver, ...gatherOf(receivers[receiver]) }),
        describe: describeOutboxRecord,
      }),
    );
    context.actor(defineActor({ type: SILENCES_ACTOR, machine: alertSilences, version: 1 }));

    const raised: RaisedParts = {
      actors: () => context.services.actors,
      clock: () => context.services.clock,
      routes,
      isReady: (name) => receivers[name] !== undefined && isConfigured(name, receivers[name], process.env),
    };
    context.route(raisedRoute(raised));
    context.route(notifiedRoute);

    context.effect<{ rule: string }>(
      'alerts.evaluate',
      async ({ rule: name }, { signal }) => {
        const { clock, find } = context.services;
        const rule = rules.get(name);
        const unseen = (reason: string) => ({ type: 'UNSEEN', at: clock.now(), reason });
        if (!rule) return unseen('it is no longer listed');
        const database: ColumnarDatabase | undefined = find(ColumnarDatabaseToken);
        if (!database) return unseen('no columnar database is there');
        try {
          const look = await lane.run(() =>
            evaluate(rule, database, clock.now(), AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)])),
          );
          return { type: 'EVALUATED', at: clock.now(), ...look };
        } catch (error) {
          if (!isCoded(error)) throw error;
          // A database repeats the whole query in its refusal; the rule's own words say it shorter.
          return unseen((error.what.split(' in scope ')[0] ?? '').slice(0, SAID));
        }
      },
      { onRecovery: 'retry', adapter: 'columnar.database', deadlineMs: QUEUE_MS },
    );
    context.effect<{ to: readonly string[]; notice: Notice }>(
      'alerts.notify',
      ({ to, notice }, { id, at, cause, correlation }) => {
        for (const receiver of to) {
          const item: Queued = { id: `${id}/${receiver}`, at, notice };
          context.services.bus.publish(notified, { receiver, item }, { correlation, cause });
        }
      },
      { onRecovery: 'retry' },
    );
    context.effect<{ receiver: string; items: readonly Queued[] }>(
      'alerts.post',
      async ({ receiver: name, items }, { signal }) => {
        const { clock, find } = context.services;
        const refused = (reason: string) => ({ type: 'REFUSED', at: clock.now(), reason });
        const receiver = receivers[name];
        if (!receiver) return refused('it is no longer listed');
        try {
          const target = await readTarget(name, receiver, process.env, find(SecretsStoreToken));
          const answer = await post(target, items, clock.now(), signal);
          if (answer.kind === 'taken') return { type: 'POSTED', at: clock.now(), answer: said(answer) };
          const { reason, retryAfterMs, status } = answer;
          return {
            ...refused(reason),
            ...(status !== undefined && { answer: said({ status, body: answer.body ?? '' }) }),
            ...(retryAfterMs !== undefined && { retryAfterMs }),
          };
        } catch (error) {
          if (!(error instanceof HoldfastError)) throw error;
          return refused(error.what);
        }
      },
      { onRecovery: 'retry', adapter: 'alerts.webhook' },
    );

    registerOperations(context, options);
    registerCommands(context);
    for (const check of alertsChecks(options)) context.check(check);
    context.health('alerts', () => alertsHealth(context.services.actors));
    context.onStart(() => {
      regradeAlerts(raised);
      gatherAsConfigured(receivers, context.services);
      watchRules(context.services);
      defineRules(options.rules, context.services);
    });
  },
});
