import { randomInt } from 'node:crypto';
import { z } from 'zod';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { isDelegable } from '../kernel/wans.ts';
import { delegatingLegs, interfacesOf, isWan } from '../network-config.ts';
import type { RouterParts } from '../routes/http.ts';
import { apcEvent, wanEvent } from './wan.ts';

/** What can be simulated, as the command names it (R39). */
export const SIMULATIONS = ['pd-change', 'wan-down', 'wan-up', 'apc'] as const;

export type Simulation = (typeof SIMULATIONS)[number];

/** The path of the control route, before the simulation's name. */
export const SIMULATE_PATH = '/router/simulate';

const body = z.strictObject({ wan: z.string().optional(), prefix: z.string().optional() });

/** Registers what `router simulate` posts to. @param isReal the kernel is one whose network must not be played with */
export function registerSimulations(
  context: PluginContext,
  parts: () => RouterParts,
  { isReal, replyTimeoutMs }: { readonly isReal: boolean; readonly replyTimeoutMs: number },
): void {
  context.control((surface) => {
    surface.post(`${SIMULATE_PATH}/:what`, async (request, reply) => {
      const what = SIMULATIONS.find((name) => name === (request.params as { what: string }).what);
      if (what === undefined) throw simulation(`only ${SIMULATIONS.join(', ')} can be`);
      if (isReal) throw simulation('the router changes the network of this machine');
      const asked = body.safeParse(request.body ?? {});
      if (!asked.success) throw simulation('the request takes `wan` and `prefix`, both texts');
      const { bus, exchanges } = context.services;
      const config = JSON.parse((await parts().router.active()).body) as NetworkConfig;
      const message =
        what === 'apc' ? undefined : { ...wanMessage(what, config, asked.data), request: request.id };
      const answer = exchanges.open(request.id, replyTimeoutMs);
      const meta = { correlation: request.id };
      if (message) bus.publish(wanEvent, message, meta);
      else bus.publish(apcEvent, { request: request.id }, meta);
      const { status, body: said } = await answer;
      if (status !== 200) throw simulation(String((said as { reason?: string }).reason));
      return reply
        .code(200)
        .send({ ...(said as object), ...(message?.prefix && { prefix: message.prefix }) });
    });
  });
}

type WanMessage = { wan: string; kind: 'pd-change' | 'down' | 'up'; prefix?: string };

/** @throws HF_ROUTER_SIMULATION the config has no such WAN, or the prefix is none */
function wanMessage(
  what: Exclude<Simulation, 'apc'>,
  config: NetworkConfig,
  asked: z.infer<typeof body>,
): WanMessage {
  const wans = interfacesOf(config).filter(({ config: fields }) => isWan(fields));
  const chosen =
    asked.wan ?? wans.find(({ name }) => delegatingLegs(config, name).length > 0)?.name ?? wans[0]?.name;
  if (chosen === undefined) throw simulation('the config has no WAN');
  if (!wans.some(({ name }) => name === chosen)) throw simulation(`${chosen} is no WAN of the config`);
  if (what !== 'pd-change') return { wan: chosen, kind: what === 'wan-down' ? 'down' : 'up' };
  if (delegatingLegs(config, chosen).length === 0) throw simulation(`no leg delegates from ${chosen}`);
  // RFC 3849: for documentation, and so nobody's.
  const prefix = asked.prefix ?? `2001:db8:${randomInt(1, 0xfffe).toString(16)}::/56`;
  if (!isDelegable(prefix)) throw simulation(`${prefix} is no IPv6 prefix of 16 to 64 bits`);
  return { wan: chosen, kind: 'pd-change', prefix };
}

function simulation(reason: string): HoldfastError {
  return new HoldfastError('HF_ROUTER_SIMULATION', { reason });
}
