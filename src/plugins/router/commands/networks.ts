import type { AdoptionView } from '../../../core/contracts/reconciler.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import type { AnnouncedBy } from '../config/advertisements.ts';
import { type CommandSettings, openTarget, targetFlags } from './target.ts';

/** `holdfast router legs`: the networks of the router, their addresses and their address sets (R34). */
export function legsCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router legs',
    first: true,
    summary: 'Lists the networks with their addresses and address sets; exit 1 when two share a set name',
    example: 'holdfast router legs --json | jq .collisions',
    flags: targetFlags,
    async run(_args, flags, context) {
      const [{ readLegs }, { collisionText }] = await Promise.all([
        import('./readings.ts'),
        import('../config/networks.ts'),
      ]);
      const target = openTarget(flags, context, settings);
      const { legs, keptFields, collisions, adoption } = await readLegs(target, context);
      const { json, print, note, terminal } = context;
      if (json) print(JSON.stringify({ legs, collisions, ...(adoption && { adoption }) }));
      else {
        for (const leg of legs) {
          const { intf, label, set, ipv4, ipv6, delegateFrom, enabled, advertises, keeps } = leg;
          const facts = [
            ...(enabled ? [] : ['disabled']),
            ...(delegateFrom === undefined ? [] : [`delegates from ${delegateFrom}`]),
            advertises ? 'advertises' : 'silent',
            ...(keeps ? [`${keeps.address} is kept: ${plainText(keeps.text)}`] : []),
          ];
          const addresses = [...ipv4, ...ipv6].join(' ');
          print(
            `${intf.padEnd(10)} ${plainText(label).padEnd(14)} ${set}  ${addresses}${addresses && '  '}(${facts.join(', ')})`,
          );
        }
        for (const { intf, label, address, match, text } of keptFields)
          print(
            plainText(
              `${label === intf ? intf : `${label} (${intf})`}: ${match} ${address} is kept: ${text}`,
            ),
          );
        for (const collision of collisions)
          print(`${terminal.paint(['bold', 'red'], 'collision')}: ${plainText(collisionText(collision))}`);
        for (const line of adoption ? unadopted(adoption) : []) print(line);
        note(`read from ${target.from}`);
      }
      return collisions.length > 0 ? 1 : 0;
    },
  };
}

/** What the reconciler would post, were its legs adopted. */
function unadopted({ state, legs }: AdoptionView): string[] {
  if (state !== 'observing') return [];
  const missing = legs.filter(({ state }) => state === 'not adopted');
  const would = missing.map(
    ({ intf, label, address }) =>
      `would add ${plainText(address)} to ${plainText(intf)} (${plainText(label)})`,
  );
  return [...would, 'The legs of the reconciler are not adopted: confirm them with `holdfast router adopt`.'];
}

/** `holdfast router ra`: which prefixes each leg advertises, from which sources, for how long (R20). */
export function raCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router ra',
    summary:
      'Lists the prefixes that each leg advertises, with lifetimes; two sources of one prefix are a conflict',
    example: 'holdfast router ra',
    flags: targetFlags,
    async run(_args, flags, context) {
      const { readAdvertisements } = await import('./readings.ts');
      const target = openTarget(flags, context, settings);
      const { legs, received: reading } = await readAdvertisements(
        target,
        settings.raSources,
        context.signal,
      );
      const { json, print, note, terminal } = context;
      if (json) return print(JSON.stringify({ legs, sources: settings.raSources, received: reading }));
      for (const leg of legs) {
        const { intf, label, advertises, interval, routerLifetime, prefixes } = leg;
        const how = advertises
          ? `advertises every ${interval} s, default router for ${routerLifetime} s`
          : 'does not advertise';
        print(`${terminal.paint('bold', label === intf ? intf : plainText(`${label} (${intf})`))}: ${how}`);
        for (const { prefix, ula, sources } of prefixes) {
          const who = sources.map(announcedText).join(', ') || 'nobody';
          print(`  ${prefix.padEnd(28)} ${(ula ? 'ULA' : 'global').padEnd(6)}  announced by ${who}`);
        }
        for (const text of leg.notes) print(`  ${plainText(text)}`);
      }
      const others =
        reading.state === 'received'
          ? 'and what its kernel received (on legs where it accepts advertisements: accept_ra 2)'
          : `and nothing is observed: ${reading.reason}`;
      note(
        `read from ${target.from}; other sources are the option raSources of the router plugin, ${others}`,
      );
    },
  };
}

function announcedText({ name, lifetime, received }: AnnouncedBy): string {
  return `${name} ${lifetime} s${received ? ' (received)' : ''}`;
}

/** `holdfast router explain`: which chain accepts a packet, and why (R22). */
export function explainCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router explain',
    summary:
      'Walks FW_FORWARD, FW_ULA_LOCAL_ONLY and FW_ACCEPT_DEFAULT for a packet, and names a missing address set',
    example: 'holdfast router explain --from fd5e:21aa:90c4:20::9 --to fd5e:21aa:90c4:10::5',
    flags: [
      {
        flags: '--from <addr>',
        summary: 'source address; with %intf the leg it is behind, e.g. fd00::5%eth1.30',
      },
      { flags: '--to <addr>', summary: 'destination address; the same' },
      ...targetFlags,
    ],
    async run(_args, flags, context) {
      const { from, to } = flags;
      if (typeof from !== 'string' || typeof to !== 'string') {
        const reason = '--from and --to are both needed.';
        throw new HostError('HF_CLI_USAGE', { reason, command: 'router explain' });
      }
      const [{ explainPacket }, { missingText }] = await Promise.all([
        import('./readings.ts'),
        import('../config/firewall.ts'),
      ]);
      const target = openTarget(flags, context, settings);
      const explained = await explainPacket(target, { from, to }, context.signal);
      const { json, print, note, terminal } = context;
      if (json) return print(JSON.stringify(explained));
      const { sets, ...answer } = explained;
      for (const { chain, why } of answer.steps)
        print(`${terminal.paint('bold', chain.padEnd(17))}  ${plainText(why)}`);
      print(`${terminal.paint('bold', 'accepted by')}: ${plainText(answer.accepts)}`);
      for (const missing of answer.missing) print(`missing: ${plainText(missingText(missing))}`);
      if (sets.state === 'assumed') {
        const how = 'as they follow from the addresses within a minute';
        print(`${terminal.paint('bold', 'assumed')}: the address sets are ${how}; ${plainText(sets.reason)}`);
      }
      const by = sets.state === 'filled' ? `; the address sets by ${sets.source}` : '';
      note(`read from ${target.from}${by}`);
    },
  };
}
