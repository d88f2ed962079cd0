import { durationFlag } from '../../core/host/duration.ts';
import { askInstance, operatorName } from '../../core/host/operations/control-client.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { PATH } from './operate.ts';
import type { DefinedRule } from './rules/define.ts';
import type { InUi } from './rules/ui.ts';
import { show } from './show.ts';
import { standaloneCommands } from './standalone.ts';
import type { AlertsView } from './view.ts';

/** The commands of alerts; all of them ask the running instance. */
export function registerCommands(context: PluginContext): void {
  for (const command of standaloneCommands) context.command(command);
  context.command({
    name: 'alerts list',
    first: true,
    summary: 'Lists the alerts that fire, the rules with their values, and the state of the receivers',
    example: 'holdfast alerts list',
    run: async (_args, _flags, command) => {
      const view = await ask<AlertsView>(command, 'list', {});
      show(view, command);
      return view.alerts.some(({ state }) => state === 'firing') ? 1 : 0;
    },
  });
  context.command({
    name: 'alerts ack <alert>',
    summary: 'Acknowledges an alert: nobody else is notified until then',
    example:
      "holdfast alerts ack 'uptime-monitor.down{monitor=router-ula}' --for 2h --note 'cable is being replaced'",
    flags: [
      { flags: '--for <time>', summary: 'e.g. 30m, 2h or 1d', default: '1h' },
      { flags: '--note <text>', summary: 'shown in the list' },
      { flags: '--by <name>', summary: 'who; the user unless given' },
    ],
    run: async ([alert = ''], { for: time, note, by }, command) => {
      const forMs = durationOf(time, 'alerts ack');
      show(
        await ask<AlertsView>(command, 'ack', {
          alert,
          by: by ?? operatorName(),
          forMs,
          ...(note !== undefined && { note }),
        }),
        command,
      );
    },
  });
  context.command({
    name: 'alerts silence <names>',
    summary: 'Notifies nobody of alerts of these names until then; what still fires then is notified',
    example: "holdfast alerts silence 'rule.nas-*' --for 2h --note 'the NAS is being moved'",
    flags: [
      { flags: '--for <time>', summary: 'e.g. 30m, 2h or 1d', default: '1h' },
      { flags: '--note <text>', summary: 'shown in the list' },
      { flags: '--by <name>', summary: 'who; the user unless given' },
    ],
    run: async ([pattern = ''], { for: time, note, by }, command) => {
      const forMs = durationOf(time, 'alerts silence');
      const result = await ask<AlertsView & { id: string }>(command, 'silence', {
        pattern,
        by: by ?? operatorName(),
        forMs,
        ...(note !== undefined && { note }),
      });
      show(result, command);
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
      'Makes the rules that run, and the alerts of a UI where one is configured, agree with plugins.config.ts by name; done twice, the second time changes nothing',
    example: 'holdfast alerts bootstrap',
    run: async (_args, _flags, command) => {
      const done = await ask<{ rules: DefinedRule[]; ui?: InUi[] }>(command, 'bootstrap', {});
      const { rules, ui = [] } = done;
      if (command.json) command.print(JSON.stringify(done));
      else {
        for (const { title, change } of rules) command.print(`${change.padEnd(9)}  ${title}`);
        for (const { title, change, reason } of ui) {
          command.print(`${change.padEnd(9)}  ${title}, in the UI`);
          if (reason !== undefined) command.print(`           ${reason}`);
        }
      }
      return ui.some(({ change }) => change === 'rejected') ? 1 : 0;
    },
  });
  context.command({
    name: 'alerts test <receiver>',
    summary: 'Sends one alert through the whole path, and shows what the receiver answers',
    example: 'holdfast alerts test cluster-edge',
    run: async ([receiver = ''], _flags, command) => {
      const result = await ask<TestResult>(command, 'test', { receiver, by: operatorName() });
      if (command.json) command.print(JSON.stringify(result));
      else {
        const { outcome, answer, reason } = result;
        const status = answer?.status === undefined ? '' : ` (${answer.status})`;
        command.print(`${receiver}: ${outcome}${status}${reason === undefined ? '' : `, ${reason}`}`);
        if (answer?.body) command.print(answer.body);
      }
      return result.outcome === 'delivered' ? 0 : 1;
    },
  });
}

interface TestResult {
  readonly outcome: 'delivered' | 'refused' | 'waiting';
  readonly answer?: { readonly status?: number; readonly body?: string };
  readonly reason?: string;
}

async function ask<T extends object>(command: CommandContext, verb: string, body: object): Promise<T> {
  return askInstance<T>(command, `${PATH}/${verb}`, body, 'it runs no alerts');
}

/** @throws HF_CLI_USAGE */
const durationOf = (text: unknown, command: string): number =>
  durationFlag('--for', text, { least: '1m', most: '30d', command });
