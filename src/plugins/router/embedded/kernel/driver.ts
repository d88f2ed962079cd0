/** A route of the kernel. */
export interface Route {
  readonly family: 4 | 6;
  /** CIDR, or `default`. */
  readonly destination: string;
  readonly via?: string;
  /** `kernel`: follows from an address; `router`: set by us; anything else came from outside. */
  readonly origin: string;
  /** More than one: a multipath route, which the kernel does not delete when one device goes down. */
  readonly devices: readonly string[];
}

/** One step of an apply. Steps are data, so that a driver may run them one by one or as one batch. */
export type KernelStep =
  | { readonly step: 'removeLink'; readonly intf: string }
  | {
      readonly step: 'setLink';
      readonly intf: string;
      readonly kind: string;
      /** The device of a VLAN, the members of a bridge or bond. */
      readonly lower: readonly string[];
      readonly up: boolean;
      /** The number of a VLAN. */
      readonly vid?: number;
    }
  | { readonly step: 'applyIpv4Settings'; readonly intf: string; readonly addresses: readonly string[] }
  /** Flushes the family's addresses; for 6 also toggles `disable_ipv6`, and the device goes down and up (R15). */
  | { readonly step: 'flushIP'; readonly intf: string; readonly family: 4 | 6 }
  | {
      readonly step: 'applyIpv6Settings';
      readonly intf: string;
      readonly enabled: boolean;
      readonly addresses: readonly string[];
      /** The WAN whose delegated prefix gives one more, global address. */
      readonly delegateFrom?: string;
      /** That address, when the prefix is known. */
      readonly delegated?: string;
      /** A WAN that asks for a prefix itself. */
      readonly client?: true;
    }
  /** Puts back our own routes of the device, and no others. */
  | {
      readonly step: 'changeRoutingTables';
      readonly intf: string;
      /** The device carries the default routes. */
      readonly defaultRoute: boolean;
      /** Those that the config names. */
      readonly gateway?: string;
      readonly gateway6?: string;
    };

/** A device as the kernel shows it under `/sys/class/net`, as text; null where it does not say. */
export interface LinkFacts {
  readonly mac: string | null;
  readonly mtu: string | null;
  /** `1` or `0`; null while the device is off. */
  readonly carrier: string | null;
  readonly duplex: string | null;
  /** Mbit/s. */
  readonly speed: string | null;
  readonly operstate: string | null;
  readonly txBytes: string | null;
  readonly rxBytes: string | null;
}

/** The facts when the kernel does not know the device, or was not asked. */
export const NO_FACTS: LinkFacts = {
  mac: null,
  mtu: null,
  carrier: null,
  duplex: null,
  speed: null,
  operstate: null,
  txBytes: null,
  rxBytes: null,
};

/** The state of one interface in the kernel. */
export interface InterfaceState {
  readonly up: boolean;
  readonly ip4: readonly string[];
  /** Link-local addresses included. */
  readonly ip6: readonly string[];
  readonly routes: readonly Omit<Route, 'devices'>[];
  readonly link: LinkFacts;
}

/** Undoes an apply, as far as the kernel allows it. */
export type Undo = () => Promise<void>;

/** How the router changes the network. */
export interface KernelDriver {
  /**
   * Runs the steps in order, all or none. Removing something that does not exist is no failure.
   *
   * @throws KernelRefusal a step failed; the kernel is as it was before. After any other error that is not known
   */
  apply(steps: readonly KernelStep[], signal: AbortSignal): Promise<Undo>;
  /** @returns undefined for a device that the kernel does not know */
  state(intf: string): Promise<InterfaceState | undefined>;
  /** The state of every device that the kernel knows, by name. */
  states(): Promise<ReadonlyMap<string, InterfaceState>>;
  /** Names of the devices that are hardware. */
  hardware(): Promise<readonly string[]>;
  /** @returns the IPv6 addresses of those of the interfaces that the kernel knows */
  addresses(interfaces: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
}

/** A step that the kernel refused; the message is for the operator. */
export class KernelRefusal extends Error {
  override readonly name = 'KernelRefusal';
}
