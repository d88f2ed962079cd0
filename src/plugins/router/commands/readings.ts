/** What commands and tools say of a router, as data: its networks, what they advertise, and where a packet would go. */
import { ADOPTION_PATH, type AdoptionView } from '../../../core/contracts/reconciler.ts';
import { askIfRunning } from '../../../core/host/operations/control-client.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { advertisementNotes, advertisements, type RaSource } from '../config/advertisements.ts';
import { explainFlow } from '../config/firewall.ts';
import { advertisingLegs } from '../config/generated-files.ts';
import { fieldsOf, interfacesOf, stringsOf } from '../config/network-config.ts';
import { addressSets, networksOf, prefixesBySet, setCollisions } from '../config/networks.ts';
import type { RouterTarget } from './target.ts';

type Asking = Pick<CommandContext, 'dataDir' | 'signal'>;

/** The networks of the router, their addresses and their address sets (R34). */
export async function readLegs(target: RouterTarget, asking: Asking) {
  const config = await target.active(asking.signal);
  const currentAddresses = await target.addresses(config, asking.signal);
  const fields = new Map(interfacesOf(config).map(({ name, config: own }) => [name, own]));
  const speaking = new Set(advertisingLegs(config));
  const adoption = await adoptionOf(asking);
  const kept = new Map(adoption?.legs.filter(({ match }) => !match).map((leg) => [leg.intf, leg]));
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
  const keptFields = adoption?.legs.filter(({ match }) => match) ?? [];
  return { legs, keptFields, collisions: setCollisions(config), adoption };
}

/** Whether the reconciler of the running instance may write its legs; undefined where none runs. */
async function adoptionOf(asking: Asking): Promise<AdoptionView | undefined> {
  try {
    return await askIfRunning<AdoptionView>(asking, ADOPTION_PATH, {}, 'it runs no reconciler');
  } catch (error) {
    if (isCoded(error, 'HF_CONTROL_UNREACHABLE')) return undefined;
    throw error;
  }
}

/** Which prefixes each leg advertises, from which sources, for how long (R20). */
export async function readAdvertisements(
  target: RouterTarget,
  raSources: readonly RaSource[],
  signal: AbortSignal,
) {
  const config = await target.active(signal);
  const currentAddresses = await target.addresses(config, signal);
  const received = await target.received(signal);
  const observed = received.state === 'received' ? received.prefixes : [];
  const legs = advertisements(config, raSources, currentAddresses, observed);
  return { legs: legs.map((leg) => ({ ...leg, notes: advertisementNotes(leg) })), received };
}

/** Which chain accepts a packet, and why (R22). @param packet its addresses; with `%intf` the leg that one is behind */
export async function explainPacket(
  target: RouterTarget,
  { from, to }: { readonly from: string; readonly to: string },
  signal: AbortSignal,
) {
  const config = await target.active(signal);
  const currentAddresses = await target.addresses(config, signal);
  const reading = await target.filledSets(signal);
  const filled = reading.state === 'filled' ? reading.sets : prefixesBySet(config, currentAddresses);
  const answer = explainFlow(networksOf(config, currentAddresses), filled, from, to);
  const sets =
    reading.state === 'filled'
      ? ({ state: 'filled', source: reading.source } as const)
      : ({ state: 'assumed', reason: reading.reason } as const);
  return { from, to, sets, ...answer };
}
