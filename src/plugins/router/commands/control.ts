import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import type { AddressSetsContext } from '../../../machines/router/address-sets.ts';
import { SETS_ACTOR, SETS_KEY } from '../kernel/address-sets.ts';

/** What the address sets hold, for `router explain`. */
export const SETS_PATH = '/router/sets';

/** What commands ask the running instance for, beside its API. */
export function registerControl(context: PluginContext): void {
  context.control((surface) => {
    surface.post(SETS_PATH, async () => {
      const { actors } = context.services;
      const known = actors.snapshot(actorRef(SETS_ACTOR, SETS_KEY))?.context as
        | AddressSetsContext
        | undefined;
      return { sets: known?.populated ?? {}, wanted: known?.wanted ?? {} };
    });
  });
}
