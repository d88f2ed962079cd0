import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { fieldsOf, interfacesOf, stringsOf } from '../network-config.ts';
import { readActive } from './get.ts';
import { type CommandSettings, clientOf, targetFlags } from './target.ts';

/** `holdfast router legs`: the networks of the router, their addresses and their address sets (R34). */
export function legsCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router legs',
    first: true,
    summary: 'Lists the networks with their addresses and address sets; exit 1 when two share a set name',
    example: 'holdfast router legs --json | jq .collisions',
    flags: targetFlags,
    async run(_args, flags, context) {
      const [{ addressSets, collisionText, setCollisions }, { advertisingLegs }, { heldNow }] =
        await Promise.all([
          import('../policy/address-sets.ts'),
          import('../generated/generate.ts'),
          import('./live.ts'),
        ]);
      const { config, from } = await readActive(flags, context, settings);
      const held = await heldNow(clientOf(flags, context, settings), config, context.signal);
      const fields = new Map(interfacesOf(config).map(({ name, config: fields }) => [name, fields]));
      const speaking = new Set(advertisingLegs(config));
      const legs = addressSets(config, held).map(({ intf, label, uuid, name, prefixes }) => {
        const own = fieldsOf(fields.get(intf));
        return {
          intf,
          label,
          uuid,
          set: name,
          enabled: own.enabled !== false,
          ipv4: stringsOf(own.ipv4),
          ipv6: stringsOf(own.ipv6),
          ...(stringsOf(own.ipv6DelegateFrom)[0] !== undefined && { delegateFrom: own.ipv6DelegateFrom }),
          prefixes,
          advertises: speaking.has(intf),
        };
      });
      const collisions = setCollisions(config);
      const { json, print, note, terminal } = context;
      if (json) print(JSON.stringify({ legs, collisions }));
      else {
        for (const leg of legs) {
          const { intf, label, set, ipv4, ipv6, delegateFrom, enabled, advertises } = leg;
          const facts = [
            ...(enabled ? [] : ['disabled']),
            ...(delegateFrom === undefined ? [] : [`delegates from ${delegateFrom}`]),
            advertises ? 'advertises' : 'silent',
          ];
          const addresses = [...ipv4, ...ipv6].join(' ');
          print(
            `${intf.padEnd(10)} ${plainText(label).padEnd(14)} ${set}  ${addresses}${addresses && '  '}(${facts.join(', ')})`,
          );
        }
        for (const collision of collisions)
          print(`${terminal.paint(['bold', 'red'], 'collision')}: ${plainText(collisionText(collision))}`);
        note(`read from ${from}`);
      }
      return collisions.length > 0 ? 1 : 0;
    },
  };
}
