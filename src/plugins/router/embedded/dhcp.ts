/** The DHCP service beside the config: the actor `router.dhcp/default` decides when it is restarted (R23). */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { dhcpService, type RestartParams } from '../../../machines/router/dhcp.ts';
import { legsOfFiles } from '../config/generated-files.ts';
import { describeDhcpRecord } from '../words.ts';
import type { DhcpServer } from './dhcp-server.ts';
import type { RouterAccess } from './embedded-router.ts';

const dhcpActor = defineActor({
  type: 'router.dhcp',
  machine: dhcpService,
  version: 1,
  describe: describeDhcpRecord,
});
const DHCP_KEY = 'default';
/** A burst of rewrites without end must not put the restart off for ever. */
const LONGEST_BURST_MS = 120_000;

export const dhcpRewritten = defineTopic(
  'router.dhcp_rewritten',
  z.object({ legs: z.array(z.string()), ncid: z.string().exactOptional() }),
  'Files that the DHCP service reads were written anew.',
);

/**
 * Registers the actor, its route, and the restart as an effect.
 *
 * @param quietMs from the last rewrite of a burst to the restart, milliseconds
 */
export function registerDhcpService(
  context: PluginContext<RouterAccess & { readonly dhcpServer: DhcpServer | undefined }>,
  quietMs: number,
): void {
  const input = { quietMs, longestMs: Math.max(quietMs, LONGEST_BURST_MS) };
  context.actor({ ...dhcpActor, input: () => input });
  context.route(dhcpRewritten, dhcpActor, ({ payload }) => [
    { key: DHCP_KEY, event: { type: 'REWRITTEN', ...payload } },
  ]);
  context.effect<RestartParams>(
    'router.restart_dhcp',
    async ({ legs }, _effect, { router, dhcpServer, services: { clock, logger, metrics } }) => {
      // Without a server a restart only does what one does first: it reads the directory.
      await dhcpServer?.restart();
      const files = await router.dhcpFiles();
      const adopted = files.filter((name) => legsOfFiles([`dhcp/conf/${name}`]).length === 0);
      metrics.counter('router_dhcp_restarts_total', { help: 'Restarts of the DHCP service.' }).inc();
      logger.info({ legs, files: files.length, adopted }, 'router.dhcp_restarted');
      return { type: 'RESTARTED', at: clock.now(), files, adopted };
    },
    { onRecovery: 'retry', adapter: 'DHCP directory' },
  );
  context.health('dhcp', ({ dhcpServer }) => dhcpServer?.report());
}
