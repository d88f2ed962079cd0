import { setTimeout as sleep } from 'node:timers/promises';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { askInstance } from '../../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import type { RefreshCheck } from '../../../machines/collector/key-rotation-rules.ts';
import { NO_COLLECTOR } from '../errors.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import { ROTATION_PATH } from './control.ts';
import type { RotationPlan, RotationView } from './view.ts';

const POLL_MS = 500;
/** Exit code of a rotation that goes on and waits for a person. */
const WAITS = 3;

const ACTIONS = ['show', 'resume', 'force', 'stored', 'externalDone', 'abandon'] as const;

/** `holdfast stack rotate-ingest-key`: begins a rotation, or sends an event to the one under way, and follows it. */
export const rotateCommand: CommandDefinition = {
  name: 'stack rotate-ingest-key [name]',
  summary: `Rotates the OTLP ingest key (${INGEST_KEY_NAME}) step by step; exit 3 while it waits for a person`,
  example: 'holdfast stack rotate-ingest-key --dry-run',
  flags: [
    { flags: '--dry-run', summary: 'say what would be done, and change nothing' },
    { flags: '--no-follow', summary: 'return when it has begun' },
    { flags: '--show', summary: 'how the last rotation stands' },
    { flags: '--resume', summary: 'take up a rotation that failed, where it failed' },
    { flags: '--force', summary: 'do not wait for producers inside the cluster to refresh: force them' },
    { flags: '--stored', summary: 'you have put the new key in the secrets store' },
    { flags: '--external-done', summary: 'you have updated the producers outside of the cluster' },
    { flags: '--abandon', summary: 'give the rotation up where it stands' },
  ],
  async run([name], flags, context) {
    const words = ACTIONS.filter((action) => flags[action] === true);
    if (words.length + (flags.dryRun === true ? 1 : 0) > 1) {
      const reason = 'Only one of these flags can be given at a time.';
      throw new HostError('HF_CLI_USAGE', { reason, command: 'stack rotate-ingest-key' });
    }
    const [word] = words;
    const action =
      flags.dryRun === true ? 'plan' : word === 'externalDone' ? 'external_done' : (word ?? 'rotate');
    const post = (named: string) =>
      askInstance<RotationView & { plan?: RotationPlan }>(
        context,
        ROTATION_PATH,
        { action: named, ...(name !== undefined && { name }) },
        NO_COLLECTOR,
      );
    const view = await post(action);
    if (view.plan) {
      if (context.json) context.print(JSON.stringify(view.plan));
      else for (const line of planLines(view.plan)) context.print(line);
      return 0;
    }
    const follows = flags.follow !== false && action !== 'show' && action !== 'abandon';
    return follow(view, context, follows ? () => post('show') : undefined);
  },
};

/** Prints steps as they end. @param again requests the view once more; if undefined, only the first one is printed */
async function follow(
  first: RotationView,
  { json, print, terminal, signal, note }: CommandContext,
  again: (() => Promise<RotationView>) | undefined,
): Promise<number> {
  const printed = new Set<string>();
  let waitedFor = '';
  let view = first;
  for (;;) {
    if (!json) {
      for (const step of view.steps) {
        if (step.state !== 'done' || printed.has(step.step)) continue;
        printed.add(step.step);
        terminal.progress('');
        print(finishedLine(step, view));
        if (step.step === 'refresh') for (const check of view.checks) print(checkLine(check));
      }
      const names = view.pending.join(', ');
      // Without a terminal there is no progress line, so each change of the awaited producers is a line of output.
      if (!terminal.interactive && view.state.startsWith('refresh') && names !== waitedFor && names !== '')
        print(nowLine(view));
      waitedFor = names;
      terminal.progress(nowLine(view));
    }
    const ends = ['idle', 'done', 'failed'].includes(view.state) || view.note !== undefined;
    if (
      !again ||
      ends ||
      (view.state.startsWith('external') && view.pending.length + view.unconfirmed.length > 0)
    )
      break;
    try {
      await sleep(POLL_MS, undefined, { signal });
    } catch {
      note('It goes on without you: holdfast stack rotate-ingest-key --show');
      break;
    }
    view = await again();
  }
  terminal.progress('');
  if (json) print(JSON.stringify(view));
  else if (view.state !== 'done') print(nowLine(view));
  if (view.state === 'failed') return 1;
  return view.state === 'done' || view.state === 'idle' ? 0 : WAITS;
}

const MAKERS = {
  own: 'Holdfast makes a new key; the old one stays accepted beside it',
  api: 'Holdfast requests a new key from the UI; the collector replaces the old one at once',
  operator:
    'you make a new key in the UI (Team Settings → API Keys); the collector replaces the old one at once',
} as const;

const STEPS: Readonly<Record<string, string>> = {
  regenerate: 'regenerated',
  adopt: 'adopted by the collector',
  store: 'stored',
  retire: 'old key retired',
};

/** What a rotation would do. */
function planLines(plan: RotationPlan): string[] {
  const names = plan.producers.map(({ producer }) => producer);
  const overlap =
    plan.maker === 'own'
      ? `when all have moved, at the latest after ${hours(plan.overlapMinutes)}`
      : 'at once, by the collector';
  return [
    `Nothing is changed. The key in use is ${plan.old ?? 'unknown, so nothing can be rotated'} (${plan.source}).`,
    `1 regenerate  ${MAKERS[plan.maker]}`,
    `2 adopt       it is awaited in ${plan.source}`,
    `3 store       ${plan.storeIsWritable ? 'it is written to' : 'you put it in'} ${plan.store}`,
    `4 refresh     ${plan.refreshMinutes} min for ${names.join(', ') || 'producers; none was seen in the last hour'}${plan.canForce ? ', then forced in the cluster' : ''}; synced Secret, starts of pods and metrics are checked`,
    `5 external    ${plan.external.join(', ') || 'none is listed (option externalProducers)'}`,
    `6 retire      the old key ends ${overlap}`,
  ];
}

/** A step that is done. */
function finishedLine(
  { step, at = '' }: { readonly step: string; readonly at?: string },
  view: RotationView,
): string {
  const { fresh, forced, checks } = view;
  if (step === 'external') return `${at.slice(11, 19)}  ${externalWords(view)}`;
  if (step === 'retire' && view.maker !== 'own')
    return `${at.slice(11, 19)}  old key ended when the collector adopted the new one`;
  const more: Readonly<Record<string, string>> = {
    adopt: fresh ?? '',
    refresh: forced && forced.length > 0 ? `forced: ${forced.join(', ')}` : '',
  };
  if (step === 'refresh') return `${at.slice(11, 19)}  ${refreshWords(checks)}  ${more.refresh}`.trimEnd();
  return `${at.slice(11, 19)}  ${STEPS[step] ?? step}${more[step] ? `  ${more[step]}` : ''}`;
}

/** Only producers that were checked and use the new key are called refreshed. */
function refreshWords(checks: readonly RefreshCheck[]): string {
  const count = (wanted: RefreshCheck['result']) => checks.filter(({ result }) => result === wanted).length;
  if (checks.length > 0 && count('ok') === checks.length) return 'producers refreshed';
  const open = count('not_checked') > 0 ? `, ${count('not_checked')} not checked` : '';
  if (count('not') > 0)
    return `producers not refreshed: ${count('ok')} checks ok, ${count('not')} not${open}`;
  return count('ok') > 0
    ? `producers refreshed as far as could be checked: ${count('ok')} checks ok${open}`
    : 'refresh of producers not checked';
}

/** What is known about the external producers: nothing, a person's confirmation, or what our receiver has seen. */
function externalWords({ external, isConfirmed, unconfirmed, pending }: RotationView): string {
  if (external.length === 0) return 'no external producer is listed';
  if (isConfirmed) return `external producers updated, a person says: ${external.join(', ')}`;
  const left = external.filter((name) => unconfirmed.includes(name) || pending.includes(name));
  if (left.length > 0) return `external producers not seen with the new key: ${left.join(', ')}`;
  return `external producers seen with the new key: ${external.join(', ')}`;
}

const CHECKS = {
  producers: 'producers',
  synced_secret: 'synced Secret',
  pods: 'pods',
  metrics: 'metrics',
} as const satisfies Record<RefreshCheck['check'], string>;

function checkLine({ check, result, text }: RefreshCheck): string {
  return `            ${result.replace('_', ' ').padEnd(12)}${CHECKS[check]}: ${text}`;
}

/** What is being waited for. */
function nowLine({ state, steps, pending, unconfirmed, note, failure, until }: RotationView): string {
  if (state === 'idle') return 'No ingest key was rotated here yet.';
  if (failure)
    return `failed (${failure.reason}): ${failure.text} Then: holdfast stack rotate-ingest-key --resume`;
  if (state === 'done') return 'The ingest key is rotated.';
  const now = steps.find((step) => step.state === 'now')?.step ?? state;
  const left = [...new Set([...pending, ...unconfirmed])];
  const who = left.length > 0 ? `, still with the old key: ${left.join(', ')}` : '';
  const end = until === undefined ? '' : `, until ${until.slice(11, 16)}`;
  const external =
    now === 'external'
      ? '. Update them, then add --external-done; it goes on by itself when they are seen with the new key'
      : '';
  return `now: ${now}${end}${who}${external}${note === undefined ? '' : `: ${note}`}`;
}

function hours(minutes: number): string {
  return minutes >= 60 ? `${Math.round(minutes / 60)} h` : `${minutes} min`;
}
