import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { alertRaised } from '../../core/contracts/alerts.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { type Operation, serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { actorRef, newCorrelation } from '../../core/kernel/ids.ts';
import type { OutboxContext } from '../../machines/alerts/outbox.ts';
import { AlertsError } from './errors.ts';
import { type AlertsOptions, fits } from './options.ts';
import { ALERT_ACTOR, notified, OUTBOX_ACTOR, SILENCES, silenceOf } from './raised.ts';
import { isConfigured, reach, readTarget } from './receivers.ts';
import { defineRules } from './rules/define.ts';
import { upsertInUi } from './rules/ui.ts';
import { type AlertsView, viewOf } from './view.ts';

/** Where the commands reach the running instance. */
export const PATH = '/alerts';

const by = z.string().min(1).max(64);
const forMs = z.int().min(60_000).max(2_592_000_000);
const note = z.string().max(200).optional();
const acknowledge = z.strictObject({ alert: z.string().min(1).max(200), by, forMs, note });
const silence = z.strictObject({ pattern: z.string().min(1).max(100), by, forMs, note });
const unsilence = z.strictObject({ id: z.string().min(1).max(64) });
const reached = z.strictObject({ receiver: z.string().min(1).max(32) });
const trial = z.strictObject({ receiver: z.string().min(1).max(32), by });

/** What the commands ask of the running instance. */
export function registerOperations(context: PluginContext, options: AlertsOptions): void {
  context.control((surface) => {
    const services = () => context.services;
    const operate = <T>(
      verb: string,
      schema: z.ZodType<T>,
      run: (asked: T, operation: Operation) => unknown,
    ) => serveOperation(surface, `${PATH}/${verb}`, schema, run);
    operate('list', z.strictObject({}), () => view(services(), options));
    operate('bootstrap', z.strictObject({}), async (_asked, { signal }) => {
      const { rules, hyperdx } = options;
      const defined = defineRules(rules, services());
      if (!hyperdx) return { rules: defined };
      return {
        rules: defined,
        ui: await upsertInUi(hyperdx, rules, services().find(SecretsStoreToken), signal),
      };
    });
    operate('ack', acknowledge, async ({ alert, ...facts }) => {
      const { actors, clock } = services();
      const ref = actorRef(ALERT_ACTOR, alert);
      if (!actors.snapshot(ref)) throw new AlertsError('HF_ALERTS_UNKNOWN', { kind: 'alert', name: alert });
      const record = await actors
        .send(ref, { type: 'ACKNOWLEDGE', at: clock.now(), ...defined(facts) })
        .durable();
      if (record.ignored) throw new AlertsError('HF_ALERTS_STATE', { alert, state: 'not firing' });
      return view(services(), options);
    });
    operate('silence', silence, async ({ pattern, forMs: ms, ...facts }) => {
      const { actors, clock } = services();
      const at = clock.now();
      const id = newCorrelation().slice(0, 13);
      const until = at + ms;
      await actors
        .send(SILENCES, { type: 'ADD', at, silence: { id, pattern, until, ...defined(facts) } })
        .durable();
      for (const { ref } of firing(services(), pattern)) actors.send(ref, { type: 'SILENCE', at, until });
      return { id, ...view(services(), options) };
    });
    operate('unsilence', unsilence, async ({ id }) => {
      const { actors, clock } = services();
      const known = view(services(), options).silences.find((each) => each.id === id);
      if (!known) throw new AlertsError('HF_ALERTS_UNKNOWN', { kind: 'silence', name: id });
      const at = clock.now();
      await actors.send(SILENCES, { type: 'REMOVE', at, id }).durable();
      for (const { ref, name } of firing(services(), known.pattern)) {
        const until = silenceOf(actors, name, at);
        actors.send(ref, until === undefined ? { type: 'UNSILENCE', at } : { type: 'SILENCE', at, until });
      }
      return view(services(), options);
    });
    operate('reach', reached, ({ receiver: name }, { signal }) => {
      const receiver = options.receivers[name];
      if (!receiver) throw new AlertsError('HF_ALERTS_UNKNOWN', { kind: 'receiver', name });
      return reach(name, receiver, process.env, services().find(SecretsStoreToken), signal);
    });
    operate('test', trial, ({ receiver, by: who }) => tryReceiver(receiver, who, services(), options));
  });
}

function view(
  { actors, clock }: Pick<Services, 'actors' | 'clock'>,
  { receivers }: AlertsOptions,
): AlertsView {
  const listed = Object.entries(receivers).map(
    ([name, receiver]) => [name, isConfigured(name, receiver, process.env)] as const,
  );
  return viewOf(actors, new Map(listed), clock.now());
}

function firing({ actors }: Pick<Services, 'actors'>, pattern: string) {
  return actors.list(ALERT_ACTOR).flatMap(({ ref, value, context }) => {
    const { told } = context as { told?: { name: string } };
    return typeof value === 'object' && told && fits(pattern, told.name) ? [{ ref, name: told.name }] : [];
  });
}

/** How long a trial waits for the receiver's answer, milliseconds, and how often it looks. */
const PATIENCE_MS = 20_000;
const LOOK_MS = 50;

/**
 * Sends one alert through the whole path, queue and post, and waits for what the receiver says.
 *
 * @throws HF_ALERTS_UNKNOWN, HF_ALERTS_RECEIVER
 */
async function tryReceiver(name: string, by: string, services: Services, options: AlertsOptions) {
  const receiver = options.receivers[name];
  if (!receiver) throw new AlertsError('HF_ALERTS_UNKNOWN', { kind: 'receiver', name });
  const { actors, bus, clock } = services;
  // Queued for nobody, it would wait a day.
  await readTarget(name, receiver, process.env, services.find(SecretsStoreToken));
  const correlation = newCorrelation();
  const at = clock.now();
  const text = `A trial of the receiver ${name}, asked for by ${by} at ${new Date(at).toISOString()}.`;
  const told = { name: 'alerts.test', severity: 'info', text, labels: { receiver: name } } as const;
  // The log line of every alert; the ladder is passed over, for the receiver is named.
  bus.publish(alertRaised, { ...told, labels: { ...told.labels, state: 'test' } }, { correlation });
  const item = {
    id: `${correlation}/${name}`,
    at,
    notice: { ...told, title: 'Holdfast: this is a test', state: 'event', since: at } as const,
  };
  bus.publish(notified, { receiver: name, item }, { correlation });
  const ref = actorRef(OUTBOX_ACTOR, name);
  const before = actors.snapshot(ref)?.context as unknown as OutboxContext | undefined;
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const outbox = actors.snapshot(ref)?.context as unknown as OutboxContext | undefined;
    const waits = outbox?.queue.some(({ id }) => id === item.id) ?? true;
    const failed = (outbox?.failures ?? 0) > (before?.failures ?? 0);
    if (outbox && (!waits || failed || performance.now() > until)) {
      const { answer, reason } = outbox;
      const outcome = waits ? (failed ? 'refused' : 'waiting') : 'delivered';
      return { receiver: name, outcome, ...(answer && { answer }), ...(waits && reason && { reason }) };
    }
    await delay(LOOK_MS);
  }
}

/** Without the fields that were left out. */
function defined<T extends object>(facts: T): T {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as T;
}
