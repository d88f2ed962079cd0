import { type AlertRaised, alertRaised } from '../../core/adapters/alerts.ts';
import { routerChannels } from '../../core/adapters/router.ts';
import type { PluginContext } from '../../core/plugin/index.ts';
import type { AlertParams, ApplyParams, PublishParams } from '../../machines/config-transaction/shapes.ts';
import type { RouterParts } from './routes/http.ts';

/** An apply of a real daemon takes up to 8 s and more; beyond this the machine reads the store to learn what stands. */
const APPLY_DEADLINE_MS = 300_000;

const ALERTS: Readonly<Record<AlertParams['name'], Pick<AlertRaised, 'severity' | 'text'>>> = {
  ncid_bypassed: {
    severity: 'warning',
    text: 'A client wrote the router config with ignoreNcid: what was saved in between is overwritten.',
  },
  store_changed: {
    severity: 'warning',
    text: 'The router config was changed in its store, not through the API. What the store holds is taken.',
  },
  revert_failed: {
    severity: 'critical',
    text: 'An uncommitted change of the router config could not be reverted; it is tried again.',
  },
};

/** The effects that the machine `config-transaction` asks for. */
export function registerEffects(context: PluginContext, parts: () => RouterParts): void {
  context.effect<ApplyParams>('router.apply', (params, effect) => parts().router.apply(params, effect), {
    onRecovery: 'retry',
    deadlineMs: APPLY_DEADLINE_MS,
    adapter: 'config store, kernel',
  });

  context.effect('router.load', () => parts().router.load(), {
    onRecovery: 'retry',
    adapter: 'config store',
  });

  // After the save, and surviving a crash in between: listeners may hear of one change twice, never of none.
  context.effect<PublishParams>(
    'router.publish',
    ({ ncid, reapplied, transID, story }, { at, cause, correlation }) => {
      const { bus } = context.services;
      const meta = { correlation: story ?? correlation, cause };
      const change = { ncid, at, ...(transID !== undefined && { transID }) };
      for (const intf of reapplied) bus.publish(routerChannels.ifaceChangeApplied, { ...change, intf }, meta);
      bus.publish(routerChannels.changeApplied, change, meta);
    },
    { onRecovery: 'retry', adapter: 'bus' },
  );

  context.effect<AlertParams>(
    'router.alert',
    ({ name, labels }, { cause, correlation }) => {
      const { bus, logger } = context.services;
      logger.warn({ correlation, ...labels }, `router.${name}`);
      const alert = { name: `router.${name}`, ...ALERTS[name], labels: { ...labels } };
      bus.publish(alertRaised, alert, { correlation, cause });
    },
    { onRecovery: 'retry', adapter: 'alerts' },
  );
}
