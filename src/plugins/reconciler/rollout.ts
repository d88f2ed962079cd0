import { setTimeout as delay } from 'node:timers/promises';
import { durationFlag } from '../../core/host/duration.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { askUnit, type DrillResult, drill, type Moment, observe } from './drill.ts';
import type { TestBeat } from './heartbeat.ts';
import { NO_RECONCILER, UNIT_PATH } from './unit.ts';

const WAIT = {
  flags: '--wait <time>',
  summary: 'for both alerts to change state, and again to recover; from 10s to 25m',
  default: '10m',
} as const;

const clock = ({ at, afterMs, what }: Moment) =>
  `      ${at.slice(11, 19)}  +${`${Math.round(afterMs / 1_000)} s`.padEnd(6)} ${what}`;

const waitOf = (given: unknown, command: string) =>
  durationFlag('--wait', given, { least: '10s', most: '25m', command });

function drillOf(command: CommandContext, waitMs: number): Promise<DrillResult> {
  return drill(command, waitMs, (moment) => {
    if (!command.json) command.print(clock(moment));
  });
}

/** `holdfast drill ula`: checks that both alerts notice a stopped reconciler. */
export const drillUla: CommandDefinition = {
  name: 'drill ula',
  summary:
    'Stops the reconciler until both its alerts change state, starts it until both recover; prints the timeline',
  example: 'holdfast drill ula --wait 10m',
  flags: [WAIT],
  async run(_args, { wait }, command) {
    const result = await drillOf(command, waitOf(wait, 'drill ula'));
    if (command.json) command.print(JSON.stringify(result));
    else command.print(stepLine({ step: 'drill', state: result.ok ? 'ok' : 'fail', found: result.verdict }));
    return result.ok ? 0 : 1;
  },
};

/** `holdfast deploy ula --check`: verifies the steps of the reconciler's deployment in their order (R33). */
export const deployUla: CommandDefinition = {
  name: 'deploy ula',
  summary:
    "Checks the reconciler's deployment in its order: secrets, monitor, push route, settings, then the drill",
  example: 'holdfast deploy ula --check',
  flags: [
    { flags: '--check', summary: 'verify the present deployment; this program deploys nothing' },
    { flags: '--skip-drill', summary: 'leave out the drill, which raises both alerts for real' },
    WAIT,
  ],
  async run(_args, { check, skipDrill, wait }, command) {
    if (check !== true) {
      const reason = 'give --check: your configuration management deploys, and this verifies';
      throw new HostError('HF_CLI_USAGE', { reason, command: 'deploy ula' });
    }
    const waitMs = waitOf(wait, 'deploy ula');
    const done: Step[] = [];
    const report = (step: Step) => {
      done.push(step);
      command.terminal.progress('');
      if (!command.json) command.print(stepLine(step));
    };
    let timeline: readonly Moment[] = [];
    for (const { step, run } of stepsOf(command)) {
      if (done.some(({ state }) => state === 'fail')) {
        report({ step, state: 'skipped', found: 'an earlier step failed and must be fixed first' });
        continue;
      }
      command.terminal.progress(`${step} …`);
      report({ step, ...(await run()) });
    }
    if (done.some(({ state }) => state === 'fail') || skipDrill === true) {
      report({
        step: 'drill',
        state: 'skipped',
        found: skipDrill === true ? 'as requested' : 'a step before it failed',
      });
    } else {
      const result = await drillOf(command, waitMs);
      timeline = result.timeline;
      const remedy =
        'See `holdfast alerts list` and `holdfast uptime list` for the alert that did not change.';
      report({
        step: 'drill',
        state: result.ok ? 'ok' : 'fail',
        found: result.verdict,
        ...(!result.ok && { remedy }),
      });
    }
    const ok = done.every(({ state }) => state !== 'fail');
    if (command.json) command.print(JSON.stringify({ ok, steps: done, timeline }));
    return ok ? 0 : 1;
  },
};

function stepLine({ step, state, found, remedy }: Step): string {
  return `${state.padEnd(7)} ${step.padEnd(22)} ${found}${remedy === undefined ? '' : `\n        ${remedy}`}`;
}

/** The state of one part of the deployment. */
export interface Step {
  readonly step: string;
  readonly state: 'ok' | 'fail' | 'skipped';
  readonly found: string;
  readonly remedy?: string;
}

type Found = Omit<Step, 'step'>;
const ok = (found: string): Found => ({ state: 'ok', found });
const fail = (found: string, remedy: string): Found => ({ state: 'fail', found, remedy });

/** The gauge is sent once a minute and its rule evaluated once a minute, so this allows for both and for storing. */
const ARRIVES_MS = 180_000;
const POLL_MS = 1_000;

/** The steps before the drill, in the order of the deployment. They share one test beat. */
function stepsOf(command: CommandContext): readonly {
  readonly step: string;
  readonly run: () => Promise<Found>;
}[] {
  let sent: Promise<TestBeat> | undefined;
  const testBeat = () => {
    sent ??= askInstance<TestBeat>(command, `${UNIT_PATH}/beat`, {}, NO_RECONCILER);
    return sent;
  };
  return [
    {
      step: 'secrets-store policy',
      async run() {
        const { monitor, token } = await testBeat();
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
        const { monitor, place } = await testBeat();
        const { monitor: state } = await observe(command);
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
        const { push } = await testBeat();
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
        return ok(
          `it receives the events of the router, and ${legs.whole} of ${legs.of} legs have their address`,
        );
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
          const { rule } = await observe(command);
          if (rule.state === 'well') return ok(rule.text);
          if (Date.now() > end) {
            return fail(
              rule.text,
              'See `holdfast stack probe` for the way of telemetry, and `holdfast alerts list`.',
            );
          }
          command.terminal.progress(`otel-collector … ${rule.text}`);
          const { signal } = command;
          await delay(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
        }
      },
    },
  ];
}
