/** What is wrong with the collector's config, as actors: each raises an alert, and resolves it when it is fixed. */
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { type FindingEvent, finding } from '../../machines/collector/finding.ts';
import { FINDINGS, type Finding } from './effective-config.ts';
import { describeFindingRecord } from './words.ts';

const findingActor = defineActor({
  type: 'collector.finding',
  machine: finding,
  version: 1,
  describe: describeFindingRecord,
});

/** Everything that is wrong with the collector's config, at each start and when that changes. */
const findingsRead = defineTopic(
  'collector.findings_read',
  z.object({
    findings: z
      .array(
        z.object({
          code: z.string(),
          severity: z.enum(['warning', 'critical']),
          place: z.string(),
          text: z.string(),
          remedy: z.string(),
        }),
      )
      .readonly(),
    /** Codes of earlier findings that are fixed now. */
    fixed: z.array(z.string()).readonly(),
  }),
  "What is wrong with the collector's effective config, and what is fixed.",
);

export function registerFindings<S>(context: PluginContext<S>): void {
  context.actor(findingActor);
  context.route(findingsRead, findingActor, ({ payload: { findings, fixed } }) => [
    ...findings.map((one) => target(one.code, { type: 'FOUND', ...one })),
    ...fixed.map((code) => target(code, { type: 'GONE' })),
  ]);
}

/** @param place the config's file */
export function reportFindings({ bus, actors }: Services, place: string, findings: readonly Finding[]): void {
  const codes = new Set<string>(findings.map(({ code }) => code));
  // An unreadable config does not show whether the others are fixed.
  const fixed = codes.has('unreadable') ? [] : Object.keys(FINDINGS).filter((code) => !codes.has(code));
  bus.publish(findingsRead, {
    findings: findings.map((one) => ({ ...one, place, severity: FINDINGS[one.code] })),
    fixed: fixed.filter((code) => actors.get(findingActor, code)),
  });
}

function target(key: string, event: FindingEvent) {
  return { key, event };
}
