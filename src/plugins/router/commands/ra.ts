import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { readActive } from './get.ts';
import { type CommandSettings, clientOf, targetFlags } from './target.ts';

/** `holdfast router ra`: which prefixes each leg advertises, from which sources, for how long (R20). */
export function raCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router ra',
    summary:
      'Lists the prefixes that each leg advertises, with lifetimes; two sources of one prefix are a conflict',
    example: 'holdfast router ra',
    flags: targetFlags,
    async run(_args, flags, context) {
      const [{ advertisements, advertisementNotes }, { heldNow }] = await Promise.all([
        import('../policy/advertisements.ts'),
        import('./live.ts'),
      ]);
      const { config, from } = await readActive(flags, context, settings);
      const held = await heldNow(clientOf(flags, context, settings), config, context.signal);
      const legs = advertisements(config, settings.raSources, held);
      const { json, print, note, terminal } = context;
      if (json) {
        const told = legs.map((leg) => ({ ...leg, notes: advertisementNotes(leg) }));
        return print(JSON.stringify({ legs: told, sources: settings.raSources }));
      }
      for (const leg of legs) {
        const { intf, label, advertises, interval, routerLifetime, prefixes } = leg;
        const how = advertises
          ? `advertises every ${interval} s, default router for ${routerLifetime} s`
          : 'does not advertise';
        print(`${terminal.paint('bold', label === intf ? intf : plainText(`${label} (${intf})`))}: ${how}`);
        for (const { prefix, ula, sources } of prefixes) {
          const who = sources.map(({ name, lifetime }) => `${name} ${lifetime} s`).join(', ') || 'nobody';
          print(`  ${prefix.padEnd(28)} ${(ula ? 'ULA' : 'global').padEnd(6)}  announced by ${who}`);
        }
        for (const text of advertisementNotes(leg)) print(`  ${plainText(text)}`);
      }
      note(`read from ${from}; other sources are the option raSources of the router plugin`);
    },
  };
}
