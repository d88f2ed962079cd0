import { msOf, parseDuration } from '../../core/duration.ts';
import { HoldfastError } from '../../core/errors/index.ts';
import { isObject } from '../../core/json.ts';
import type { CommandContext } from '../../core/plugin/command.ts';
import type { PluginContext } from '../../core/plugin/index.ts';
import { PATH } from './operate.ts';
import type { AlertsOptions } from './options.ts';
import type { Defined } from './rules/define.ts';
import { show } from './show.ts';
import type { AlertsView } from './view.ts';

const CODES = ['HF_ALERTS_UNKNOWN', 'HF_ALERTS_STATE', 'HF_ALERTS_RECEIVER'] as const;

/** The commands of alerts; all of them ask the running instance. */
export function registerCommands(context: PluginContext, _options: AlertsOptions): void {
  context.command({
    name: 'alerts list',
    summary: 'Lists what fires, what the rules found, and how the receivers are',
    example: 'holdfast alerts list',
    run: async (_args, _flags, command) => {
      const view = await ask<AlertsView>(command, 'list', {});
      show(view, command);
      return view.alerts.some(({ state }) => state === 'firing') ? 1 : 0;
    },
  });
  context.command({
    name: 'alerts ack <alert>',
    summary: 'Says that somebody is at it: nobody else is told until then',
    example:
      "holdfast alerts ack 'uptime.monitor_down{monitor=router-ula}' --for 2h --note 'cable is being replaced'",
    flags: [
      { flags: '--for <time>', summary: 'e.g. 30m, 2h or 1d', default: '1h' },
      { flags: '--note <text>', summary: 'shown in the list' },
      { flags: '--by <name>', summary: 'who; the user unless given' },
    ],
    run: async ([alert = ''], { for: time, note, by }, command) => {
      const forMs = lasting(String(time), 'alerts ack');
      show(
        await ask<AlertsView>(command, 'ack', {
          alert,
          by: by ?? who(),
          forMs,
          ...(note !== undefined && { note }),
        }),
        command,
      );
    },
  });
  context.command({
    name: 'alerts silence <names>',
    summary: 'Tells nobody of alerts of these names until then; what still lasts is told at its end',
    example: "holdfast alerts silence 'rule.nas-*' --for 2h --note 'the NAS is being moved'",
    flags: [
      { flags: '--for <time>', summary: 'e.g. 30m, 2h or 1d', default: '1h' },
      { flags: '--note <text>', summary: 'shown in the list' },
      { flags: '--by <name>', summary: 'who; the user unless given' },
    ],
    run: async ([pattern = ''], { for: time, note, by }, command) => {
      const forMs = lasting(String(time), 'alerts silence');
      const said = await ask<AlertsView & { id: string }>(command, 'silence', {
        pattern,
        by: by ?? who(),
        forMs,
        ...(note !== undefined && { note }),
      });
      show(said, command);
    },
  });
  context.command({
    name: 'alerts unsilence <id>',
    summary: 'Ends a silence',
    example: 'holdfast alerts unsilence 019ab-77c0',
    run: async ([id = ''], _flags, command) =>
      show(await ask<AlertsView>(command, 'unsilence', { id }), command),
  });
  context.command({
    name: 'alerts bootstrap',
    summary:
      'Makes the rules that run agree with plugins.config.ts, by name; done twice, the second time changes nothing',
    example: 'holdfast alerts bootstrap',
    run: async (_args, _flags, command) => {
      const { rules } = await ask<{ rules: Defined[] }>(command, 'bootstrap', {});
      if (command.json) return command.print(JSON.stringify({ rules }));
      for (const { title, change } of rules) command.print(`${change.padEnd(9)}  ${title}`);
    },
  });
  context.command({
    name: 'alerts test <receiver>',
    summary: 'Sends one alert through the whole path, and shows what the receiver answers',
    example: 'holdfast alerts test cluster-edge',
    run: async ([receiver = ''], _flags, command) => {
      const said = await ask<Trial>(command, 'test', { receiver, by: who() });
      if (command.json) command.print(JSON.stringify(said));
      else {
        const { outcome, answer, reason } = said;
        const status = answer?.status === undefined ? '' : ` (${answer.status})`;
        command.print(`${receiver}: ${outcome}${status}${reason === undefined ? '' : `, ${reason}`}`);
        if (answer?.body) command.print(answer.body);
      }
      return said.outcome === 'delivered' ? 0 : 1;
    },
  });
}

interface Trial {
  readonly outcome: 'delivered' | 'refused' | 'waiting';
  readonly answer?: { readonly status?: number; readonly body?: string };
  readonly reason?: string;
}

async function ask<T>({ dataDir, signal }: CommandContext, verb: string, body: object): Promise<T> {
  const { postControl } = await import('../../core/cli/index.ts');
  const { status, body: answer } = await postControl(dataDir, `${PATH}/${verb}`, body, signal);
  if (status === 200) return answer as T;
  const code = isObject(answer) ? CODES.find((each) => each === answer.code) : undefined;
  if (code && isObject(answer)) throw new HoldfastError(code, answer.details as never);
  const said =
    isObject(answer) && typeof answer.reason === 'string' ? answer.reason : `it answered ${status}`;
  const reason = status === 404 ? 'it runs no alerts' : said;
  throw new HoldfastError('HF_CONTROL_UNREACHABLE', { dir: dataDir, reason });
}

/** @throws HF_CLI_USAGE */
function lasting(text: string, command: string): number {
  const ms = parseDuration(text) === undefined ? Number.NaN : msOf(text);
  if (ms >= 60_000 && ms <= 2_592_000_000) return ms;
  throw new HoldfastError('HF_CLI_USAGE', {
    reason: `--for must be a time from 1m to 30d, not ${text}`,
    command,
  });
}

function who(): string {
  return process.env.SUDO_USER ?? process.env.USER ?? process.env.LOGNAME ?? 'operator';
}
