import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { LogEvent, LogRecord } from '../../core/kernel/log/record.ts';
import { type CollectorFindingEvent, collectorFinding } from '../../machines/collector/finding.ts';
import { FINDINGS, type Finding } from './effective-config.ts';

/** The collector's config names another ingest key than before. */
export const configRead: Topic<{ at: number; fingerprint?: string | undefined }> = defineTopic(
  'collector.config_read',
  z.object({ at: z.number(), fingerprint: z.string().optional() }),
  "The collector's effective config was read and names another ingest key, by its fingerprint.",
);

/** While a rotation waits for producers: one is seen with the new key for the first time. */
export const producerMoved: Topic<{ at: number; producer: string }> = defineTopic(
  'collector.producer_moved',
  z.object({ at: z.number(), producer: z.string() }),
  'A producer is seen with the new ingest key for the first time, while a rotation waits for that.',
);

const finding = z.object({
  code: z.string(),
  severity: z.enum(['warning', 'critical']),
  place: z.string(),
  text: z.string(),
  remedy: z.string(),
});

/** All that is wrong with the collector's config, at each start and when that changes. */
export const findingsRead: Topic<{ findings: readonly z.infer<typeof finding>[] }> = defineTopic(
  'collector.findings_read',
  z.object({ findings: z.array(finding).readonly() }),
  "What is wrong with the collector's effective config; none of it when the list is empty.",
);

const ACTOR = 'collector.finding';

/** Each thing that can be wrong with the config is an actor: it tells a person, and that it is fixed. */
export function registerFindings(context: PluginContext): void {
  context.actor(defineActor({ type: ACTOR, machine: collectorFinding, version: 1, describe }));
  context.route(
    defineRoute(findingsRead, ACTOR, ({ payload: { findings } }) => {
      const found = findings.map((one) => event(one.code, { type: 'FOUND', ...one }));
      const codes = new Set(findings.map(({ code }) => code));
      // Of a config that can't be read nobody knows what else is in it.
      const gone = codes.has('unreadable') ? [] : Object.keys(FINDINGS).filter((code) => !codes.has(code));
      const known = gone.filter((code) => context.services.actors.snapshot(actorRef(ACTOR, code)));
      return [...found, ...known.map((code) => event(code, { type: 'GONE' }))];
    }),
  );
}

/** As the topic carries them. */
export function toldOf(place: string, findings: readonly Finding[]) {
  return findings.map((finding) => ({ ...finding, place, severity: FINDINGS[finding.code] }));
}

function event(key: string, sent: CollectorFindingEvent) {
  return { key, event: sent as unknown as LogEvent };
}

function describe({ event: { type, text }, from, to }: LogRecord): string | undefined {
  if (type === 'FOUND') return String(text);
  if (type === 'GONE') return from === to?.value ? '' : 'it is fixed';
  return type === 'init' ? '' : undefined;
}
