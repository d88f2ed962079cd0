/** What the live state of an interface says about a configured address. */
import type { InterfaceView } from '../../core/contracts/router.ts';
import { normaliseCidr } from './legs.ts';

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
