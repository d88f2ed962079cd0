import { setTimeout as delay } from 'node:timers/promises';
import { askInstance } from '../../core/host/operations/control-client.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { type AlertPlaces, type AlertState, monitorState, ruleState } from './alert-reading.ts';
import type { TestBeat } from './heartbeat.ts';
import { type LegsNow, NO_RECONCILER, UNIT_PATH } from './unit.ts';
import { askUnit } from './unit-switch.ts';

/** The state of one part of the deployment. `ok` is said only of what was looked at, `skipped` only where it was requested. */
export interface Step {
  readonly step: string;
  readonly state: 'ok' | 'fail' | 'unknown' | 'skipped';
  readonly found: string;
  readonly remedy?: string;
}

export type Found = Omit<Step, 'step'>;
const ok = (found: string): Found => ({ state: 'ok', found });
const fail = (found: string, remedy: string): Found => ({ state: 'fail', found, remedy });
export const unknown = (found: string, remedy: string): Found => ({ state: 'unknown', found, remedy });

/** The gauge is sent once a minute and its rule evaluated once a minute, so this allows for both and for storing. */
const GAUGE_ARRIVES_MS = 180_000;
/** Uptime Kuma caches its status pages for a minute or more. */
const BEAT_SHOWS_MS = 150_000;
const POLL_MS = 1_000;

/**
 * The steps before the drill, in the order of the deployment (R33). Each looks by itself, so that one part that is broken
 * hides no other; what only the broken part could show is unknown. They share one test beat.
 *
 * @param waitMs the longest wait for a change to show, milliseconds
 */
export function stepsOf(
  command: CommandContext,
  places: AlertPlaces,
  waitMs: number,
): readonly { readonly step: string; readonly run: () => Promise<Found> }[] {
  const ask = <T extends object>(path: string) =>
    askInstance<T>(command, `${UNIT_PATH}${path}`, {}, NO_RECONCILER);
  let sent: Promise<TestBeat> | undefined;
  const testBeat = () => {
    sent ??= ask<TestBeat>('/beat');
    return sent;
  };
  const settled = (limitMs: number, step: string, read: () => Promise<AlertState>) =>
    untilWell(command, Math.min(limitMs, waitMs), step, read);
  const steps = [
    { step: 'secrets-store policy', run: async () => policyFound(await testBeat()) },
    {
      step: 'monitor',
      async run() {
        const { place, monitor, push } = await testBeat();
        const read = () => monitorState(places.statusUrl ?? place, monitor, command.signal);
        const make = `Make the push monitor ${monitor} at ${place}, and a status page with the slug ${monitor}.`;
        const state =
          push.kind === 'delivered' ? await settled(BEAT_SHOWS_MS, 'monitor', read) : await read();
        if (state.state === 'absent') return fail(state.text, make);
        if (push.kind === 'refused') return fail(`it refuses the beat: ${push.reason}`, make);
        if (state.state === 'unknown')
          return unknown(state.text, 'Name the base of its status pages with --status-url.');
        if (push.kind === 'delivered' && state.state !== 'well')
          return fail(`${state.text}, although it accepted a beat`, make);
        if (push.kind !== 'delivered')
          return unknown(`${state.text}; whether it takes a beat is unknown, for none reached it`, make);
        return ok(`${state.text}, at ${place}`);
      },
    },
    { step: 'direct push route', run: async () => routeFound(await testBeat()) },
    {
      step: 'router-ula-reconciler',
      async run() {
        const { up, reason } = await askUnit(command);
        if (!up) return fail(reason ?? 'it is not up', 'See `holdfast status` and `holdfast doctor router`.');
        const { whole, of, lacking, unknown: unseen, unread, unconfirmed } = await ask<LegsNow>('/legs');
        if (unread !== undefined)
          return fail(`the router's config can't be read: ${unread}`, 'See `holdfast doctor router`.');
        if (unconfirmed !== undefined) return fail(unconfirmed, 'See `holdfast router adopt`.');
        const found = `${whole} of ${of} legs have their address`;
        if (of === 0 || lacking.length > 0)
          return fail([found, ...lacking].join('; '), 'See `holdfast doctor router`.');
        if (unseen.length > 0)
          return unknown(
            `${of} of ${of} legs have their address in the config; what their links have is unknown: ${unseen.join('; ')}`,
            'Look at the links on the router: `ip -6 address show`.',
          );
        return ok(`it receives the events of the router, and ${found}`);
      },
    },
    {
      step: 'otel-collector',
      async run() {
        const { measured } = await askUnit(command);
        const name =
          'Name the collector by OTEL_EXPORTER_OTLP_ENDPOINT, or `own` for the receiver of this process.';
        if (!measured) return fail('the gauge is sent nowhere', name);
        const { fault } = await ask<{ fault?: string }>('/gauge');
        if (fault !== undefined)
          return fail(
            `the collector does not take the gauge: ${fault}`,
            'Give its address and the ingest key.',
          );
        // While the reconciler is down the gauge is 0, so a rule that is well saw only an earlier one.
        const { up } = await askUnit(command);
        const read = () => ruleState(places, command.signal);
        const state = up ? await settled(GAUGE_ARRIVES_MS, 'otel-collector', read) : await read();
        if (state.state === 'well' && up) return ok(state.text);
        if (state.state === 'unknown' || !up)
          return unknown(
            `the collector took the gauge; ${state.text}`,
            'Name with --alerts the instance that evaluates the rule.',
          );
        const remedy = 'See `holdfast stack probe` for the way of telemetry, and `holdfast alerts list`.';
        return fail(`the collector took the gauge, and ${state.text}`, remedy);
      },
    },
  ];
  return steps.map(({ step, run }) => ({ step, run: () => run().catch(unreached) }));
}

function policyFound({ monitor, access }: TestBeat): Found {
  const remedy = 'Let the policy of the agent read it, and see that the agent writes its file, mode 0600.';
  if (!access) return unknown('nothing that sends beats says where its token is', remedy);
  const { place, fault, policy } = access;
  if (fault !== undefined) return fail(fault, remedy);
  if (policy.state === 'fail') return fail(policy.found, remedy);
  const token = `the push token of ${monitor} can be read (${place})`;
  if (policy.state === 'ok') return ok(`${token}, and ${policy.found}`);
  return unknown(
    `${token}; the policy was not looked at: ${policy.found}`,
    'List a plugin of the secrets store, and name the place of the token there: storedAs of uptime().',
  );
}

function routeFound({ push }: TestBeat): Found {
  switch (push.kind) {
    case 'delivered':
      return ok(`a beat was delivered: HTTP ${push.status}`);
    case 'none':
      return unknown(`no beat was sent: ${push.reason}`, 'Fix what the other steps name, and check again.');
    case 'refused':
      return unknown(
        `no beat was delivered: what answered, refused it (${push.reason})`,
        'Fix the monitor or its token, and check again.',
      );
    case 'failed':
      if (push.status !== undefined && push.status >= 300 && push.status < 400) {
        return fail(
          `HTTP ${push.status}: the push is redirected, as by an access proxy, and was not followed`,
          'Route /api/push/ of that host directly to the monitor, or set HOLDFAST_UPTIME_CONNECT to its address.',
        );
      }
      return fail(push.reason, 'See `holdfast push doctor router-ula`.');
  }
}

/** Reads until it is well, or the time is over. */
async function untilWell(
  { signal, terminal }: CommandContext,
  limitMs: number,
  step: string,
  read: () => Promise<AlertState>,
): Promise<AlertState> {
  for (const end = Date.now() + limitMs; ; ) {
    const state = await read();
    if (['well', 'absent', 'unknown'].includes(state.state) || Date.now() > end) return state;
    terminal.progress(`${step} … ${state.text}`);
    await delay(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** No instance can be asked, so its part was not looked at. */
function unreached(error: unknown): Found {
  if (isCoded(error, 'HF_CONTROL_UNREACHABLE')) return unknown(error.what, 'Start the reconciler.');
  throw error;
}
