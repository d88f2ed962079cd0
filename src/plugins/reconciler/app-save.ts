/** The effects and operations of the drill `holdfast drill app-save` (R26). */
import { z } from 'zod';
import {
  type NetworkConfig,
  type RouterApi,
  RouterApiToken,
  type SetAnswer,
} from '../../core/contracts/router.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { AppSaveLeg, AppSaveOutcome, AppSaveRequest } from '../../machines/reconciler/app-save.ts';
import { APP_SAVE_KEY, appSaveActor, legActor } from './actors.ts';
import type { Adoption } from './adoption.ts';
import type { DroppedWatch } from './dropped.ts';
import { ReconcilerError } from './errors.ts';
import { type LegState, stateOf } from './leg-status.ts';
import { normaliseCidr, readLeg, withAddresses, withEntry } from './legs.ts';
import type { Unit } from './unit.ts';
import { type Write, writeOf } from './write.ts';

export const APP_SAVE_PATH = '/reconciler/app-save';
/** The longest wait for a return, milliseconds. */
export const LONGEST_WAIT_MS = 300_000;
const LOOK_MS = 200;
const POST_DEADLINE_MS = 90_000;
/** What the drill puts behind the name of a network. */
const SUFFIX = ' (drill)';

/** A drill as its command shows it. */
export interface AppSaveView {
  readonly state: 'none' | 'running' | 'passed' | 'failed';
  readonly leg?: { readonly intf: string; readonly label: string; readonly address: string };
  readonly by?: string;
  /** Why it failed. */
  readonly reason?: string;
  /** Each with its time (ISO 8601) and milliseconds since the beginning. */
  readonly steps: readonly { readonly at: string; readonly afterMs: number; readonly what: string }[];
}

interface Started extends Services {
  readonly adoption: Adoption;
  readonly dropped: DroppedWatch;
  readonly unit: Unit;
}

const begin = z.strictObject({
  by: z.string().min(1).max(64),
  leg: z.string().optional(),
  waitMs: z.int().min(100).max(LONGEST_WAIT_MS),
});

/** Registers the drill's actor, its effects and its operations. */
export function registerAppSave(context: PluginContext<Started>): void {
  context.actor(appSaveActor);
  const options = { onRecovery: 'fail', adapter: RouterApiToken.name } as const;
  context.effect<AppSaveRequest>(
    'reconciler.drill_save',
    async ({ run, intf, address, to }, effect, { dropped, get, clock }) => {
      const save = (config: NetworkConfig) => {
        const change = asTheAppSaves(config, intf, address, to);
        if (typeof change !== 'string') dropped.willPost(change.body, config);
        return change;
      };
      return saved(get(RouterApiToken), save, { run, clock, ...writeOf(effect) });
    },
    { ...options, deadlineMs: POST_DEADLINE_MS },
  );
  context.effect<AppSaveLeg>(
    'reconciler.drill_watch',
    (leg, { signal }, { get, clock }) => returned(get(RouterApiToken), leg, clock, signal),
    { ...options, deadlineMs: LONGEST_WAIT_MS + POST_DEADLINE_MS },
  );
  context.effect<AppSaveLeg>(
    'reconciler.drill_restore',
    async ({ run, intf, address }, effect, { get, clock }): Promise<AppSaveOutcome> => {
      const api = get(RouterApiToken);
      const { correlation, signal, origin } = writeOf(effect);
      const config = await api.active(signal);
      const body = restored(config, intf, address);
      if (body === config) return { type: 'RESTORED', run, at: clock.now(), changed: false };
      const answer = await api.set(body, correlation, signal, origin);
      if (answer.kind === 'applied') return { type: 'RESTORED', run, at: clock.now(), changed: true };
      return { type: 'NOT_RESTORED', run, at: clock.now(), reason: answer.kind };
    },
    { ...options, deadlineMs: POST_DEADLINE_MS },
  );
  context.control((surface, services) => {
    const { actors, clock } = services;
    serveOperation(surface, APP_SAVE_PATH, z.strictObject({}), () => viewOf(services));
    serveOperation(surface, `${APP_SAVE_PATH}/begin`, begin, async ({ by, leg, waitMs }, { correlation }) => {
      const { intf, label, address } = drillable(services, leg);
      const event = { type: 'BEGIN', at: clock.now(), by, intf, label, address, waitMs } as const;
      await actors.send(appSaveActor, APP_SAVE_KEY, event, { correlation }).durable();
      return viewOf(services);
    });
    serveOperation(
      surface,
      `${APP_SAVE_PATH}/abort`,
      begin.pick({ by: true }),
      async ({ by }, { correlation }) => {
        const event = { type: 'ABORT', at: clock.now(), by } as const;
        await actors.send(appSaveActor, APP_SAVE_KEY, event, { correlation }).durable();
        return viewOf(services);
      },
    );
  });
}

function viewOf({ actors }: Services): AppSaveView {
  const actor = actors.get(appSaveActor, APP_SAVE_KEY);
  const { run, steps = [], reason } = actor?.context ?? {};
  if (!actor || !run) return { state: 'none', steps: [] };
  const state = actor.value === 'passed' || actor.value === 'failed' ? actor.value : 'running';
  const { intf, label, address, by } = run;
  return {
    state,
    leg: { intf, label, address },
    by,
    ...(reason !== undefined && { reason }),
    steps: steps.map(({ at, what }) => ({ at: new Date(at).toISOString(), afterMs: at - run.at, what })),
  };
}

/** States in which the config has the address. A drill also has a router apply what its kernel refused before. */
const DRILLABLE: readonly LegState[] = ['whole', 'configured', 'configured, not applied'];

/** @throws HF_RECONCILER_DRILL the leg cannot be drilled now */
function drillable(services: Started, wanted: string | undefined) {
  const { actors, adoption, unit } = services;
  const refuse = (reason: string) => new ReconcilerError('HF_RECONCILER_DRILL', { reason });
  if (viewOf(services).state === 'running') throw refuse('another drill is running');
  const down = unit.downReason();
  if (down !== undefined) throw refuse(down);
  const legs = adoption.legs.filter(
    ({ intf, label, keep }) => !keep && (wanted === undefined || [intf, label].includes(wanted)),
  );
  const [leg] = legs;
  if (!leg)
    throw refuse(wanted === undefined ? 'no leg is listed' : `${wanted} is no leg that the reconciler holds`);
  const actor = actors.get(legActor, leg.intf);
  const state = actor ? stateOf(String(actor.value), actor.context) : 'unread';
  if (!DRILLABLE.includes(state))
    throw refuse(`${leg.label} (${leg.intf}) lacks its address before it: ${state}`);
  return leg;
}

interface Save extends Write {
  readonly run: number;
  readonly clock: Clock;
}

async function saved(
  api: RouterApi,
  save: (config: NetworkConfig) => { body: NetworkConfig; name: string } | string,
  { run, clock, correlation, signal, origin }: Save,
): Promise<AppSaveOutcome> {
  const not = (reason: string, sent: boolean) =>
    ({ type: 'NOT_SAVED', run, at: clock.now(), reason: maskText(reason, 300), sent }) as const;
  let answer: Exclude<SetAnswer, { readonly kind: 'applied' }> = { kind: 'conflict' };
  // The app, too, reads again when somebody else was faster.
  for (let tries = 0; answer.kind === 'conflict' && tries < 5; tries += 1) {
    const change = save(await api.active(signal));
    if (typeof change === 'string') return not(change, false);
    const given = await api.set(change.body, correlation, signal, origin);
    if (given.kind === 'applied') return { type: 'SAVED', run, at: clock.now(), name: change.name };
    answer = given;
  }
  switch (answer.kind) {
    case 'pending':
      return not('a transaction is pending, so nothing was saved', false);
    case 'conflict':
      return not('other writers won every race for the ncid', false);
    case 'refused':
      return not(`the router refused the save: ${answer.errors.join('; ')}`, true);
    case 'unknown':
      return not(`it is unknown whether the save was applied: ${answer.reason}`, true);
  }
}

/** Looks until the leg has its address again, in the config and, where the router tells, on its link. */
async function returned(
  api: RouterApi,
  { run, intf, address, waitMs }: AppSaveLeg,
  clock: Clock,
  signal: AbortSignal,
): Promise<AppSaveOutcome> {
  const began = clock.monotonic();
  const passed = () => Math.round(clock.monotonic() - began);
  let configMs: number | undefined;
  let fault = '';
  for (;;) {
    try {
      if (configMs === undefined && readLeg(await api.active(signal), intf).addresses?.includes(address))
        configMs = passed();
      if (configMs !== undefined) {
        const ip6 = (await api.interfaceState(intf, signal))?.state.ip6;
        const at = clock.now();
        if (!ip6) return { type: 'RETURNED', run, at, configMs };
        if (ip6.map(normaliseCidr).includes(address))
          return { type: 'RETURNED', run, at, configMs, linkMs: passed() };
      }
    } catch (error) {
      if (signal.aborted || !isCoded(error)) throw error;
      fault = `: ${maskText(error.what, 200)}`;
    }
    const at = clock.now();
    if (passed() >= waitMs) {
      const place = configMs === undefined ? 'not in the config' : 'in the config, but not on the link';
      const reason = `the address is ${place} after ${Math.round(waitMs / 1_000)} s${fault}`;
      return { type: 'NOT_RETURNED', run, at, reason };
    }
    await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
  }
}

/** The config as a rename in the app posts it. @returns why it must not be posted, as text */
function asTheAppSaves(
  config: NetworkConfig,
  intf: string,
  address: string,
  to: AppSaveRequest['to'],
): { body: NetworkConfig; name: string } | string {
  const { addresses } = readLeg(config, intf);
  if (!addresses) return `the config has no interface ${intf}`;
  const others = addresses.filter((each) => each !== address);
  if (others.length > 0)
    return `the leg has ${others.length} other static addresses, which nobody would put back`;
  let name = '';
  const body = withEntry(config, intf, ({ ipv6: _, ...entry }) => {
    const meta = isObject(entry.meta) ? entry.meta : {};
    const original = nameOf(meta, intf).replace(SUFFIX, '');
    name = to === 'renamed' ? original + SUFFIX : original;
    return { ...entry, meta: { ...meta, name } };
  });
  return { body, name };
}

/** The config with the leg's own name and its address. @returns the same object when nothing has to change */
function restored(config: NetworkConfig, intf: string, address: string): NetworkConfig {
  const { body, added } = withAddresses(config, [{ intf, address }]);
  const present = added.length > 0 ? body : config;
  let renamed = false;
  const named = withEntry(present, intf, (entry) => {
    const meta = isObject(entry.meta) ? entry.meta : {};
    const name = nameOf(meta, intf);
    renamed = name.endsWith(SUFFIX);
    return renamed ? { ...entry, meta: { ...meta, name: name.replace(SUFFIX, '') } } : entry;
  });
  return renamed ? named : present;
}

function nameOf({ name }: Readonly<Record<string, unknown>>, intf: string): string {
  return typeof name === 'string' ? name : intf;
}
