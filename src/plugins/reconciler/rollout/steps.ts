import { setTimeout as delay } from 'node:timers/promises';
import { askInstance } from '../../../core/host/operations/ask.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { UNIT_PATH } from '../unit.ts';
import { askUnit, look } from './look.ts';
import type { Trial } from './trial.ts';

/** One part of the deployment, as it was found. */
export interface Step {
  readonly step: string;
  readonly state: 'ok' | 'fail' | 'skipped';
  readonly found: string;
  readonly remedy?: string;
}

type Found = Omit<Step, 'step'>;
const ok = (found: string): Found => ({ state: 'ok', found });
const fail = (found: string, remedy: string): Found => ({ state: 'fail', found, remedy });

/** A gauge leaves every minute, is stored, and its rule looks every minute. */
const ARRIVES_MS = 180_000;
const LOOK_MS = 1_000;

/** What is verified before the drill, in the order of the deployment. One beat is sent for all of it. */
export function stepsOf(command: CommandContext): readonly {
  readonly step: string;
  readonly run: () => Promise<Found>;
}[] {
  let tried: Promise<Trial> | undefined;
  const tryPush = () => {
    tried ??= askInstance<Trial>(command, `${UNIT_PATH}/beat`, {}, 'it runs no reconciler');
    return tried;
  };
  return [
    {
      step: 'secrets-store policy',
      async run() {
        const { monitor, token } = await tryPush();
        if (token.ok) return ok(`the push token of ${monitor} can be read`);
        return fail(
          token.reason,
          'Give the account the right to read it, and see that the agent writes its file, mode 0600.',
        );
      },
    },
    {
      step: 'monitor',
      async run() {
        const { monitor, place } = await tryPush();
        const { monitor: state } = await look(command);
        if (state.state !== 'unknown') return ok(`${state.text}, at ${place}`);
        return fail(
          state.text,
          `Make the push monitor ${monitor} at ${place}, and a status page with the slug ${monitor}.`,
        );
      },
    },
    {
      step: 'direct push route',
      async run() {
        const { push } = await tryPush();
        if (push.kind === 'delivered') return ok(`a beat was delivered: HTTP ${push.status}`);
        if (push.kind === 'none')
          return fail(push.reason, 'Start the reconciler first: `holdfast router resume`.');
        if (push.status !== undefined && push.status >= 300 && push.status < 400) {
          return fail(
            `HTTP ${push.status}: the push is redirected, as by an access proxy, and was not followed`,
            'Route /api/push/ of that host directly to the monitor, or set HOLDFAST_UPTIME_CONNECT to its address.',
          );
        }
        return fail(push.reason, 'See `holdfast push doctor router-ula`.');
      },
    },
    {
      step: 'router-ula-reconciler',
      async run() {
        const { up, reason, legs } = await askUnit(command);
        if (!up) return fail(reason ?? 'it is not up', 'See `holdfast status` and `holdfast doctor router`.');
        if (legs.whole < legs.of) {
          return fail(`${legs.whole} of ${legs.of} legs have their address`, 'See `holdfast doctor router`.');
        }
        return ok(`it hears the router, and ${legs.whole} of ${legs.of} legs have their address`);
      },
    },
    {
      step: 'otel-collector',
      async run() {
        if (!(await askUnit(command)).measured) {
          return fail(
            'the gauge is sent nowhere',
            'Set OTEL_EXPORTER_OTLP_ENDPOINT, or `own` for the receiver of this process.',
          );
        }
        const end = Date.now() + ARRIVES_MS;
        for (;;) {
          const { rule } = await look(command);
          if (rule.state === 'well') return ok(rule.text);
          if (Date.now() > end) {
            return fail(
              rule.text,
              'See `holdfast stack probe` for the way of telemetry, and `holdfast alerts list`.',
            );
          }
          command.terminal.progress(`otel-collector … ${rule.text}`);
          const { signal } = command;
          await delay(LOOK_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
        }
      },
    },
  ];
}
