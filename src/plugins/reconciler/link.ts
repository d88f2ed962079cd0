/** What the live state of an interface says about a configured address. */
import type { InterfaceView, NetworkConfig, RouterApi } from '../../core/contracts/router.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { readHeld } from './kept-fields.ts';
import { type LegAddress, normaliseCidr } from './legs.ts';

/** Whether the link has the address. @param address normalised, with prefix length */
export function isOnLink(view: InterfaceView | undefined, address: string): boolean {
  return view?.state.ip6?.map(normaliseCidr).includes(address) === true;
}

/**
 * Why the state does not tell whether the address could be on the link. A kernel gives no IPv6 address to a link that is
 * down, and takes away those that it had: that is no fault of the apply.
 *
 * @returns undefined when it tells
 */
export function linkDoubt(view: InterfaceView | undefined, address: string): string | undefined {
  if (!view) return 'the router does not serve the state of this interface';
  const { ip6, present, up, operstate, carrier } = view.state;
  if (isOnLink(view, address)) return undefined;
  if (present === false) return 'the link is absent';
  if (ip6 === null) return 'the router reports no addresses of the link';
  const isDown = up === false || operstate === 'down' || carrier === '0' || carrier === 0;
  return isDown ? 'the link is down' : undefined;
}

/** Where a leg has its address: `unknown` is one whose config has it, and whose link could not be looked at. */
export type LegFound =
  | { readonly state: 'whole' | 'missing' | 'not applied' }
  | { readonly state: 'unknown'; readonly reason: string };

/**
 * Looks at one leg, or one kept field, now. A field has no link: the config says all of it.
 *
 * @param config as it was just read
 * @param never interfaces that are never touched
 */
export async function lookAtLeg(
  api: RouterApi,
  config: NetworkConfig,
  leg: LegAddress,
  never: readonly string[],
): Promise<LegFound> {
  const { intf, address } = leg;
  if (!readHeld(config, leg, never).addresses?.includes(address)) return { state: 'missing' };
  if (leg.keep) return { state: 'whole' };
  try {
    const view = await api.interfaceState(intf);
    const reason = linkDoubt(view, address);
    if (reason !== undefined) return { state: 'unknown', reason };
    return { state: isOnLink(view, address) ? 'whole' : 'not applied' };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { state: 'unknown', reason: error.what };
  }
}
