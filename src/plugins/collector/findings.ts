/** What is wrong with the collector's config, as actors: each raises an alert, and resolves it when it is fixed. */
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { type FindingEvent, finding } from '../../machines/collector/finding.ts';
import type { StartedCollector } from './active-keys.ts';
import { FINDINGS, type Finding } from './effective-config.ts';

const findingActor = defineActor({
  type: 'collector.finding',
  machine: finding,
  version: 1,
  describe({ event, from, to }) {
    if (event.type === 'FOUND') return event.text;
    if (event.type === 'GONE') return from === to?.value ? '' : 'it is fixed';
    return event.type === 'init' ? '' : undefined;
  },
});

/** Everything that is wrong with the collector's config, at each start and when that changes. */
export const findingsRead = defineTopic(
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
  }),
  "What is wrong with the collector's effective config; nothing when the list is empty.",
);

/** @param place the config's file */
export function findingsMessage(place: string, findings: readonly Finding[]) {
  return { findings: findings.map((one) => ({ ...one, place, severity: FINDINGS[one.code] })) };
}

export function registerFindings(context: PluginContext<StartedCollector>): void {
  context.actor(findingActor);
  context.route(findingsRead, findingActor, ({ payload: { findings } }, { services }) => {
    const found = findings.map((one): Target => ({ key: one.code, event: { type: 'FOUND', ...one } }));
    const codes = new Set(findings.map(({ code }) => code));
    // An unreadable config does not show whether the others are fixed.
    const fixed = codes.has('unreadable') ? [] : Object.keys(FINDINGS).filter((code) => !codes.has(code));
    const known = fixed.filter((code) => services.actors.get(findingActor, code));
    return [...found, ...known.map((key): Target => ({ key, event: { type: 'GONE' } }))];
  });
}

interface Target {
  readonly key: string;
  readonly event: FindingEvent;
}
