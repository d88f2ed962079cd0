import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../../core/kernel/actors/route.ts';
import { delayOf, type LogRecord } from '../../../core/kernel/log/record.ts';
import { type DhcpServiceEvent, dhcpService, type RestartParams } from '../../../machines/router/dhcp.ts';
import { legsOfFiles } from '../config/generated-files.ts';
import type { RouterParts } from './http-api.ts';

/** The box's DHCP service; its one key is `box`. */
const DHCP_ACTOR = 'router.dhcp';
const DHCP_KEY = 'box';

const rewritten = z.object({ legs: z.array(z.string()), ncid: z.string().optional() });

export const dhcpRewritten: Topic<z.infer<typeof rewritten>> = defineTopic(
  'router.dhcp_rewritten',
  rewritten,
  'Files that the DHCP service reads were written anew.',
);

/** Registers the DHCP service (R23): its actor, its topic, and the restart as an effect. @param delayMs quiet time before it */
export function registerDhcpService(context: PluginContext, parts: () => RouterParts, delayMs: number): void {
  const input = { quietMs: delayMs, longestMs: Math.max(delayMs, 120_000) };
  context.actor(
    defineActor({
      type: DHCP_ACTOR,
      machine: dhcpService,
      version: 1,
      input: () => input,
      describe: describeDhcpRecord,
    }),
  );
  context.route(
    defineRoute(dhcpRewritten, DHCP_ACTOR, ({ payload }) => [
      { key: DHCP_KEY, event: { type: 'REWRITTEN', ...payload } },
    ]),
  );
  context.effect<RestartParams>(
    'router.restart_dhcp',
    async ({ legs }) => {
      // The embedded box has no DHCP daemon: what one would do at its start is read the directory.
      const { clock, logger, metrics } = context.services;
      const files = await parts().router.dhcpFiles();
      const adopted = files.filter((name) => legsOfFiles([`dhcp/conf/${name}`]).length === 0);
      metrics.counter('router_dhcp_restarts_total', { help: 'Restarts of the DHCP service.' }).inc();
      logger.info({ legs, files: files.length, adopted }, 'router.dhcp_restarted');
      return { type: 'RESTARTED', at: clock.now(), files, adopted };
    },
    { onRecovery: 'retry', adapter: 'DHCP directory' },
  );
}

function describeDhcpRecord(record: LogRecord): string | undefined {
  const event = record.event as unknown as DhcpServiceEvent;
  if (delayOf(record.event.type) !== undefined) return 'the burst is over, restarts';
  if (event.type === 'REWRITTEN') return `files of ${event.legs.join(', ')} were rewritten`;
  if (event.type !== 'RESTARTED') return undefined;
  const { files, adopted } = event;
  return `restarted, read ${files.length} files${adopted.length > 0 ? `, adopted ${adopted.join(', ')}` : ''}`;
}
