import { randomInt } from 'node:crypto';
import { z } from 'zod';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { postControl } from '../../../core/host/operations/control-client.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { newCorrelation } from '../../../core/kernel/clock.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { delegatingLegs, interfacesOf, isWan, stringsOf } from '../config/network-config.ts';
import { RouterError } from '../errors.ts';
import type { ConfigWrites } from './config-writes.ts';
import type { RouterAccess } from './embedded-router.ts';
import { isDelegable } from './kernel/steps.ts';
import { appSaveOf } from './simulate-app-save.ts';
import { apcEvent, wanEvent } from './wan.ts';

/** What can be simulated, as the command names it (R39). */
const SIMULATIONS = ['pd-change', 'wan-down', 'wan-up', 'apc', 'app-save'] as const;

type Simulation = (typeof SIMULATIONS)[number];

/** The path of the control route, before the simulation's name. */
const SIMULATE_PATH = '/router/simulate';

const body = z.strictObject({
  wan: z.string().optional(),
  prefix: z.string().optional(),
  leg: z.string().optional(),
});

/**
 * Registers what `router simulate` posts to.
 *
 * @param isReal the kernel's network is that of this machine, where nothing is simulated
 */
export function registerSimulations(
  context: PluginContext<RouterAccess & { readonly writes: ConfigWrites }>,
  { isReal, replyTimeoutMs }: { readonly isReal: boolean; readonly replyTimeoutMs: number },
): void {
  context.control((surface, { router, writes, services: { bus, pendingReplies } }) => {
    surface.post<{ Params: { what: string } }>(`${SIMULATE_PATH}/:what`, async (request, reply) => {
      const what = SIMULATIONS.find((name) => name === request.params.what);
      if (what === undefined) throw simulation(`only ${SIMULATIONS.join(', ')} can be`);
      if (isReal) throw simulation('the router changes the network of this machine');
      const options = body.safeParse(request.body ?? {});
      if (!options.success) throw simulation('the request takes `wan`, `prefix` and `leg`, all texts');
      const config: NetworkConfig = JSON.parse((await router.active()).body);
      if (what === 'app-save')
        return reply.code(200).send(await saveAsApp(writes, config, options.data.leg, request.id));
      const change =
        what === 'apc' ? undefined : { ...wanMessage(what, config, options.data), request: request.id };
      const answer = pendingReplies.open(request.id, replyTimeoutMs);
      const meta = { correlation: request.id };
      if (change) bus.publish(wanEvent, change, meta);
      else bus.publish(apcEvent, { request: request.id }, meta);
      const { status, body: text } = await answer;
      const fields = isObject(text) ? text : {};
      if (status !== 200) throw simulation(String(fields.reason));
      return reply.code(200).send({ ...fields, ...(change?.prefix && { prefix: change.prefix }) });
    });
  });
}

type WanMessage = { wan: string; kind: 'pd-change' | 'down' | 'up'; prefix?: string };

/** @throws HF_ROUTER_SIMULATION the config has no such WAN, or the prefix is none */
function wanMessage(
  what: Exclude<Simulation, 'apc' | 'app-save'>,
  config: NetworkConfig,
  options: z.infer<typeof body>,
): WanMessage {
  const wans = interfacesOf(config).filter(({ config: fields }) => isWan(fields));
  const chosen =
    options.wan ?? wans.find(({ name }) => delegatingLegs(config, name).length > 0)?.name ?? wans[0]?.name;
  if (chosen === undefined) throw simulation('the config has no WAN');
  if (!wans.some(({ name }) => name === chosen)) throw simulation(`${chosen} is no WAN of the config`);
  if (what !== 'pd-change') return { wan: chosen, kind: what === 'wan-down' ? 'down' : 'up' };
  if (delegatingLegs(config, chosen).length === 0) throw simulation(`no leg delegates from ${chosen}`);
  // RFC 3849: reserved for documentation.
  const prefix = options.prefix ?? `2001:db8:${randomInt(1, 0xfffe).toString(16)}::/56`;
  if (!isDelegable(prefix)) throw simulation(`${prefix} is no IPv6 prefix of 16 to 64 bits`);
  return { wan: chosen, kind: 'pd-change', prefix };
}

/** Saves as the phone app does when a network is renamed: its static addresses are gone (R26). */
async function saveAsApp(writes: ConfigWrites, config: NetworkConfig, leg: string | undefined, id: string) {
  const save = appSaveOf(config, leg);
  if (!save)
    throw simulation(
      leg === undefined ? 'no LAN has a static IPv6 address' : `${leg} is no LAN of the config`,
    );
  const writer = { request: newCorrelation(), correlation: id, who: 'app, simulated' };
  const { status, body } = await writes.set(save.config, writer);
  const fields = isObject(body) ? body : {};
  if (status !== 200) throw simulation(stringsOf(fields.errors).join('; '));
  const { intf, name, dropped } = save;
  return { intf, name, dropped, ncid: fields.ncid };
}

function simulation(reason: string): HoldfastError {
  return new RouterError('HF_ROUTER_SIMULATION', { reason });
}

/** `holdfast router simulate`: what happens to a router without anybody writing its config (R39). */
export function registerSimulateCommand(context: Pick<PluginContext, 'command'>): void {
  context.command({
    name: 'router simulate <what>',
    summary: `Lets the running embedded router meet ${SIMULATIONS.join(', ')}`,
    example: 'holdfast router simulate pd-change --prefix 2001:db8:7::/56',
    flags: [
      { flags: '--wan <intf>', summary: 'the WAN; without it the one that legs delegate from' },
      {
        flags: '--prefix <cidr>',
        summary: 'the prefix of a pd-change; without it a random documentation prefix',
      },
      {
        flags: '--leg <intf>',
        summary: 'the network of an app-save; the first with a static address unless given',
      },
    ],
    async run([what = ''], { wan, prefix, leg }, { dataDir, json, print, signal }) {
      if (!SIMULATIONS.some((name) => name === what)) {
        const reason = `${what} is none of ${SIMULATIONS.join(', ')}.`;
        throw new HostError('HF_CLI_USAGE', { reason, command: 'router simulate' });
      }
      const options = {
        ...(typeof wan === 'string' && { wan }),
        ...(typeof prefix === 'string' && { prefix }),
        ...(typeof leg === 'string' && { leg }),
      };
      const { status, body } = await postControl(dataDir, `${SIMULATE_PATH}/${what}`, options, signal);
      if (status !== 200) throw refused(dataDir, status, body);
      if (json) return print(JSON.stringify(body));
      print(textOf(what, isObject(body) ? body : {}));
    },
  });
}

function textOf(
  what: string,
  { wan, ncid, prefix, reapplied, intf, name, dropped }: Readonly<Record<string, unknown>>,
): string {
  if (what === 'apc')
    return 'the access-point controller took a change; router.apc_change_applied is published';
  if (what === 'app-save')
    return `${intf} is saved as the app does: named ${plainText(String(name))}, without ipv6 (${stringsOf(dropped).join(', ') || 'it had none'})`;
  if (what !== 'pd-change')
    return `${wan} went ${what === 'wan-down' ? 'down' : 'up'}; the two WAN channels are published`;
  return `${wan} was delegated ${prefix}; reapplied ${stringsOf(reapplied).join(', ') || 'nothing'}; ncid ${ncid} stands`;
}

/** The error that the instance answered with. */
function refused(dir: string, status: number, body: unknown): HoldfastError {
  const { code, what } = isObject(body) ? body : {};
  const reason = /^Nothing is simulated: (.*)\.$/.exec(String(what))?.[1];
  if (code === 'HF_ROUTER_SIMULATION' && reason !== undefined) return new RouterError(code, { reason });
  return new HostError('HF_CONTROL_UNREACHABLE', {
    dir,
    reason: `it answered ${status} ${code ?? ''}`.trim(),
  });
}
