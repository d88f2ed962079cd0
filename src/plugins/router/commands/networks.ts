import { ADOPTION_PATH, type AdoptionView } from '../../../core/contracts/reconciler.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { askIfRunning } from '../../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { AnnouncedBy } from '../config/advertisements.ts';
import { fieldsOf, interfacesOf, stringsOf } from '../config/network-config.ts';
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
      const [{ addressSets, collisionText, setCollisions }, { advertisingLegs }] = await Promise.all([
        import('../config/networks.ts'),
        import('../config/generated-files.ts'),
      ]);
      const target = openTarget(flags, context, settings);
      const config = await target.active(context.signal);
      const currentAddresses = await target.addresses(config, context.signal);
      const fields = new Map(interfacesOf(config).map(({ name, config: fields }) => [name, fields]));
      const speaking = new Set(advertisingLegs(config));
      const adoption = await adoptionOf(context);
      const kept = new Map(adoption?.legs.filter(({ match }) => !match).map((leg) => [leg.intf, leg]));
      const keptFields = adoption?.legs.filter(({ match }) => match) ?? [];
      const legs = addressSets(config, currentAddresses).map(({ intf, label, uuid, name, prefixes }) => {
        const own = fieldsOf(fields.get(intf));
        const leg = kept.get(intf);
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
          ...(leg && { keeps: { address: leg.address, state: leg.state, text: leg.text } }),
        };
      });
      const collisions = setCollisions(config);
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

/** Whether the reconciler of the running instance may write its legs; undefined where none runs. */
async function adoptionOf(context: CommandContext): Promise<AdoptionView | undefined> {
  try {
    return await askIfRunning<AdoptionView>(context, ADOPTION_PATH, {}, 'it runs no reconciler');
  } catch (error) {
    if (isCoded(error, 'HF_CONTROL_UNREACHABLE')) return undefined;
    throw error;
  }
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
      const { advertisements, advertisementNotes } = await import('../config/advertisements.ts');
      const target = openTarget(flags, context, settings);
      const config = await target.active(context.signal);
      const currentAddresses = await target.addresses(config, context.signal);
      const reading = await target.received(context.signal);
      const received = reading.state === 'received' ? reading.prefixes : [];
      const legs = advertisements(config, settings.raSources, currentAddresses, received);
      const { json, print, note, terminal } = context;
      if (json) {
        const described = legs.map((leg) => ({ ...leg, notes: advertisementNotes(leg) }));
        return print(JSON.stringify({ legs: described, sources: settings.raSources, received: reading }));
      }
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
        for (const text of advertisementNotes(leg)) print(`  ${plainText(text)}`);
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
      const [{ explainFlow, missingText }, { networksOf, prefixesBySet }] = await Promise.all([
        import('../config/firewall.ts'),
        import('../config/networks.ts'),
      ]);
      const target = openTarget(flags, context, settings);
      const config = await target.active(context.signal);
      const currentAddresses = await target.addresses(config, context.signal);
      const reading = await target.filledSets(context.signal);
      const sets = reading.state === 'filled' ? reading.sets : prefixesBySet(config, currentAddresses);
      const answer = explainFlow(networksOf(config, currentAddresses), sets, from, to);
      const { json, print, note, terminal } = context;
      if (json) {
        const { state } = reading;
        const source = state === 'filled' ? { source: reading.source } : { reason: reading.reason };
        return print(JSON.stringify({ from, to, sets: { state, ...source }, ...answer }));
      }
      for (const { chain, why } of answer.steps)
        print(`${terminal.paint('bold', chain.padEnd(17))}  ${plainText(why)}`);
      print(`${terminal.paint('bold', 'accepted by')}: ${plainText(answer.accepts)}`);
      for (const missing of answer.missing) print(`missing: ${plainText(missingText(missing))}`);
      if (reading.state === 'assumed') {
        const how = 'as they follow from the addresses within a minute';
        print(
          `${terminal.paint('bold', 'assumed')}: the address sets are ${how}; ${plainText(reading.reason)}`,
        );
      }
      const by = reading.state === 'filled' ? `; the address sets by ${reading.source}` : '';
      note(`read from ${target.from}${by}`);
    },
  };
}
