import { setTimeout as delay } from 'node:timers/promises';
import { durationFlag } from '../../core/host/duration.ts';
import { askInstance, operatorName } from '../../core/host/operations/control-client.ts';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { plainText } from '../../core/host/terminal.ts';
import { APP_SAVE_PATH, type AppSaveView } from './app-save.ts';
import { NO_RECONCILER } from './unit.ts';

const POLL_MS = 200;
/** How long putting back may take after Ctrl-C, milliseconds. */
const ABORT_MS = 120_000;

/** `holdfast drill app-save`: a leg is saved as the phone app saves it, and must get its address back (R26). */
export const drillAppSave: CommandDefinition = {
  name: 'drill app-save',
  summary:
    'Renames a leg as the app does, which drops its address and reapplies it; times the return, and renames it back',
  example: 'holdfast drill app-save --leg eth1.10',
  flags: [
    { flags: '--leg <name>', summary: 'interface or label; the first listed leg unless given' },
    {
      flags: '--wait <time>',
      summary: 'for the address to return after each save, at most 5m',
      default: '1m',
    },
  ],
  async run(_args, { leg, wait }, command) {
    const { dataDir, json, print, signal } = command;
    const waitMs = durationFlag('--wait', wait, { least: '1s', most: '5m', command: 'drill app-save' });
    const by = operatorName();
    const ask = (verb: string, body: object, until: AbortSignal) =>
      askInstance<AppSaveView>({ dataDir, signal: until }, `${APP_SAVE_PATH}${verb}`, body, NO_RECONCILER);
    let until = signal;
    let view = await ask('/begin', { by, waitMs, ...(typeof leg === 'string' && { leg }) }, signal);
    let shown = 0;
    const show = () => {
      // The verdict, which follows, says it.
      const isSaid = view.state !== 'running' && view.steps.at(-1)?.what === view.reason;
      const steps = view.steps.slice(shown, isSaid ? -1 : undefined);
      if (!json) for (const { at, afterMs, what } of steps) print(line(at, afterMs, what));
      shown = view.steps.length;
    };
    while (view.state === 'running') {
      show();
      await delay(POLL_MS, undefined, { signal: until }).catch(() => {});
      if (signal.aborted && until === signal) {
        until = AbortSignal.timeout(ABORT_MS);
        view = await ask('/abort', { by }, until);
      } else if (!until.aborted) view = await ask('', {}, until);
      else break; // the instance goes on putting the config back, and raises an alert when it cannot
    }
    show();
    const ok = view.state === 'passed';
    if (json) print(JSON.stringify({ ok, ...view }));
    else print(`${ok ? 'ok' : 'fail'}  ${verdict(view)}`);
    return ok ? 0 : 1;
  },
};

function line(at: string, afterMs: number, what: string): string {
  return `  ${at.slice(11, 19)}  +${`${(afterMs / 1_000).toFixed(1)} s`.padEnd(7)} ${plainText(what)}`;
}

function verdict({ state, leg, reason }: AppSaveView): string {
  const name = leg ? `${plainText(leg.label)} (${leg.intf})` : 'the leg';
  if (state === 'passed') return `${name} got its address back after both saves, and has its own name`;
  return `${name}: ${plainText(reason ?? 'it did not end in time')}`;
}
