import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Bus } from '../../../src/bus/bus.ts';
import {
  type InterfaceView,
  type NetworkConfig,
  type ReapplyAnswer,
  type RouterApi,
  RouterApiToken,
  routerChannels,
  type SetAnswer,
} from '../../../src/core/contracts/router.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { RouterError } from '../../../src/plugins/router/errors.ts';

/** A config as the tests look into it. */
export type Config = { ncid: string; interface: { vlan: Record<string, any> }; [key: string]: any };

const example = new URL('../../../src/plugins/router/embedded/example-network-config.json', import.meta.url);

/** What the router does to the next write, instead of taking it. */
export type Mishap = 'refuses' | 'refusesButApplies' | 'isSilent' | 'isSilentButApplies' | 'applyFails';

/**
 * A small router with the manners of the real daemon: it publishes before it saves, and says nothing in its events;
 * reads take no lock; a wrong ncid is refused unless the body bears the stored `reqId`; while a transaction is pending
 * plain writes are refused, and no event says when it ends; a missing `meta.uuid` is added; a failed apply publishes
 * too.
 */
export class FieldRouter implements RouterApi {
  /** Between publishing and saving. */
  saveLagMs = 2;
  applyMs = 1;
  readMs = 1;
  /** Set for a router elsewhere, whose legs must be adopted. */
  place?: string;
  /** Without it nobody hears anything, as after a lost connection. */
  bus: Bus | undefined;
  /** Between publishing and saving, too. */
  beforeSave: (() => Promise<void>) | undefined;
  transaction = false;
  down = false;
  /** The kernel takes no IPv6 address, and nobody is told: the answer is 200. */
  kernelFails = false;
  /** What of the live state it cannot or does not serve. */
  live: 'served' | 'null' | 'notServed' = 'served';
  reapplies = 0;
  readonly #kernel = new Map<string, readonly string[]>();
  readonly mishaps: Mishap[] = [];
  readonly posts: Config[] = [];
  reads = 0;
  /** Writes that the stored `reqId` carried past the ncid check. */
  bypassed = 0;
  #config: Config;
  #count = 0;
  #lock: Promise<unknown> = Promise.resolve();

  constructor() {
    this.#config = JSON.parse(readFileSync(example, 'utf8'));
    this.#config.reqId = 'req-of-the-app';
    this.#carryOut();
  }

  get config(): Config {
    return structuredClone(this.#config);
  }

  leg(intf: string): any {
    return this.config.interface.vlan[intf];
  }

  async active(): Promise<NetworkConfig> {
    this.reads += 1;
    if (this.down) throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: 'connection refused' });
    await delay(this.readMs);
    return this.config;
  }

  async interfaceState(intf: string): Promise<InterfaceView | undefined> {
    if (this.down) throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: 'connection refused' });
    await delay(this.readMs);
    const config = this.leg(intf);
    if (!config || this.live === 'notServed') return undefined;
    const ip6 = ['fe80::1/64', ...(this.#kernel.get(intf) ?? [])];
    return { config, state: { ip6: this.live === 'null' ? null : ip6, present: this.live !== 'null' } };
  }

  async reapply(): Promise<ReapplyAnswer> {
    if (this.transaction) return { kind: 'pending' };
    return this.#locked(async () => {
      this.reapplies += 1;
      this.#kernel.clear();
      this.#carryOut();
      this.#publish();
      return { kind: 'applied' };
    });
  }

  async set(posted: NetworkConfig): Promise<SetAnswer> {
    // As the contract of the API demands: fields that steer a write come only from whoever implements it.
    const { reqId: _, ignoreNcid: __, ...body } = structuredClone(posted) as Config;
    this.posts.push(body);
    const mishap = this.mishaps.shift();
    const answer = mishap === 'isSilent' ? ({ kind: 'unknown', reason: 'no answer' } as const) : undefined;
    return answer ?? this.#locked(() => this.#set(body, mishap));
  }

  /** What the phone app does: the whole config from its own model, under an ncid it has just read. */
  appSaves(change: (config: Config) => void): Promise<SetAnswer> {
    return this.#locked(async () => {
      const config = this.config;
      change(config);
      await this.#apply(config);
      return { kind: 'applied', ncid: this.#config.ncid };
    });
  }

  /** The network's other writers race with us for the ncid. */
  async raceSave(change: (config: Config) => void): Promise<SetAnswer> {
    const config = this.config;
    await delay(this.readMs);
    change(config);
    delete config.reqId;
    return this.#locked(() => this.#set(config));
  }

  async #set(body: Config, mishap?: Mishap): Promise<SetAnswer> {
    if (this.transaction) return { kind: 'pending' };
    if (body.reqId !== undefined && body.reqId === this.#config.reqId) this.bypassed += 1;
    else if (body.ncid !== this.#config.ncid) return { kind: 'conflict' };
    if (mishap === 'refuses') return { kind: 'refused', errors: ['not now'] };
    if (mishap === 'applyFails') {
      this.#publish();
      this.#publish();
      return { kind: 'refused', errors: ['Invalid ipv6 address', 'rolled back'] };
    }
    await this.#apply(body);
    if (mishap === 'refusesButApplies') return { kind: 'refused', errors: ['applied, but'] };
    if (mishap === 'isSilentButApplies') return { kind: 'unknown', reason: 'no answer in 60 s' };
    return { kind: 'applied', ncid: this.#config.ncid };
  }

  async #apply(next: Config): Promise<void> {
    await delay(this.applyMs);
    this.#publish();
    if (this.saveLagMs > 0) await delay(this.saveLagMs);
    await this.beforeSave?.();
    this.#count += 1;
    for (const leg of Object.values(next.interface.vlan)) leg.meta.uuid ??= `added-${this.#count}`;
    const ncid = `${'0'.repeat(19)}${String(1_800_000_000_000 + this.#count)}`;
    this.#config = { ...next, ncid, reqId: `req-${this.#count}` };
    this.#carryOut();
  }

  /** Brings the kernel to the config: what is equal is left as it is. */
  #carryOut(): void {
    for (const [intf, { ipv6 = [] }] of Object.entries(this.#config.interface.vlan)) {
      const wanted = [ipv6].flat() as string[];
      const present = (this.#kernel.get(intf) ?? []).filter((address) => wanted.includes(address));
      this.#kernel.set(intf, this.kernelFails ? present : wanted);
    }
  }

  #publish(): void {
    this.bus?.publish(routerChannels.changeApplied, {});
    this.bus?.publish(routerChannels.ifaceChangeApplied, {});
  }

  #locked<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#lock.then(work);
    this.#lock = result.catch(() => {});
    return result;
  }
}

/** Makes a router of the test known as the runtime's router. */
export function fieldRouterPlugin(router: FieldRouter) {
  return definePlugin({
    name: 'field-router',
    options: z.strictObject({}),
    provides: [RouterApiToken],
    start(services) {
      router.bus = services.bus;
    },
    register: (context) => context.provide(RouterApiToken, () => router),
  })();
}
