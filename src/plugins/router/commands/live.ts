import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { postControl } from '../../../core/host/operations/post-control.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { interfacesOf, stringsOf } from '../network-config.ts';
import { addressSets, type Held } from '../policy/address-sets.ts';
import type { FilledSets } from '../policy/firewall.ts';
import type { RouterClient } from './client.ts';
import { SETS_PATH } from './control.ts';

/**
 * The addresses that interfaces have now, delegated ones among them.
 *
 * @returns nothing for an interface that the router does not tell of
 */
export async function heldNow(
  client: RouterClient | undefined,
  config: NetworkConfig,
  signal: AbortSignal,
): Promise<Held> {
  const held = new Map<string, readonly string[]>();
  for (const { name } of client ? interfacesOf(config) : []) {
    const answer = await client
      ?.get(`/v1/config/interfaces/${encodeURIComponent(name)}`, signal)
      .catch(() => signal.throwIfAborted());
    const state = isObject(answer) && isObject(answer.state) ? answer.state : undefined;
    if (state?.ip6 !== undefined) held.set(name, stringsOf(state.ip6));
  }
  return (intf) => held.get(intf);
}

/** What the address sets hold: as the instance here says, else as they would be filled from these addresses. */
export async function filledSets(
  { dataDir, signal }: Pick<CommandContext, 'dataDir' | 'signal'>,
  config: NetworkConfig,
  held: Held,
  ours: boolean,
): Promise<{ readonly sets: FilledSets; readonly from: string }> {
  if (ours) {
    const answer = await postControl(dataDir, SETS_PATH, {}, signal).catch((error: unknown) => {
      if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    });
    const sets = answer?.status === 200 && isObject(answer.body) ? answer.body.sets : undefined;
    if (isObject(sets)) {
      const filled = Object.entries(sets).map(([name, prefixes]) => [name, stringsOf(prefixes)] as const);
      return { sets: new Map(filled), from: 'as filled now' };
    }
  }
  const computed = new Map<string, readonly string[]>();
  for (const { name, prefixes } of addressSets(config, held))
    computed.set(name, [...(computed.get(name) ?? []), ...prefixes]);
  return { sets: computed, from: 'as they follow from the addresses within a minute' };
}
