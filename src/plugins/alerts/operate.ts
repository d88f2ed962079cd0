import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { alertRaised } from '../../core/contracts/alerts.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { identityOf } from '../../core/host/identity.ts';
import { type Operation, serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { newCorrelation } from '../../core/kernel/clock.ts';
import { alertActor, outboxActor, SILENCES_KEY, silencesActor } from './actors.ts';
import { notified } from './delivery.ts';
import { AlertsError } from './errors.ts';
import { guidanceOf } from './guidance.ts';
import { type AlertsOptions, fits } from './options.ts';
import { isConfigured, reach, readTarget } from './receivers.ts';
import { silencedUntil } from './routing.ts';
import { defineRules } from './rules/define.ts';
import type { RuleLooks } from './rules/looks.ts';
import { upsertInUi } from './rules/ui.ts';
import { type AlertsView, viewOf } from './view.ts';

/** Where the commands reach the running instance. */
export const PATH = '/alerts';

const by = z.string().min(1).max(64);
const forMs = z.int().min(60_000).max(2_592_000_000);
const note = z.string().max(200).exactOptional();
const acknowledgeBody = z.strictObject({ alert: z.string().min(1).max(200), by, forMs, note });
const silenceBody = z.strictObject({ pattern: z.string().min(1).max(100), by, forMs, note });
const unsilenceBody = z.strictObject({ id: z.string().min(1).max(64) });
const reachBody = z.strictObject({ receiver: z.string().min(1).max(32) });
const testBody = z.strictObject({ receiver: z.string().min(1).max(32), by });

interface Started extends Services {
  readonly looks: RuleLooks;
}

/** Serves what the commands ask of the running instance. */
export function registerOperations(context: PluginContext<Started>, options: AlertsOptions): void {
  context.control((surface, services) => {
    const operate = <T>(
      verb: string,
      schema: z.ZodType<T>,
      run: (body: T, operation: Operation) => unknown,
    ) => serveOperation(surface, `${PATH}/${verb}`, schema, run);
    operate('list', z.strictObject({}), () => view(services, options));
    operate('bootstrap', z.strictObject({}), async (_body, { signal }) => {
      const { rules, hyperdx } = options;
      const defined = defineRules(rules, services);
      if (!hyperdx) return { rules: defined };
      return {
        rules: defined,
        ui: await upsertInUi(hyperdx, rules, services.find(SecretsStoreToken), signal),
      };
    });
    operate('ack', acknowledgeBody, async ({ alert, ...facts }, { correlation }) => {
      const { actors, clock } = services;
      if (!actors.get(alertActor, alert)) throw unknown('alert', alert);
      const event = { type: 'ACKNOWLEDGE', at: clock.now(), ...facts } as const;
      const record = await actors.send(alertActor, alert, event, { correlation }).durable();
      if (record.ignored) throw new AlertsError('HF_ALERTS_STATE', { alert, state: 'not firing' });
      return view(services, options);
    });
    operate('silence', silenceBody, async ({ forMs: ms, ...facts }, { correlation }) => {
      const { actors, clock } = services;
      const at = clock.now();
      const silence = { id: newCorrelation().slice(0, 13), until: at + ms, ...facts };
      const event = { type: 'ADD', at, silence } as const;
      await actors.send(silencesActor, SILENCES_KEY, event, { correlation }).durable();
      for (const { key } of firing(services, silence.pattern)) {
        actors.send(alertActor, key, { type: 'SILENCE', at, until: silence.until }, { correlation });
      }
      return { id: silence.id, ...view(services, options) };
    });
    operate('unsilence', unsilenceBody, async ({ id }, { correlation }) => {
      const { actors, clock } = services;
      const silence = view(services, options).silences.find((each) => each.id === id);
      if (!silence) throw unknown('silence', id);
      const at = clock.now();
      await actors.send(silencesActor, SILENCES_KEY, { type: 'REMOVE', at, id }, { correlation }).durable();
      for (const { key, name } of firing(services, silence.pattern)) {
        const until = silencedUntil(actors, name, at);
        actors.send(
          alertActor,
          key,
          until === undefined ? { type: 'UNSILENCE', at } : { type: 'SILENCE', at, until },
          { correlation },
        );
      }
      return view(services, options);
    });
    operate('reach', reachBody, ({ receiver: name }, { signal }) => {
      const receiver = options.receivers[name];
      if (!receiver) throw unknown('receiver', name);
      return reach(name, receiver, process.env, services.find(SecretsStoreToken), signal);
    });
    operate('test', testBody, ({ receiver, by }) => testReceiver(receiver, by, services, options));
  });
}

function unknown(kind: 'alert' | 'silence' | 'receiver', name: string) {
  return new AlertsError('HF_ALERTS_UNKNOWN', { kind, name });
}

function view(
  { actors, clock, looks }: Pick<Started, 'actors' | 'clock' | 'looks'>,
  { receivers }: AlertsOptions,
): AlertsView {
  const listed = Object.entries(receivers).map(
    ([name, receiver]) => [name, isConfigured(name, receiver, process.env)] as const,
  );
  return viewOf(actors, new Map(listed), looks, clock.now());
}

/** The alerts that fire and whose name fits a pattern. */
function firing({ actors }: Pick<Services, 'actors'>, pattern: string) {
  return actors.list(alertActor).flatMap(({ key, value, context: { content } }) => {
    const isFiring = typeof value === 'object' && content !== undefined;
    return isFiring && fits(pattern, content.name) ? [{ key, name: content.name }] : [];
  });
}

/** How long a test waits for the receiver's answer, milliseconds, and how often it checks. */
const TEST_TIMEOUT_MS = 20_000;
const POLL_MS = 50;

/**
 * Sends one alert through the outbox to a receiver, and waits for its answer. The escalation is skipped, because the
 * receiver is given.
 *
 * @throws HF_ALERTS_UNKNOWN, HF_ALERTS_RECEIVER
 */
async function testReceiver(name: string, by: string, services: Services, options: AlertsOptions) {
  const receiver = options.receivers[name];
  if (!receiver) throw unknown('receiver', name);
  const { actors, bus, clock } = services;
  // Without an address the notice would wait in the outbox for a day.
  await readTarget(name, receiver, process.env, services.find(SecretsStoreToken));
  const correlation = newCorrelation();
  const at = clock.now();
  const text = `A test of the receiver ${name}, asked for by ${by} at ${new Date(at).toISOString()}.`;
  const alert = { name: 'alerts.test', severity: 'info', text, labels: { receiver: name } } as const;
  bus.publish(alertRaised, { ...alert, labels: { ...alert.labels, state: 'test' } }, { correlation });
  const notice = {
    ...alert,
    title: 'Holdfast: this is a test',
    state: 'event',
    since: at,
    ...identityOf(services.dataDir),
    firstStep: 'Nothing: it has arrived.',
    runbook: guidanceOf(alert, options.runbooks).runbook,
  } as const;
  const item = { id: `${correlation}/${name}`, at, notice };
  const failuresBefore = actors.get(outboxActor, name)?.context.failures ?? 0;
  bus.publish(notified, { receiver: name, item }, { correlation });
  const end = performance.now() + TEST_TIMEOUT_MS;
  for (;;) {
    const outbox = actors.get(outboxActor, name)?.context;
    const waits = outbox?.queue.some(({ id }) => id === item.id) ?? true;
    const failed = (outbox?.failures ?? 0) > failuresBefore;
    if (outbox && (!waits || failed || performance.now() > end)) {
      const { answer, reason } = outbox;
      const outcome = waits ? (failed ? 'refused' : 'waiting') : 'delivered';
      return { receiver: name, outcome, ...(answer && { answer }), ...(waits && reason && { reason }) };
    }
    await delay(POLL_MS);
  }
}
