import { routerChannels } from '../../core/contracts/router.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { ApplyParams, PublishParams } from '../../machines/router/config-shapes.ts';
import { dhcpRewritten } from './generated/dhcp-service.ts';
import { tellAddresses } from './kernel/address-sets.ts';
import type { RouterParts } from './routes/http.ts';

/** An apply of a real daemon takes up to 8 s and more; beyond this the machine reads the store to learn what stands. */
const APPLY_DEADLINE_MS = 300_000;

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
    async ({ ncid, reapplied, rewritten, apc, transID, story }, { at, cause, correlation }) => {
      const { bus } = context.services;
      const meta = { correlation: story ?? correlation, cause };
      const change = { ncid, at, ...(transID !== undefined && { transID }) };
      for (const intf of reapplied) bus.publish(routerChannels.ifaceChangeApplied, { ...change, intf }, meta);
      bus.publish(routerChannels.changeApplied, change, meta);
      if (apc) bus.publish(routerChannels.apcChangeApplied, change, meta);
      if (rewritten) bus.publish(dhcpRewritten, { legs: [...rewritten], ncid }, meta);
      if (reapplied.length > 0) await tellAddresses(parts().router, context.services, meta);
      await parts().published();
    },
    { onRecovery: 'retry', adapter: 'bus, pub/sub' },
  );
}
