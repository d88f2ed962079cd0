import type { Order } from './load.ts';
import type { Program } from './program.ts';

/** Where calls go: straight to the upstream, through the proxy, or through a gateway. */
export interface Target extends Pick<Order, 'url' | 'headers' | 'prefix'> {
  readonly name: 'direct' | 'proxy' | 'gateway' | 'slow';
  /** The process whose time and memory is looked at. */
  readonly program?: Program;
}
